package mutants

// queues are the mutants of queues of items.
var queues = []Mutant{
	{
		ID: "N1", Bug: "an item is taken as the reader shows it, without a check in the transaction: one that is done is delivered again",
		Catchers: []Catcher{{
			Package: "recipes", Test: "TestAnItemThatAnotherIsDoneWithIsNotDelivered", Complaint: `takers are \[a\]; want waiting`,
		}},
	},
	{
		ID: "N2", Bug: "a caller that had an item removes it, even when it is another caller's by now",
		Catchers: []Catcher{{
			Package: "recipes", Test: "TestAnItemThatIsNotDoneIsDeliveredAgainWithALargerToken", Complaint: "the first delivery was done with <nil>",
		}},
	},
	{
		ID: "N3", Bug: "a question's watches end with the question: a caller that waits where nothing is yet asks again and again",
		Catchers: []Catcher{{
			Package: "service", Test: "TestWhoWaitsAtAQueueThatIsNotThereAsksOnce", Complaint: "asked [0-9]+ times",
		}},
	},
}
