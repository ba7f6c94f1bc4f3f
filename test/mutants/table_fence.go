package mutants

// fences are the mutants of what keeps late writes out of what is stored elsewhere.
var fences = []Mutant{
	{
		ID: "Q1", Bug: "a gate believes a token before it has asked whether it is held, so that an invented one keeps all holders out",
		Catchers: []Catcher{{
			Package: "test/goclient", Test: "TestGatesLetPassWhatTheyDoInEachLanguage",
			Complaint: "fencing token 5 is stale, since 9223372036854775807 has been seen",
		}},
	},
	{
		ID: "Q2", Bug: "two processes replace a file with marks at once, and one of the marks is lost",
		Catchers: []Catcher{{
			Package: "clients/go/sidekeeper/fence", Test: "TestOfRaisesAtOnceNoSmallerOnePassesAfterALargerOne", Complaint: "raising|orders=",
		}},
	},
	{
		ID: "Q3", Bug: "the Go client sends the tickets of readers along, who refuse each other though they hold a lock together",
		Catchers: []Catcher{{
			Package: "clients/go/sidekeeper", Test: "TestTheTicketsOfAContextAreThoseOfWhoExcludesOthers", Complaint: "read: ",
		}},
	},
}
