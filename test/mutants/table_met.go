package mutants

// met are bugs that there were, and that each step could have made.
var met = []Mutant{
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
		ID: "D1", Bug: "a session that comes back does not say what the answers to our own requests have shown it",
		Catchers: []Catcher{simulated("TestAHandshakeTellsWhatOurOwnRequestsHaveShown").saying("a handshake says")},
	},
	{
		ID: "D2", Bug: "a request of our own that was written in part leaves its connection standing",
		Catchers: []Catcher{simulated("TestARequestThatIsWrittenInPartCostsItsConnection").saying("it took|refused by the ensemble")},
	},
	{
		ID: "D3", Bug: "a place is granted as it is made, whatever places stand ahead of it",
		Catchers: []Catcher{{
			Package: "recipes", Test: "TestAPlaceIsNotGrantedAsItIsMadeIfAnythingIsUnusual", Complaint: "contenders are holding; want waiting",
		}},
	},
	{
		ID: "D4", Bug: "a place is granted as it was made though its session knows that another program has deleted it",
		Catchers: []Catcher{{Package: "recipes", Test: "TestAPlaceIsGrantedAsItIsMadeOnlyWhileItIsItsSessions", Complaint: "it was granted"}},
	},
	{
		ID: "D5", Bug: "a place is granted as it was made though its session is not proved",
		Catchers: []Catcher{{Package: "recipes", Test: "TestAPlaceIsGrantedAsItIsMadeOnlyWhileItIsItsSessions", Complaint: "it was granted"}},
	},
	{
		ID: "D6", Bug: "the numbers of a session's own requests begin anew with each connection",
		Catchers: []Catcher{simulated("TestASessionUsesNoNumberTwice").saying("under the numbers")},
	},
	{
		ID: "D7", Bug: "a request that comes while another one goes out waits for ever",
		Catchers: []Catcher{{
			Package: "internal/zookeeper", Test: "TestWhatIsAskedWhileOthersWriteIsWrittenAfterIt", Complaint: "deadlock|timed out|writes",
		}},
	},
	{
		ID: "D8", Bug: "a request goes out after its caller has heard that it is lost",
		Catchers: []Catcher{{Package: "internal/zookeeper", Test: "TestWhatIsLostIsNotWritten", Complaint: "deadlock|writes"}},
	},
	{
		ID: "R1", Bug: "heartbeats find that a place is there, and not whether an operator has written that it must end",
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
		ID: "R6", Bug: "a holder's time runs on when another program has overwritten that it must end",
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
		ID: "K7", Bug: "a `lock run` that comes back to its lock does so over a connection that its guardian does not keep",
		Catchers: []Catcher{{
			Package: "internal/supervise", Test: "TestAGuardianHasEachConnectionBeforeItIsUsed", Complaint: "i/o timeout",
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
			Complaint: "what had to happen has not happened|after the machine woke up",
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
		ID: "M30", Bug: "a deletion is remembered of a name that another program may use again",
		Catchers: []Catcher{{
			Package: "internal/zookeeper", Test: "TestADeletionIsRememberedOnlyIfItCanBeReliedOn",
			Complaint: "a name that may be used again: deleted true",
		}},
	},
	{
		ID: "M31", Bug: "a waiter has its turn when the nearest of those ahead was seen deleted, whatever other places stand there",
		Catchers: []Catcher{{
			Package: "recipes", Test: "TestAWaiterHasItsTurnOnlyWhenAllAheadAreGone", Complaint: "contenders are holding, waiting, holding",
		}},
	},
	{
		ID: "S1", Bug: "a sequence goes on from eight characters that another program has stored, as if they were a number",
		Catchers: []Catcher{{
			Package: "recipes", Test: "TestWhatOthersHaveStoredGoesOnOrIsRefused", Complaint: `"12345679" and child "": \d+, want`,
		}},
	},
	{
		ID: "S2", Bug: "a sequence that another program has set back goes on from there",
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
		ID: "R9", Bug: "the sidecar that breaks a hold removes it when the time is over, without a last look",
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
	{
		ID: "R12", Bug: "a member that replaces another asks the one that the reader shows, though a third has its name by now",
		Catchers: []Catcher{simulated("TestNoAnswerRestsOnWhatALaggingServerShows").saying("the member is removed from outside .* too soon")},
	},
	{
		ID: "R13", Bug: "what another session's heartbeat has found changed of a place counts as found unchanged",
		Catchers: []Catcher{simulated("TestAMarkBoundsWhatIsToldOfAHoldThatAnotherSessionAsksFor").saying("longer than a mark allows")},
	},
	{
		ID: "R14", Bug: "a member whose making was not answered bounds later answers by when it was first asked for",
		Catchers: []Catcher{simulated("TestAMemberThatIsFoundBoundsNothingThatWasTold").saying("was told")},
	},
	{
		ID: "M32", Bug: "the WriteLock that comes with ZooKeeper is not waited for, nor are the contenders of its manual",
		Catchers: []Catcher{{Package: "recipes", Test: "TestForeignContendersAreWaitedFor", Complaint: "are holding; want waiting"}},
	},
	{
		ID: "M33", Bug: "readers do not wait for the writers ahead of them",
		Catchers: []Catcher{{Package: "recipes", Test: "TestEachModeWaitsForWhomItMust", Complaint: `r waits for "", not`}},
	},
	{
		ID: "M34", Bug: "writers do not wait for the readers ahead of them",
		Catchers: []Catcher{{Package: "recipes", Test: "TestEachModeWaitsForWhomItMust", Complaint: `w waits for "", not`}},
	},
	{
		ID: "M35", Bug: "a member that falls out of a view which is too large is told as one that has left",
		Catchers: []Catcher{{Package: "service", Test: "TestWhatChangedIsToldApart", Complaint: `difference: got "true -c3`}},
	},
	{
		ID: "M36", Bug: "a watch is armed while another one is removed on its path, and may be removed instead",
		Catchers: []Catcher{{Package: "internal/zookeeper", Test: "TestNoWatchIsArmedOnAPathWhileOneIsRemoved", Complaint: "it is armed"}},
	},
	{
		ID: "G1", Bug: "what guards a write is read before it, and not in its transaction",
		Catchers: []Catcher{{
			Package: "service", Test: "TestAWriteIsRefusedWhosePlaceGoesAfterItsGuardWasRead", Complaint: `guarded: got "written"`,
		}},
	},
	{
		ID: "G2", Bug: "a place that only waits guards a write",
		Catchers: []Catcher{{
			Package: "service", Test: "TestAGuardedWriteIsMadeOnlyWhileTheHoldLasts", Complaint: `by one that waits: got "written"`,
		}},
	},
	{
		ID: "G3", Bug: "what guards a member's joining is read before it, and not in its transaction",
		Catchers: []Catcher{{
			Package: "service", Test: "TestAPlaceThatGoesAfterItsGuardWasReadRefusesAMember", Complaint: `got "joined"`,
		}},
	},
}
