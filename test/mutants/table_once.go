package mutants

// once are the mutants of work that is done once.
var once = []Mutant{
	{
		ID: "U10", Bug: "a caller that waited while the work succeeded begins it again",
		Catchers: []Catcher{{
			Package: "recipes", Test: "TestWorkThatHasSucceededIsNotBegunAgain", Complaint: `behind it: told "begun 2 after SUCCEEDED`,
		}},
	},
	{
		ID: "U11", Bug: "an attempt is taken for lost though its place stands",
		Catchers: []Catcher{{
			Package: "service", Test: "TestBeginThatDoesNotWaitDoesNotWaitForAPlaceElsewhereEither",
			Complaint: `got "begun 2.*", want "FailedPrecondition LOCK_HELD"`,
		}},
	},
	{
		ID: "U12", Bug: "an outcome is recorded though the lock under which that was sent is another caller's by now",
		Catchers: []Catcher{{Package: "recipes", Test: "TestAWriteThatComesLateChangesNothing/finish", Complaint: `late: told "ok", want "gone"`}},
	},
	{
		ID: "U13", Bug: "a sweep removes a record as it was seen before its lock was taken, though it may be another one by now",
		Catchers: []Catcher{{Package: "recipes", Test: "TestASweepRemovesNoRecordThatWasMadeAnew", Complaint: "the late sweep removes 1"}},
	},
	{
		ID: "U14", Bug: "work that has failed is repeated though its caller wants no other attempt",
		Catchers: []Catcher{{
			Package: "recipes", Test: "TestAnAttemptThatDidNotSucceedIsRepeatedAsFarAsThatIsWanted",
			Complaint: `skips what has failed: told "begun 3.*", want "not repeated"`,
		}},
	},
	{
		ID: "U15", Bug: "a caller does not recognise its own record after a lost reply, and waits for itself",
		Catchers: []Catcher{{
			Package: "service", Test: "TestWorkIsRecordedWhateverBecomesOfTheReplies",
			Complaint: `got "DeadlineExceeded WAIT_TIMEOUT", want "begun 1"`,
		}},
	},
	{
		ID: "U16", Bug: "Finish gives up the place first and records the outcome afterwards, so that another attempt begins in between",
		Catchers: []Catcher{{
			Package: "service", Test: "TestFinishOverAnotherConnectionIsRecordedBeforeAnotherAttemptBegins",
			Complaint: `Finish: got "FailedPrecondition SUPERSEDED"`,
		}},
	},
}
