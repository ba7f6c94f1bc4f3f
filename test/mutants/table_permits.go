package mutants

// permits are the mutants of semaphores.
var permits = []Mutant{
	{
		ID: "F1", Bug: "permits are granted that would be within the limit without themselves",
		Catchers: []Catcher{simulated("TestNoMorePermitsAreGrantedThanThereAre").of(3).saying("permits are granted, so that")},
	},
	{
		ID: "F2", Bug: "the queue is left before permits are granted, so that two wait for each other",
		Catchers: []Catcher{simulated("TestNoMorePermitsAreGrantedThanThereAre").of(10).saying("no progress after")},
	},
	{
		ID: "F3", Bug: "of several permits only the first is watched",
		Catchers: []Catcher{{
			Package: "service", Test: "TestPermitsEndWhenOneOfTheirNodesIsRemoved", Complaint: "got \"(Deadline|asked|suspended)",
		}},
	},
	{
		ID: "F4", Bug: "a semaphore that shrinks asks those who were granted permits first",
		Catchers: []Catcher{{
			Package: "service", Test: "TestAShrunkenSemaphoreAsksForThePermitsThatWereGrantedLast", Complaint: "got \"Deadline",
		}},
	},
	{
		ID: "F5", Bug: "a resize to the limit that the reader shows is taken for done",
		Catchers: []Catcher{simulated("TestNoAnswerRestsOnWhatALaggingServerShows").saying("the limit is 5")},
	},
	{
		ID: "W50", Bug: "a number is recorded in whichever version, so that two bear it that chose it at the same time",
		Catchers: []Catcher{{
			Package: "recipes", Test: "TestNoNumberIsValidForTwoNorWithinItsQuarantine", Complaint: `is granted while another caller has it`,
		}},
	},
	{
		ID: "W51", Bug: "a number is freed apart from its permit and in whichever version, so that a late write frees that of another caller",
		Catchers: []Catcher{{
			Package: "recipes", Test: "TestNoNumberIsValidForTwoNorWithinItsQuarantine", Complaint: `is granted, and rests for`,
		}},
	},
	{
		ID: "W52", Bug: "a quarantine ends by the clock of the machine that looks",
		Catchers: []Catcher{{
			Package: "recipes", Test: "TestAQuarantineEndsWhenBothClocksArePastItsEnd", Complaint: `the machine is ahead: told "number 0"`,
		}},
	},
}
