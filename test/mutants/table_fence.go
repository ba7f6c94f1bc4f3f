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
	{
		ID: "W20", Bug: "an ensemble that was restored from an older state is reported, and grants its tokens again all the same",
		Catchers: []Catcher{{
			Package: "test/simulation", Test: "TestAnEnsembleThatIsRestoredIsFoundUnaskedAndGrantsNoTokenAgain",
			Complaint: "session goes on|it is ready|opened|token",
		}},
	},
	{
		ID: "W21", Bug: "a session believes a restored ensemble if it has seen nothing newer itself, whatever its sidecar has seen",
		Catchers: []Catcher{{
			Package: "test/simulation", Test: "TestAnEnsembleThatIsRestoredIsFoundUnaskedAndGrantsNoTokenAgain",
			Complaint: "found 0 times|session goes on|it is ready",
		}},
	},
}
