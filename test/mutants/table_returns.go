package mutants

// inTheJournal is a test of what is kept of leases that may be resumed.
func inTheJournal(test string) Catcher { return Catcher{Package: "internal/journal", Test: test} }

// returns are the mutants of leases that outlive their sidecar.
var returns = []Mutant{
	{
		ID: "Y1", Bug: "who comes back to a session believes the server without a transaction of its own",
		Catchers: []Catcher{simulated("TestNobodyHoldsBesideWhoComesBack").of(60).saying("is shown")},
	},
	{
		ID: "Y2", Bug: "a lease whose closing was in flight may be resumed",
		Catchers: []Catcher{{
			Package: "service", Test: "TestALeaseThatEndsIsForgottenBeforeItsSessionIsClosed", Complaint: "noted when the session is closed",
		}},
	},
	{
		ID: "Y3", Bug: "a lease is resumed for somebody else",
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
		ID: "Y9", Bug: "who waits takes another place, at the end of the line, when its sidecar is replaced",
		Catchers: []Catcher{{Package: "service", Test: "TestWhoWaitsComesBackToItsOwnPlace", Complaint: "a wait"}},
	},
	{
		ID: "Y10", Bug: "a sidecar that is stopped to hand over ends what its callers come back to in that moment",
		Catchers: []Catcher{{
			Package: "service", Test: "TestASidecarThatStopsDoesNotEndWhatIsComeBackTo", Complaint: "a hold: the sidecar is stopping",
		}},
	},
}
