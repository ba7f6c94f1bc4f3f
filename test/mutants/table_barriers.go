package mutants

// barriers are the mutants of double barriers.
var barriers = []Mutant{
	{
		ID: "J1", Bug: "what a round of a double barrier left behind whose last caller died lets everybody in",
		Catchers: []Catcher{{
			Package: "recipes", Test: "TestARoundWhoseLastCallerDiedLetsNobodyIn", Complaint: "a caller at the barrier inside, want waits",
		}},
	},
	{
		ID: "J2", Bug: "the first at a double barrier leaves before the others, so that nobody waits for these",
		Catchers: []Catcher{{
			Package: "recipes", Test: "TestTheFirstInTheOrderOfNamesLeavesADoubleBarrierLast", Complaint: "1 of 2 nodes stand",
		}},
	},
}
