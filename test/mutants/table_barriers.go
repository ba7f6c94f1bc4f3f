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
		ID: "J2", Bug: "the first at a double barrier leaves before the others, so that no caller waits for these",
		Catchers: []Catcher{{
			Package: "recipes", Test: "TestTheFirstInTheOrderOfNamesLeavesADoubleBarrierLast", Complaint: "1 of 2 nodes stand",
		}},
	},
	{
		ID: "J3", Bug: "the last of ours leaves what opens a double barrier beside callers of kazoo, whose first waits for its end",
		Catchers: []Catcher{{
			Package: "recipes", Test: "TestTheLastOfOursLeavesNothingThatKazoosFirstWaitsFor", Complaint: "when ours have left there remain",
		}},
	},
	{
		ID: "J4", Bug: "where a round has left what opens a double barrier, ours do not see that a caller of Curator's came last",
		Catchers: []Catcher{{
			Package: "recipes", Test: "TestWhoeverComesLastWhereARoundHasLeftSomethingOpensTheBarrier", Complaint: "barrier waits, want inside",
		}},
	},
}
