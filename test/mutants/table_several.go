package mutants

// several are the mutants of several locks that are taken at once.
var several = []Mutant{
	{
		ID: "L3", Bug: "the places of several locks are taken one after the other, so that callers wait for each other in a circle",
		Catchers: []Catcher{{
			Package: "recipes", Test: "TestWhoeverTakesSeveralLocksAtOnceNeverWaitsInACircle", Complaint: "not granted in an hour",
		}},
	},
	{
		ID: "G4", Bug: "a guard by the hold of several locks checks the first of them",
		Catchers: []Catcher{{
			Package: "service", Test: "TestAGuardByTheHoldOfSeveralLocksChecksAllOfThem", Complaint: "got \"written\"",
		}},
	},
}
