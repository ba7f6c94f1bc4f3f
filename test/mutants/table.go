package mutants

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

// Table is all mutants: first those of the formula for how long a lease is valid, then those of the plan by their numbers, and
// then bugs that there were.
var Table = append([]Mutant{
	{
		ID: "V1", Bug: "a lease is valid for a timeout from its newest answered request, whoever answered it, as most clients have it",
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
		ID:     "M3",
		Bug:    "a lock delay that was configured is not kept after a loss",
		Absent: "there is no lock delay",
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
			{Package: "service", Test: "TestAnOutboxKeepsTheNewestOfEachTopicAndNeverTheGrantFromItsCaller", Complaint: "deadlock"},
		},
	},
	{
		ID: "M18", Bug: "keepalive is off",
		Catchers: []Catcher{{Package: "internal/server", Test: "TestAFrozenCallerIsSilent", Complaint: `silent: got "false"|nothing came`}},
	},
	{
		ID: "M19", Bug: "a sidecar that stops forgets those that wait",
		Catchers: []Catcher{
			{Package: "service", Test: "TestDrainEndsWaitersAtOnceAndHoldersAtTheDeadline", Complaint: `want "Unavailable SIDECAR_STOPPING"`},
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
		ID: "E1", Bug: "a hold leaves its lease when its status is sent, and not when nobody counts on it any more",
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
			Package: "service", Test: "TestAnEndThatNobodyAskedForIsToldBeforeThePlaceIsGivenUp", Complaint: "before the place is removed",
		}},
	},
	{
		ID: "E6", Bug: "on the stream of a lease, what is checked while a lock ends, and told before its end, is not waited for",
		Catchers: []Catcher{{Package: "service", Test: "TestWhatIsCheckedWhileAHoldEndsIsWaitedFor", Complaint: "its caller may count on it"}},
	},
	{
		ID: "Z1", Bug: "what notices that a lease is over are timers alone, which stand still while the machine is suspended",
		Catchers: []Catcher{simulated("TestWhatIsOverEndsAtOnceWhenAMachineWakes").saying("after its machine has woken")},
	},
	{
		ID: "Z2", Bug: "a place whose deletion is refused is forgotten, and stands in the way of others for as long as its session lives",
		Catchers: []Catcher{simulated("TestWhatIsGivenUpGoesThoughItsDeletionIsRefusedForAWhile").saying("and there still are")},
	},
	{
		ID: "Z3", Bug: "a lost lease's session is closed at the ensemble sooner than it could expire there",
		Catchers: []Catcher{simulated("TestALostSessionIsNotClosedSoonerThanItCouldExpire").saying("where it could expire after")},
	},
	{
		ID: "Z4", Bug: "a lost lease's session is closed at the ensemble before its streams have ended",
		Catchers: []Catcher{simulated("TestALostSessionIsNotClosedBeforeItsOwnerSaysSo").saying("after contact was back")},
	},
	{
		ID: "R1", Bug: "heartbeats find that a place is there, and not whether somebody has written that it must end",
		Catchers: []Catcher{
			simulated("TestAMarkBoundsWhatIsToldOfAHoldThoughTheReaderIsBlind").saying("after the removal"),
			simulated("TestAMarkBoundsWhatIsToldOfAMemberThoughTheReaderIsBlind").saying("after the removal"),
		},
	},
	{
		ID: "R2", Bug: "what a heartbeat finds of a place counts from when it was answered, and not from when it was sent",
		Catchers: []Catcher{simulated("TestAMarkBoundsWhatIsToldOfAHoldThoughTheReaderIsBlind").saying("longer than a mark allows")},
	},
	{
		ID: "R3", Bug: "that a place must end is Seen like anything else, though its stream has not ended yet",
		Catchers: []Catcher{simulated("TestWhatIsReadAndNotActedUponBoundsWhatIsTold").saying("a (hold|member) is valid for")},
	},
	{
		ID: "R4", Bug: "with static proof, a heartbeat shows all that was committed before it was sent",
		Catchers: []Catcher{simulated("TestAMarkBoundsWhatIsToldWithStaticProof").saying("longer than a mark allows")},
	},
	{
		ID: "R5", Bug: "a member's time runs from before what is asked of it is written",
		Catchers: []Catcher{{Package: "recipes", Test: "TestTheTimeThatIsLeftBeginsWhenItIsAskedFor", Complaint: "after 20s and not 23s"}},
	},
	{
		ID: "R6", Bug: "a holder's time runs on when somebody has overwritten that it must end",
		Catchers: []Catcher{{
			Package: "recipes", Test: "TestTheTimeThatIsLeftBeginsAnewWhenWhatWasAskedIsOverwritten", Complaint: "after 20s and not 30s",
		}},
	},
	{
		ID: "K1", Bug: "the connection of a `lock run` that is killed ends with it, though its command lives",
		Catchers: []Catcher{command("TestALockIsKeptWhileItsKilledRunnersCommandLives").saying("exit code 3, want 75")},
	},
	{
		ID: "K2", Bug: "what a command under a lock has started in a session of its own is not killed with it",
		Catchers: []Catcher{command("TestTheSidecarSeesAKilledRunnerGoWhenNothingOfItsCommandIsLeft").saying("still work")},
	},
	{
		ID: "K3", Bug: "the command of a `lock run` that is frozen goes on when the lock's validity is over",
		Catchers: []Catcher{
			command("TestACommandWhoseRunnerIsFrozenIsKilledBeforeTheValidityEnds").saying("after a question that was answered with"),
		},
	},
	{
		ID: "K4", Bug: "a `lock run` whose guardian is frozen waits for it, and the command outlives the lock",
		Catchers: []Catcher{
			command("TestNothingOfACommandOutlivesItsLockWhenItsGuardianIsFrozen").saying("still work when the validity is over"),
		},
	},
	{
		ID: "K5", Bug: "a guardian that crashes is taken for a command that has ended",
		Catchers: []Catcher{
			command("TestNothingOfACommandIsLeftWhenItsGuardianIsKilled").part("aborted").saying("still work when the lock is given up"),
		},
	},
	{
		ID: "K6", Bug: "a `lock run` within a `lock run` is killed before what it runs",
		Catchers: []Catcher{{
			Package: "internal/supervise", Test: "TestAProcessIsKilledAfterItsDescendants", Complaint: "its descendants still work when it is dead",
		}},
	},
	{
		ID: "P1", Bug: "a session is used again by another lease though the ensemble has not carried out all that was asked on it",
		Catchers: []Catcher{simulated("TestASessionIsUsedAgainIfItIsClean/with_a_request_that_was_refused").saying("used again: true")},
	},
	{
		ID: "P2", Bug: "a session is used again by another lease over another connection than its first",
		Catchers: []Catcher{simulated("TestASessionIsUsedAgainIfItIsClean/with_another_connection_than_at_first").saying("used again: true")},
	},
	{
		ID: "C1", Bug: "the Go client acknowledges the end of a hold before it is over for its caller",
		Catchers: []Catcher{{
			Package: "clients/go/sidekeeper", Test: "TestAHoldThatEndedOtherwiseThanByItsCallerIsAcknowledgedOnceAndWhenItIsOver",
			Complaint: "has not ended when the sidecar gives the lock to others",
		}},
	},
	{
		ID: "C2", Bug: "the Go client sets its timers for the end of a validity, though they stand still while the machine is suspended",
		Catchers: []Catcher{{
			Package: "clients/go/sidekeeper", Test: "TestWhatRanOutWhileTheMachineWasSuspendedIsOverAsSoonAsItWakesUp",
			Complaint: "what had to happen has not happened",
		}},
	},
	{
		ID: "M27", Bug: "a waiter takes whatever wakes it for the end of its predecessor",
		Catchers: []Catcher{{
			Package: "recipes", Test: "TestAWaiterThatIsWokenHasItsTurnOnlyWhenItsPredecessorIsGone", Complaint: "beside the holder",
		}},
	},
	{
		ID: "M28", Bug: "whatever fires a watch counts as the deletion of the contender",
		Catchers: []Catcher{{
			Package: "internal/zookeeper", Test: "TestADeletionIsRememberedOnlyIfItCanBeReliedOn",
			Complaint: "other data: deleted true",
		}},
	},
	{
		ID: "M29", Bug: "a deletion is believed though no watch stood on the node",
		Catchers: []Catcher{{
			Package: "internal/zookeeper", Test: "TestADeletionIsRememberedOnlyIfItCanBeReliedOn",
			Complaint: "a node that was not watched: deleted true",
		}},
	},
	{
		ID: "M30", Bug: "a deletion is remembered of a name that somebody may use again",
		Catchers: []Catcher{{
			Package: "internal/zookeeper", Test: "TestADeletionIsRememberedOnlyIfItCanBeReliedOn",
			Complaint: "a name that may be used again: deleted true",
		}},
	},
	{
		ID: "M31", Bug: "a waiter has its turn when the nearest of those ahead was seen deleted, whoever else stands there",
		Catchers: []Catcher{{
			Package: "recipes", Test: "TestAWaiterHasItsTurnOnlyWhenAllAheadAreGone", Complaint: "contenders are holding, waiting, holding",
		}},
	},
	{
		ID: "S1", Bug: "eight characters that somebody else has stored are gone on from as a number",
		Catchers: []Catcher{{
			Package: "recipes", Test: "TestWhatOthersHaveStoredGoesOnOrIsRefused", Complaint: `"12345679" and child "": \d+, want`,
		}},
	},
	{
		ID: "S2", Bug: "a sequence that somebody has set back goes on from there",
		Catchers: []Catcher{{Package: "recipes", Test: "TestASequenceThatIsSetBackRepeatsNothing", Complaint: "behind 12"}},
	},
	{
		ID: "V9", Bug: "a leader's pings are taken to be never late",
		Catchers: []Catcher{{
			Package: "internal/zookeeper", Test: "TestAHeartbeatBehindTheLastPingOfALateLeaderDoesNotCount", Complaint: "outlived the session",
		}},
	},
	{
		ID: "R7", Bug: "what is asked so often that no heartbeat finds what was seen just before costs the lease",
		Catchers: []Catcher{simulated("TestAskingAgainAndAgainCostsNoLock").saying("valid for")},
	},
	{
		ID: "R8", Bug: "an update by a member overwrites that it must end",
		Catchers: []Catcher{{Package: "recipes", Test: "TestAnUpdateLeavesWhatIsAskedOfAMember", Complaint: "it sees map"}},
	},
	{
		ID: "R9", Bug: "who breaks a hold removes it when the time is over, without a last look",
		Catchers: []Catcher{{Package: "recipes", Test: "TestNobodyIsRemovedBeforeALastLookAtWhatWasAsked", Complaint: "after 20s and not 40s"}},
	},
	{
		ID: "R10", Bug: "no node is believed that its session's timeout is above ten minutes",
		Catchers: []Catcher{{Package: "recipes", Test: "TestWhatANodeTellsOfTheLongestTimeoutIsBelieved", Complaint: "told of 20m0s"}},
	},
	{
		ID: "R11", Bug: "a holder whose timeout is overwritten does not tell it again",
		Catchers: []Catcher{{Package: "recipes", Test: "TestAHolderWhoseTimeoutIsOverwrittenTellsItAgain", Complaint: "and not 1m2s"}},
	},
}, heartbeats...)

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
