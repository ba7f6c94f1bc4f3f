package mutants

// assignments are the mutants of sets whose items are shared out.
var assignments = []Mutant{
	{
		ID: "W60", Bug: "a plan is written in whichever version, so that one that is late undoes a newer one",
		Catchers: []Catcher{{
			Package: "recipes", Test: "TestAPlanThatIsLateUndoesNoNewerPlan", Complaint: `not "a:0, b:2, c:1, d:3"`,
		}},
	},
	{
		ID: "W61", Bug: "a member gets items as soon as it is there, so that one in a crash loop drags them along",
		Catchers: []Catcher{{
			Package: "recipes", Test: "TestAMemberThatComesBackAgainAndAgainWaitsForItsItems", Complaint: `not "a:0 1 2 3, b:"`,
		}},
	},
	{
		ID: "W62", Bug: "two members are told that an item is theirs that a plan names twice",
		Catchers: []Catcher{{
			Package: "recipes", Test: "TestAPlanThatNamesAnItemTwiceGivesItOnce", Complaint: `not "a:0 3, b:, none:1 2"`,
		}},
	},
	{
		ID: "W63", Bug: "a member of a set takes the place of another one of its name",
		Catchers: []Catcher{{
			Package: "service", Test: "TestASecondMemberOfANameWaits", Complaint: `want "DeadlineExceeded WAIT_TIMEOUT"`,
		}},
	},
	{
		ID: "W64", Bug: "a plan rests on what a sidecar that lags had seen, so that members that have gone get items",
		Catchers: []Catcher{{
			Package: "recipes", Test: "TestAPlannerThatLagsPlansForNoMemberThatHasGone", Complaint: `none:1 3", not "a:0 2, d:1 3"`,
		}},
	},
}
