package mutants

// partners are the mutants of what a sidecar writes to and does not wait for.
var partners = []Mutant{
	{
		ID: "B1", Bug: "a call that logs a line waits for the reader of the log, once as many lines wait as may",
		Catchers: []Catcher{{Package: "internal/sink", Test: "TestALineDoesNotWaitForItsReader", Complaint: "deadlock"}},
	},
	{
		ID: "B2", Bug: "the end of a lease waits for the disk on which a later process would have found it",
		Catchers: []Catcher{whoReturns("TestWhatIsLostEndsThoughTheDiskOfItsRecordHangs", "what ends waits for the disk")},
	},
	{
		ID: "B3", Bug: "others are told of a lease before a later process could know that they were",
		Catchers: []Catcher{whoReturns("TestWhatIsLostEndsThoughTheDiskOfItsRecordHangs", `Check over another connection: got "held"`)},
	},
	{
		ID: "B4", Bug: "what was not answered is asked again while the session that sent it first lives",
		Catchers: []Catcher{{Package: "internal/zookeeper", Test: "TestWhatIsRepeatedIsNotDoneTwice", Complaint: "a barrier that others have set"}},
	},
	{
		ID: "B5", Bug: "a caller over HTTP counts as gone when its connection ends",
		Catchers: []Catcher{{
			Package: "internal/caller", Test: "TestACallerOverHTTPHasNotLeftWhoeverEndsItsConnection", Complaint: "counts as one that has left",
		}},
	},
	{
		ID: "B6", Bug: "a holder dies, and the sidecar does not wait for the caller that asked for its lease over another connection",
		Catchers: []Catcher{{
			Package: "service", Test: "TestWhoWasToldByAnotherConnectionThanTheDeadHoldersIsWaitedFor", Complaint: "lock of-the-lease is free while",
		}},
	},
	{
		ID: "B7", Bug: "a connection from another machine that is closed counts as a caller that left",
		Catchers: []Catcher{{
			Package: "internal/caller", Test: "TestWhatASocketsErrorSaysAboutThePeer", Complaint: "EOF, local false: closed, want silent",
		}},
	},
	{
		ID: "B8", Bug: "a call that logs a line waits until the reader of the log has read it",
		Catchers: []Catcher{{Package: "internal/sink", Test: "TestALineDoesNotWaitForItsReader", Complaint: "deadlock"}},
	},
	{
		ID: "B9", Bug: "a look-up of a server's name waits for an earlier one, which its name server has left unanswered",
		Catchers: []Catcher{{
			Package: "internal/zookeeper", Test: "TestALookUpDoesNotWaitForOneThatHung", Complaint: "answers again, and the look-up ends with",
		}},
	},
	{
		ID: "B10", Bug: "a caller that does not read is not found out once it has read something before",
		Catchers: []Catcher{{Package: "internal/outbox", Test: "TestAnOutboxGivesUpAReaderAfterTenSeconds", Complaint: "deadlock"}},
	},
}
