package mutants

// agreements are the mutants of agreements.
var agreements = []Mutant{
	{
		ID: "A1", Bug: "COMMIT is decided by the votes as they were listed, though one may have gone since",
		Catchers: []Catcher{{
			Package: "recipes", Test: "TestACommitThatComesLateIsNotCarriedOut", Complaint: "who wrote late: COMMIT, want ABORT",
		}},
	},
	{
		ID: "A2", Bug: "a participant that died before the decision votes again under its name",
		Catchers: []Catcher{{
			Package: "recipes", Test: "TestAParticipantThatDiedUnseenDoesNotVoteAgain", Complaint: "voter 0: COMMIT, want ABORT",
		}},
	},
	{
		ID: "A3", Bug: "an agreement is decided in whichever version, so that a decision replaces another one",
		Catchers: []Catcher{{
			Package: "recipes", Test: "TestACommitThatComesLateIsNotCarriedOut", Complaint: "who wrote late: COMMIT, want ABORT",
		}},
	},
}
