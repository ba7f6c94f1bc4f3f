package mutants

// elections are the mutants of elections.
var elections = []Mutant{
	{
		ID: "T1", Bug: "a leader is asked to yield while others stand ahead of the candidate that shall lead",
		Catchers: []Catcher{simulated("TestOneCandidateLeadsAtATimeThoughLeadershipIsHandedOver").of(10).saying("the leader is asked to yield to")},
	},
	{
		ID: "T2", Bug: "each waiter for an election's lock is asked to step back, even one that is no candidate",
		Catchers: []Catcher{{
			Package: "service", Test: "TestALeaderIsLeftAloneWhereTheCandidateCannotBeNext", Complaint: "Transfer over a lock: got \"OK",
		}},
	},
	{
		ID: "T3", Bug: "a watch of an election shows whatever term its reader shows",
		Catchers: []Catcher{{Package: "service", Test: "TestNoEarlierTermIsShownAfterALaterOne", Complaint: "got \"in term 3"}},
	},
	{
		ID: "T4", Bug: "a leader that proclaims forgets that it was asked to yield",
		Catchers: []Catcher{{Package: "service", Test: "TestAProclaimedValueIsShownAsLongAsTheTermLasts", Complaint: "still asked"}},
	},
	{
		ID: "T5", Bug: "a leader whose node others have overwritten shows again what it showed first",
		Catchers: []Catcher{{
			Package: "service", Test: "TestAProclaimedValueIsShownAsLongAsTheTermLasts", Complaint: "overwritten it: got \"one",
		}},
	},
	{
		ID: "T6", Bug: "a leader is asked to yield to a candidate that is about to step back for an earlier one",
		Catchers: []Catcher{{
			Package: "service", Test: "TestALeaderDoesNotYieldToACandidateThatIsAboutToStepBack", Complaint: "got \"OK",
		}},
	},
}
