package mutants

// waits are the mutants of explanations.
var waits = []Mutant{
	{
		ID: "X1", Bug: "readers are said to wait for each other",
		Catchers: []Catcher{{
			Package: "recipes", Test: "TestACircleIsWhoeverWaitsForOneAheadThatWaitsForItInTurn", Complaint: "got \"0 for b, 1 for a\"",
		}},
	},
	{
		ID: "X2", Bug: "what others have published for a lease is believed",
		Catchers: []Catcher{{
			Package: "recipes", Test: "TestACircleIsWhoeverWaitsForOneAheadThatWaitsForItInTurn", Complaint: "got \"0 for b, 1 for a\"",
		}},
	},
}
