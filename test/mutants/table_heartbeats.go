package mutants

var standsFor = Catcher{Package: "internal/zookeeper", Test: "TestOnlyWhatProvesASessionStandsForAHeartbeat"}

// heartbeats are the mutants of what stands for one.
var heartbeats = []Mutant{
	{
		ID: "H1", Bug: "a transaction counts as a heartbeat though it was under way together with the one that counts before it",
		Catchers: []Catcher{
			{Package: "internal/zookeeper", Test: "TestTheFormulaNeverOutlivesTheSession", Complaint: "outlived the session"},
			simulated("TestABusySessionEndsInTimeThoughItsServerHearsOfTheLeaderLateAndIsNotHeard").saying(outlived),
		},
	},
	{
		ID: "H2", Bug: "a transaction counts as a heartbeat though the library has carried it over to another connection",
		Catchers: []Catcher{standsFor.part("what_the_library_has_carried_over").saying("counts: true")},
	},
	{
		ID: "H3", Bug: "a request counts as a heartbeat though no answer says that it was committed",
		Catchers: []Catcher{standsFor.part("what_is_throttled").saying("counts: true")},
	},
	{
		ID: "H4", Bug: "a read counts as a heartbeat",
		Catchers: []Catcher{standsFor.part("a_read").saying("counts: true")},
	},
	{
		ID: "H5", Bug: "a lease that is used does not ask for the places that it holds",
		Catchers: []Catcher{simulated("TestABusyLeaseSendsNoHeartbeat/often,_with_a_hold").saying("can no longer be seen")},
	},
	{
		ID: "H6", Bug: "another session's heartbeats prove what was sent before its connection, to a server that may have died since",
		Catchers: []Catcher{
			{Package: "internal/zookeeper", Test: "TestABorrowedProofNeverOutlivesTheSession", Complaint: "outlived the session"},
		},
	},
	{
		ID: "H7", Bug: "a session that has slept is taken for alive by the plain reads that it sent meanwhile",
		Catchers: []Catcher{simulated("TestASessionThatSleepsIsNotProvedByAServerThatIsCutOff").saying("when its end is committed")},
	},
	{
		ID: "H8", Bug: "a session sleeps though something stands on it",
		Catchers: []Catcher{simulated("TestASessionThatSleepsCommitsNothing").saying("not valid while something stands on it")},
	},
	{
		ID: "H9", Bug: "a session that has slept is valid again for less than those were told who have asked meanwhile",
		Catchers: []Catcher{simulated("TestNothingIsGrantedOnASessionThatSleptForLessThanWhoAskedWasTold").saying("was told")},
	},
	{
		ID: "H10", Bug: "a session that is woken must be proved for longer with each who asks meanwhile",
		Catchers: []Catcher{simulated("TestASessionIsWokenOnASlowEnsembleThoughManyAsk").saying(`it can no longer be proved alive|<nil> after`)},
	},
	{
		ID: "H11", Bug: "a session that sleeps stays at a server as long as it answers reads, also when it is cut off from the leader",
		Catchers: []Catcher{simulated("TestASessionThatSleepsIsNotLostToAServerThatIsCutOff").saying("the ensemble expired it")},
	},
	{
		ID: "H12", Bug: "sessions of a short timeout that are proved together wait as long as others before they prove themselves alone",
		Catchers: []Catcher{simulated("TestAServerThatHasLostItsLeaderCostsNoSessionOfMany").saying("it can no longer be proved alive")},
	},
	{
		ID: "H13", Bug: "a session that slept, and on which something is made, does not look whether it is proved in time",
		Catchers: []Catcher{{
			Package: "internal/zookeeper", Test: "TestALifeKeepsWhatCallersWereTold", Complaint: "and the session is over at",
		}},
	},
	{
		ID: "H14", Bug: "a session does not suspend when a heartbeat is late",
		Catchers: []Catcher{{Package: "internal/zookeeper", Test: "TestAPulseKeepsASessionProved", Complaint: "has told no caller"}},
	},
	{
		ID: "H15", Bug: "sessions that another one proves do not hear that its heartbeats are late",
		Catchers: []Catcher{{
			Package: "internal/zookeeper", Test: "TestACompanyTellsItsMembersWhenNobodyProvesThem", Complaint: "no member is told that contact",
		}},
	},
	{
		ID: "H16", Bug: "a session whose heartbeats proved others passes that on to those whom it is with by then, if any",
		Catchers: []Catcher{simulated("TestWhoProvedOthersIsClosedWhileContactIsLate").saying("nil pointer dereference")},
	},
	{
		ID: "O1", Bug: "the library gives up a connection over which nothing but heartbeats is answered",
		Catchers: []Catcher{simulated("TestAConnectionOverWhichOnlyHeartbeatsGoIsKept").saying("the session has come back over")},
	},
	{
		ID: "O2", Bug: "a heartbeat believes results of other operations than it has asked for",
		Catchers: []Catcher{
			{Package: "internal/zookeeper", Test: "TestAnAnswerToAMultiIsBelievedOnlyIfItHasAResultForEachOperation", Complaint: "results, "},
		},
	},
}
