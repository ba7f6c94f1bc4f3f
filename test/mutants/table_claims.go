package mutants

// claims are the mutants of locks that are held without a process.
var claims = []Mutant{
	{
		ID: "W40", Bug: "a claim whose time is over ends in whichever version, so that one ends that was extended meanwhile",
		Catchers: []Catcher{{
			Package: "recipes", Test: "TestAClaimThatIsExtendedMeanwhileDoesNotEnd", Complaint: `contenders are holding; want waiting`,
		}},
	},
	{
		ID: "W41", Bug: "a claim ends by the clock of the machine that removes it",
		Catchers: []Catcher{{
			Package: "recipes", Test: "TestAClaimEndsWhenBothClocksArePastItsEndAndNotBefore", Complaint: `contenders are holding; want waiting`,
		}},
	},
	{
		ID: "W42", Bug: "Check of a claim answers by what a reader shows that lags",
		Catchers: []Catcher{{
			Package: "recipes", Test: "TestACheckOfAClaimShowsWhatWasCommittedBefore", Complaint: `check: told "1h0m0s 58s", want "over"`,
		}},
	},
	{
		ID: "W43", Bug: "a claim is granted over the mark of an operator who ends it",
		Catchers: []Catcher{{
			Package: "recipes", Test: "TestAClaimIsNotGrantedOnceItsEndIsAskedFor", Complaint: `claim deploy: told "ok", want "gone"`,
		}},
	},
	{
		ID: "W44", Bug: "a broken claim is removed while it counts, after the timeout that its place tells no more",
		Catchers: []Catcher{{
			Package: "recipes", Test: "TestAClaimWhoseNodeCuratorHasOverwrittenIsBrokenLate", Complaint: `after 1[0-9]`,
		}},
	},
}
