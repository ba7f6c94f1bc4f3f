package mutants

import "slices"

// Tests that several mutants are for.
var (
	schedules = simulated("TestNobodyHoldsBesideAnotherWhateverFails")
	session   = Catcher{Package: "internal/zookeeper", Test: "TestASession"}
)

// What the random schedules say.
const (
	outlived = "is valid for .* when its end is committed"
	stuck    = "no progress after everything was healed"
)

// Table is all mutants.
var Table = slices.Concat(
	planned, met, heartbeats, returns, permits, elections, overHTTP, fences, several, waits, barriers, queues, agreements, partners,
	once, ticks, claims, assignments,
)

// planned are those of the formula for how long a lease is valid, those of the plan by their numbers, and bugs that there were.
var planned = []Mutant{
	{
		ID: "V1", Bug: "a lease is valid for a timeout from its newest answered request, whichever server answered it, as most clients have it",
		Catchers: []Catcher{schedules.of(10).saying(outlived)},
	},
	{
		ID: "V2", Bug: "heartbeats are sent whether or not the one before was answered",
		Catchers: []Catcher{simulated("TestAHeartbeatIsSentWhenTheOneBeforeWasAnswered").saying("transactions were sent, one after the other")},
	},
	{
		ID: "V3", Bug: "a lock is granted without a running validity",
		Catchers: []Catcher{{Package: "recipes", Test: "TestNothingIsGrantedWithoutProof", Complaint: "grant: <nil>"}},
	},
	{
		ID: "M1", Bug: "heartbeats are reads, which a server answers that no quorum hears any more; the formula is kept",
		Catchers: []Catcher{schedules.of(10).saying(outlived)},
	},
	{
		ID: "M2", Bug: "a lease is valid for a timeout from when anything last came from its server",
		Catchers: []Catcher{simulated("TestAFollowerThatDiesTakesItsReportsWithIt").saying(outlived)},
	},
	{
		ID: "M3a", Bug: "a lock delay that was configured is not kept after a loss",
		Catchers: []Catcher{{Package: "recipes", Test: "TestALostHoldsDelayIsKept", Complaint: "holding, not waiting"}},
	},
	{
		ID: "M3b", Bug: "a waiter does not know that those ahead may leave a delay",
		Catchers: []Catcher{{
			Package: "recipes", Test: "TestADelayIsKeptByWhoCameBeforeItsHoldWasGranted", Complaint: "holding, not waiting",
		}},
	},
	{
		ID: "M3c", Bug: "a directory in which a hold told of its delay is taken for one that stays",
		Catchers: []Catcher{{Package: "recipes", Test: "TestADelayIsKeptInADirectoryThatOthersHadMade", Complaint: "after the loss of a hold"}},
	},
	{
		ID: "M4", Bug: "the fencing token is the number in the name of the place's node",
		Catchers: []Catcher{
			{Package: "recipes", Test: "TestATokenGrowsAlsoWhenTheDirectoryIsMadeAnew", Complaint: "token 0 after 0"},
		},
	},
	{
		ID: "M5", Bug: "the fencing token is the transaction that wrote the place's node last, which another session's may be",
		Catchers: []Catcher{
			{Package: "recipes", Test: "TestATokenIsThatOfThePlaceWhoeverWritesToItsNode", Complaint: "after"},
		},
	},
	{
		ID: "M6a", Bug: "a place's node is taken for one's own without a look at its owner",
		Catchers: []Catcher{{Package: "recipes", Test: "TestANodeOfTheSameNameThatAnotherClientMadeIsNotOurs", Complaint: "grant: <nil>"}},
	},
	{
		ID: "M6b", Bug: "a member's node that is there after a lost reply is taken for one's own without a look at its owner",
		Catchers: []Catcher{
			simulated("TestMembersAreTheirSessionsOwnWhateverFails").saying("is not its own"),
		},
	},
	{
		ID: "M6c", Bug: "a member that leaves is deleted by what a server shows that lags, though another has its name by now",
		Catchers: []Catcher{
			simulated("TestAMemberThatLeavesLetsAnothersNodeAlone").saying("the other's member is deleted"),
		},
	},
	{
		ID: "M7", Bug: "a place whose creation was not answered is made again without looking for it",
		Catchers: []Catcher{session.part("leaves_no_orphan").saying("instead of")},
	},
	{
		ID: "M8a", Bug: "a caller that leaves while its place is being made is forgotten, and its place is not",
		Catchers: []Catcher{{
			Package: "service", Test: "TestWaitTimeoutEndsAWaitAtAnEnsembleThatDoesNotAnswer",
			Complaint: "the lease, which would have taken its places along|has 1 contenders, not 0",
		}},
	},
	{
		ID: "M8b", Bug: "a place is given up with one attempt, answered or not",
		Catchers: []Catcher{session.part("leaves_no_orphan").saying("instead of")},
	},
	{
		ID: "M9", Bug: "the watch is armed after the read that it is for",
		Catchers: []Catcher{session.part("is_told_of_what_happens").saying("word that the node has")},
	},
	{
		ID: "M10", Bug: "every waiter watches the head of the queue",
		Catchers: []Catcher{{Package: "recipes", Test: "TestAReleaseWakesOneWaiter", Complaint: "waiters looked again"}},
	},
	{
		ID: "M11", Bug: "places stand in the order of their numbers also where the counter of 32 bits has come to its end",
		Catchers: []Catcher{{Package: "recipes", Test: "TestTheOrderStandsWhenTheCounterEnds", Complaint: "contenders are"}},
	},
	{
		ID: "M12", Bug: "a lease goes on with another session when its own has expired",
		Catchers: []Catcher{session.part("ends_once").saying("the end")},
	},
	{
		ID: "M13", Bug: "a linearizable read asks the ensemble to sync instead of committing something",
		Catchers: []Catcher{
			simulated("TestALinearizableReadShowsWhatWasCommittedBefore").saying("a linearizable read shows"),
		},
	},
	{
		ID: "M14", Bug: "a write of a sequence that was not answered counts as done if the number is there that it would have left",
		Catchers: []Catcher{
			{Package: "recipes", Test: "TestNumbersAreUniqueAndInOrderWhateverIsLost", Complaint: "was handed out twice"},
		},
	},
	{
		ID: "M15", Bug: "what is stored of a sequence is what was handed out, and not what was reserved: a restarted sidecar repeats it",
		Catchers: []Catcher{{Package: "recipes", Test: "TestNumbersFromAReserveTakeNoRequest", Complaint: "is handed out twice"}},
	},
	{
		ID:     "M16",
		Bug:    "the id of a request is forgotten when the connection changes",
		Absent: "requests have no ids: a second Acquire is another contender, and is refused on the same lease",
	},
	{
		ID: "M17", Bug: "a stream's handler sends by itself, so that the end of a hold waits behind what its caller does not read",
		Catchers: []Catcher{
			{Package: "internal/outbox", Test: "TestAnOutboxKeepsTheNewestOfEachTopicAndNeverTheGrantFromItsCaller", Complaint: "deadlock"},
		},
	},
	{
		ID: "M18", Bug: "keepalive is off",
		Catchers: []Catcher{{Package: "internal/server", Test: "TestAFrozenCallerIsSilent", Complaint: `silent: got "false"|nothing came`}},
	},
	{
		ID: "M19", Bug: "a sidecar that stops forgets those that wait",
		Catchers: []Catcher{
			{Package: "service", Test: "TestDrainEndsWaitersAtOnceAndHoldersAtTheDeadline", Complaint: `Check: got "SIDECAR_STOPPING", want "held"`},
		},
	},
	{
		ID: "M20", Bug: "validity is counted on a clock that stops while the machine is suspended",
		Catchers: []Catcher{{
			Package: "internal/zookeeper", Test: "TestTheClockCountsTheTimeInWhichTheMachineWasSuspended", Complaint: "the clock shows",
		}},
	},
	{
		ID: "M21", Bug: "those who watch are not told that the reader has lost its connection, with all that happened meanwhile",
		Catchers: []Catcher{schedules.of(10).saying(stuck)},
	},
	{
		ID: "M22", Bug: "the reader goes on through another server, which may show less than it has shown before",
		Catchers: []Catcher{simulated("TestATreeNeverShowsLessThanBeforeWhenItsServerChanges").saying("the tree shows")},
	},
	{
		ID: "M23", Bug: "streams do not ask whose lease it is that they name; unary calls do",
		Catchers: []Catcher{{Package: "service", Test: "TestIDsAreOfNoUseToAnotherCaller", Complaint: `want "NotFound LEASE_NOT_FOUND"`}},
	},
	{
		ID: "M24", Bug: "names become paths as they come",
		Catchers: []Catcher{
			{Package: "service", Test: "FuzzANameNeverLeavesItsDirectoryAndIsReadBack", Complaint: "lies at"},
			{Package: "service", Test: "TestBadFieldsAreRefusedBeforeAnyWork", Complaint: `want "InvalidArgument INVALID_FIELD name"`},
		},
	},
	{
		ID: "M25", Bug: "what a session owns is limited in nodes, and not in the bytes of their paths",
		Catchers: []Catcher{session.part("refuses_to_own_more").saying("got <nil>")},
	},
	{
		ID: "M26", Bug: "the id of a lease stands in the log",
		Catchers: []Catcher{{Package: "service", Test: "TestNoIDStandsInTheLog", Complaint: "stands in the log"}},
	},
	{
		ID: "L1", Bug: "for the Go client, locks outlive the lease that they are held with",
		Catchers: []Catcher{{
			Package: "clients/go/sidekeeper", Test: "TestALockIsOverBeforeTheSidecarIsAskedToCloseItsLease",
			Complaint: "still valid when the sidecar gives it",
		}},
	},
	{
		ID: "L2", Bug: "a sidecar that stops gives locks away though their holders may not have heard of it",
		Catchers: []Catcher{{
			Package: "service", Test: "TestASidecarThatStopsKeepsTheLocksOfThoseWhoMayNotHaveHeard", Complaint: "given to others",
		}},
	},
	{
		ID: "E1", Bug: "a hold leaves its lease when its status is sent, and not when no caller counts on it any more",
		Catchers: []Catcher{{
			Package: "service", Test: "TestAHoldEndedByForceKeepsItsPlaceForAFrozenCaller", Complaint: "the lock is free while the frozen holder",
		}},
	},
	{
		ID: "E2", Bug: "a hold that is ended by force gives its place up at once, whatever its caller was told",
		Catchers: []Catcher{{
			Package: "service", Test: "TestAHoldEndedByForceKeepsItsPlaceForAFrozenCaller", Complaint: "the lock is free while the frozen holder",
		}},
	},
	{
		ID: "E3", Bug: "Check tells a hold's validity though the hold has ended meanwhile",
		Catchers: []Catcher{{Package: "service", Test: "TestCheckDoesNotOvertakeTheEndOfAHold", Complaint: `want "LOCK_BROKEN"`}},
	},
	{
		ID: "E4", Bug: "what Check of the lease has told is not waited for when a hold on it is ended by force",
		Catchers: []Catcher{{Package: "service", Test: "TestWhateverWasToldIsWaitedFor", Complaint: "the place was kept for"}},
	},
	{
		ID: "E5", Bug: "on the stream of a lease, the end of a lock is told after its place was given up",
		Catchers: []Catcher{{
			Package: "test/explore", Test: "TestEveryOrderOfASmallWorldKeepsWhatIsPromised", Complaint: "WhatIsGone",
		}},
	},
	{
		ID: "E6", Bug: "on the stream of a lease, what is checked while a lock ends, and told before its end, is not waited for",
		Catchers: []Catcher{
			{Package: "service", Test: "TestWhatIsCheckedWhileAHoldEndsIsWaitedFor", Complaint: "its caller may count on it"},
			{Package: "test/explore", Test: "TestEveryOrderOfASmallWorldKeepsWhatIsPromised", Complaint: "WhatIsGone"},
		},
	},
	{
		ID: "E7", Bug: "a caller whose stream goes on counts no more once a connection is closed over which it had asked",
		Catchers: []Catcher{
			{Package: "test/explore", Test: "TestEveryOrderOfASmallWorldKeepsWhatIsPromised", Complaint: "WhatIsGone"},
			{Package: "internal/lease", Test: "TestTheMachineDecidesAsTheGoroutinesDid", Complaint: "; want false"},
		},
	},
	{
		ID: "E8", Bug: "a wait that has ended stays in its queue for as long as its lease was said to be valid",
		Catchers: []Catcher{{Package: "service", Test: "TestAWaitThatEndsLeavesTheQueueThoughItsLeaseWasChecked", Complaint: `contenders: got "2"`}},
	},
	{
		ID: "U1", Bug: "a wait that is over is not told so while its place is being made",
		Catchers: []Catcher{{
			Package: "service", Test: "TestARequestEndsThoughTheEnsembleDoesNotAnswer", Complaint: "told when it has waited enough",
		}},
	},
	{
		ID: "U2", Bug: "a sidecar that stops forgets a request whose place is being made",
		Catchers: []Catcher{{Package: "service", Test: "TestARequestEndsThoughTheEnsembleDoesNotAnswer", Complaint: "told when the sidecar stops"}},
	},
	{
		ID: "U3", Bug: "the place of a hold goes when its end was handed over, though its caller may not have heard of it",
		Catchers: []Catcher{{
			Package: "service", Test: "TestAHoldEndedByForceKeepsItsPlaceForAFrozenCaller", Complaint: "the lock is free while the frozen holder",
		}},
	},
	{
		ID: "U5", Bug: "a caller that waits is told no more how it stands than what wakes it for its turn",
		Catchers: []Catcher{{
			Package: "service", Test: "TestAWaitingCallerIsToldItsPositionThoughTheOneBeforeItStays", Complaint: `want "queued 2"`,
		}},
	},
	{
		ID: "U6", Bug: "a member that was removed while its sidecar was away is told that its lock was broken",
		Catchers: []Catcher{{
			Package: "service", Test: "TestAMemberThatWasRemovedWhileItsSidecarWasAwayIsToldSo", Complaint: `want "2 ended 10 MEMBER_REMOVED"`,
		}},
	},
	{
		ID: "U7", Bug: "closing a lease waits for the disk of its record",
		Catchers: []Catcher{{
			Package: "service", Test: "TestALeaseIsClosedThoughTheDiskOfItsRecordHangs", Complaint: "what ends waits for the disk",
		}},
	},
	{
		ID: "U8", Bug: "nothing wakes a request that waits for its turn",
		Catchers: []Catcher{{
			Package: "service", Test: "TestLeadershipIsHandedToACandidateFurtherBehind", Complaint: "deadlock|timed out|got",
		}},
	},
	{
		ID: "U9", Bug: "the end of a lease's stream reaches requests that do not know of it yet",
		Catchers: []Catcher{{Package: "service", Test: "TestARequestThatHearsOfItsStreamsEndHasEnded", Complaint: "why: got"}},
	},
}

// simulated is a test on three simulated servers.
func simulated(test string) Catcher { return Catcher{Package: "test/simulation", Test: test} }

// command is a test of the program for people.
func command(test string) Catcher { return Catcher{Package: "cmd/sidekeeper", Test: test} }

// of has the catcher play so many random schedules.
func (c Catcher) of(schedules int) Catcher {
	c.Schedules = schedules
	return c
}

// part is the subtest whose name has this in it.
func (c Catcher) part(name string) Catcher {
	c.Test += "/" + name
	return c
}

func (c Catcher) saying(complaint string) Catcher {
	c.Complaint = complaint
	return c
}
