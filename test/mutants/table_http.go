package mutants

// overHTTP are the mutants of what is served over HTTP.
var overHTTP = []Mutant{
	{
		ID: "W1", Bug: "a lock may be held over HTTP, where its caller does not learn of its end in time",
		Catchers: []Catcher{{Package: "internal/server", Test: "TestOverHTTPNothingIsHeld", Complaint: `held: got "\S+/Multiplex", want`}},
	},
	{
		ID: "W2", Bug: "a caller over HTTP counts as any process of this machine, whatever certificate it shows",
		Catchers: []Catcher{{Package: "internal/server", Test: "TestOverHTTPSOnlyCertificatesAreLetIn", Complaint: `caller: got "tcp:loopback`}},
	},
	{
		ID: "W3", Bug: "a page of another port of this machine may call over HTTP",
		Catchers: []Catcher{{
			Package: "internal/server", Test: "TestOverHTTPNobodyGetsAnythingFromElsewhereOrWithoutTheToken",
			Complaint: `Origin: http://127.0.0.1:1: got "200`,
		}},
	},
	{
		ID: "W4", Bug: "a page whose name was made to point to this machine may call over HTTP",
		Catchers: []Catcher{{
			Package: "internal/server", Test: "TestOverHTTPNobodyGetsAnythingFromElsewhereOrWithoutTheToken",
			Complaint: `Host: elsewhere.example: got "200`,
		}},
	},
}
