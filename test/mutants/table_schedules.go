package mutants

// ticks are the mutants of schedules.
var ticks = []Mutant{
	{
		ID: "W30", Bug: "a schedule is changed in whichever version, so that a tick that has begun meanwhile begins again",
		Catchers: []Catcher{{
			Package: "recipes", Test: "TestAChangeThatAnotherOneHasOvertakenLosesNothing", Complaint: `what began: told "next 01T01:00"`,
		}},
	},
	{
		ID: "W31", Bug: "a tick begins without a check that the worker's place stands",
		Catchers: []Catcher{{Package: "recipes", Test: "TestAWorkerWithoutItsPlaceBeginsNothing", Complaint: `told "01T01:00 1", want "gone"`}},
	},
	{
		ID: "W32", Bug: "a tick that was lost is repeated though its schedule says that none is",
		Catchers: []Catcher{{
			Package: "recipes", Test: "TestALostTickBeginsAgainAsFarAsThatIsWanted", Complaint: `no other: told "01T03:00 2", want "not yet"`,
		}},
	},
	{
		ID: "W33", Bug: "a tick begins by the clock of the worker's machine",
		Catchers: []Catcher{{
			Package: "recipes", Test: "TestNothingBeginsWhileClocksDisagree", Complaint: `a year ahead: told "01T01:00 1", want "clocks"`,
		}},
	},
	{
		ID: "W34", Bug: "the outcome of a lost attempt is recorded though another attempt has followed",
		Catchers: []Catcher{{
			Package: "recipes", Test: "TestAnOutcomeIsRecordedAfterALossUnlessAnotherAttemptHasFollowed",
			Complaint: `superseded: told "ok", want "superseded"`,
		}},
	},
	{
		ID: "W35", Bug: "a late change of a schedule that was removed changes the one that was made anew",
		Catchers: []Catcher{{Package: "recipes", Test: "TestALateChangeChangesNoScheduleThatWasMadeAnew", Complaint: "told .*, want "}},
	},
	{
		ID: "W36", Bug: "metrics tell the states of schedules as they were before contact to the ensemble was lost",
		Catchers: []Catcher{{
			Package: "service", Test: "TestScheduleStatesTellWhichSchedulesAreOverdue",
			Complaint: `without contact: got .*overdue.*, want .*unknown`,
		}},
	},
	{
		ID: "W37", Bug: "a schedule that is resumed is overdue at once, by the ticks that its pause left out",
		Catchers: []Catcher{{
			Package: "recipes", Test: "TestAScheduleThatIsPausedOrNewIsNotOverdue", Complaint: `resumed: told "01T02:05", want "02T12:05"`,
		}},
	},
}
