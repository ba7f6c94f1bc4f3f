package mutants

// inTheJournal is a test of what is kept of leases that may be resumed.
func inTheJournal(test string) Catcher { return Catcher{Package: "internal/journal", Test: test} }

// whoReturns is a test of who comes back to a lease after a restart.
func whoReturns(test, complaint string) Catcher {
	return Catcher{Package: "service", Test: test, Complaint: complaint}
}

// returns are the mutants of leases that outlive their sidecar.
var returns = []Mutant{
	{
		ID: "Y1", Bug: "a sidecar that comes back to a session believes the server without a transaction of its own",
		Catchers: []Catcher{simulated("TestWhoComesBackIsShownWhatALateServerHasYetToHearOf").saying("is shown")},
	},
	{
		ID: "Y2", Bug: "a lease whose closing was in flight may be resumed",
		Catchers: []Catcher{{
			Package: "service", Test: "TestALockIsFreeThoughTheDiskOfItsLeasesRecordHangs", Complaint: "closed while the record stands",
		}},
	},
	{
		ID: "Y3", Bug: "a lease is resumed for another caller",
		Catchers: []Catcher{inTheJournal("TestARecordIsHandedOutOnceToItsCaller").saying("to somebody else")},
	},
	{
		ID: "Y4", Bug: "a session is used by two who come back to it",
		Catchers: []Catcher{inTheJournal("TestARecordIsHandedOutOnceToItsCaller").saying("is handed out twice")},
	},
	{
		ID: "Y5", Bug: "a session that two leases were recorded with is used",
		Catchers: []Catcher{inTheJournal("TestWhatMayNotBeUsedIsRefusedAndDeleted").part("with_the_session").saying("is believed")},
	},
	{
		ID: "Y6", Bug: "the journal is behind by one write",
		Catchers: []Catcher{inTheJournal("TestARecordIsHandedOutOnceToItsCaller").saying("after its removal")},
	},
	{
		ID: "Y7", Bug: "a client counts its validity on while its sidecar is away",
		Catchers: []Catcher{{
			Package: "clients/go/sidekeeper", Test: "TestALeaseIsLostWhenItsValidityRunsOutBeforeItIsResumed",
			Complaint: "what had to happen has not happened|for longer than was told",
		}},
	},
	{
		ID: "Y8", Bug: "a sidecar takes the state of one that is only frozen",
		Catchers: []Catcher{inTheJournal("TestADirectoryIsOneProcessesAndNobodyElseReadsIt").saying("<nil>")},
	},
	{
		ID: "Y9", Bug: "a waiter takes another place, at the end of the line, when its sidecar is replaced",
		Catchers: []Catcher{{Package: "service", Test: "TestWhoWaitsComesBackToItsOwnPlace", Complaint: "a wait"}},
	},
	{
		ID: "Y10", Bug: "a sidecar that is stopped to hand over ends what its callers come back to in that moment",
		Catchers: []Catcher{{
			Package: "service", Test: "TestASidecarThatStopsDoesNotEndWhatIsComeBackTo",
			Complaint: `got "1 ended 1\d SIDECAR_STOPPING", want "(opened|1 granted)"`,
		}},
	},
	{
		ID: "Y11", Bug: "a hold from before a restart that ends before it is held again keeps its place for no caller",
		Catchers: []Catcher{whoReturns("TestAClaimThatIsNotHeldAgainEndsAsAHold", "its place is gone before its end is acknowledged")},
	},
	{
		ID: "Y12", Bug: "after a restart, a place that is kept for its caller, and not held again, can end the lease",
		Catchers: []Catcher{whoReturns("TestAPlaceThatIsNotHeldAgainBoundsTheLeaseNoLonger", "its place bounds the lease still")},
	},
	{
		ID: "Y13", Bug: "what was held before a restart is ended as a wait is when the sidecar stops before it is held again",
		Catchers: []Catcher{whoReturns("TestASidecarThatStopsLetsItsCallersHoldWhatIsAboutToComeBack", "1 ended 14 SIDECAR_STOPPING")},
	},
	{
		ID: "Y14", Bug: "the id of a hold that ended in a restart leads to nothing, so that its end cannot be acknowledged",
		Catchers: []Catcher{whoReturns("TestAClaimThatIsNotHeldAgainEndsAsAHold", "Check: got .NotFound HOLD_NOT_FOUND")},
	},
	{
		ID: "Y15", Bug: "a caller that asks for a hold before it is held again after a restart is told that there is none",
		Catchers: []Catcher{whoReturns("TestWhoAsksForWhatIsAboutToComeBackIsAnsweredWhenItHas", "before the lease is resumed: got .NotFound")},
	},
	{
		ID: "Y16", Bug: "a lease's validity is over, and its client takes the lock on it for held, as if there were none",
		Catchers: []Catcher{{
			Package: "clients/go/sidekeeper", Test: "TestALeaseOnWhichNothingStandsIsNotLostWhenItsValidityRunsOut", Complaint: "has not happened",
		}},
	},
	{
		ID: "Y17", Bug: "a drain ends the lease of a caller that has let go, and whose place is not gone",
		Catchers: []Catcher{{
			Package: "service", Test: "TestADrainIsNotOverBeforeWhatWasGivenUpIsSaidToBeGone",
			Complaint: `got "SIDECAR_STOPPING", want "ended 0"`,
		}},
	},
	{
		ID: "Y18", Bug: "a client tells that a lock is lost which it never had, since the lease that it opened for the lock is",
		Catchers: []Catcher{{
			Package: "clients/go/sidekeeper", Test: "TestALeaseThatIsLostIsSaidOfItsOnlyLockFirst", Complaint: "LEASE_LOST",
		}},
	},
}
