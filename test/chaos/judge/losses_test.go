package judge

import (
	"strings"
	"testing"

	"github.com/sidekeeper/sidekeeper/test/chaos/history"
)

func TestLossesThatAreNotToldAsTheyShouldAreTold(t *testing.T) {
	held := func(end string) string {
		return `
			10 1/1 called L
			20 1/1 granted 5
			21 c fault N1 server/1
			30 c heal N1 server/1` + end
	}
	judgeAll(t, Losses, []story{
		{name: "a loss with its reason", seen: held(`
			40 1/1 ended Aborted LEASE_LOST`)},
		{name: "a release", seen: held(`
			40 1/1 releasing
			41 1/1 ended OK`)},
		{name: "a loss while it is released", seen: held(`
			40 1/1 releasing
			41 1/1 ended Aborted LEASE_LOST`)},
		{name: "a break by an operator", seen: held(`
			40 1/1 ended Aborted LOCK_BROKEN`)},
		{name: "a stream that is cut, of a sidecar that was killed", seen: held(`
			39 c killed sidecar/1
			40 1/1 ended Unavailable`)},
		{name: "a caller that is dead", seen: held(`
			40 c killed client/1`)},
		{name: "an end that is told twice", seen: held(`
			40 1/1 ended Aborted LEASE_LOST
			41 1/1 ended Aborted LEASE_LOST`), want: "told its end 2 times"},
		{name: "an end with OK", seen: held(`
			40 1/1 ended OK`), want: "though nobody had released it"},
		{name: "an end with another reason", seen: held(`
			40 1/1 ended Unavailable ENSEMBLE_UNREACHABLE`), want: "no reason to lose it"},
		{name: "an end without a reason", seen: held(`
			40 1/1 ended Internal`), want: `"Internal" ""`},
		{name: "a connection that breaks by itself, which is counted", seen: held(`
			40 1/1 ended Unavailable`)},
		{name: "an end without a reason of a caller that is being shaken", seen: held(`
			39 c fault N8 client/1
			40 1/1 ended Canceled`)},
		{name: "a loss that is told late", seen: held(`
			1100 1/1 ended Aborted LEASE_LOST`), logged: `
			5 11 s1 place 1/1 L
			6 60 s1 expire`, want: "heard of it only after 1.039s"},
		{name: "a loss that is told late to a caller that was frozen", seen: held(`
			45 c fault N5 client/1
			1000 c heal N5 client/1
			1100 1/1 ended Aborted LEASE_LOST`), logged: `
			5 11 s1 place 1/1 L
			6 60 s1 expire`},
		{name: "a stream that ends soon after its machine has slept", seen: held(`
			45 c slept sidecar/1
			1045 1/1 ended Aborted LEASE_LOST`)},
		{name: "a stream that stays open after its machine has slept", seen: held(`
			45 c slept sidecar/1
			3046 1/1 ended Aborted LEASE_LOST`), want: "told that L was lost only 3.001s after its machine had slept"},
		{name: "a stream that stays open while another machine has slept", seen: held(`
			45 c slept sidecar/2
			3046 1/1 ended Aborted LEASE_LOST`)},
		{name: "a hold that is given up when its machine has slept", seen: held(`
			45 c slept sidecar/1
			50 1/1 releasing
			3500 1/1 ended Aborted LEASE_LOST`)},
		{name: "a hold that is granted after its machine has slept", seen: held(`
			15 c slept sidecar/1
			3500 1/1 ended Aborted LEASE_LOST`)},
		{name: "a member that is lost for no reason", seen: `
			10 1/1 joining G m
			20 1/1 joined 5
			30 1/1 ended Internal INTERNAL`, want: "no reason to lose it"},
		{name: "a member that is replaced", seen: `
			10 1/1 joining G m
			20 1/1 joined 5
			30 1/1 ended Aborted MEMBER_REPLACED`},
		{name: "a failure before anything was granted", seen: `
			10 1/1 called L
			30 1/1 ended Unavailable ENSEMBLE_UNREACHABLE`},
	})
}

// outage is a loss 2.2 s after the histories' beginning, with two servers killed at some time, in ms, and again at 2,100 ms. A negative time
// is one before which they were away and then came back for good.
func outage(at string) string {
	if before, is := strings.CutPrefix(at, "-"); is {
		return `
			10 1/1 called L
			20 1/1 granted 5
			30 c fault N3 server/1
			31 c fault N3 server/2
			` + before + ` c heal N3 server/1
			` + before + ` c heal N3 server/2
			9000 1/1 ended Aborted LEASE_LOST`
	}
	return `
		10 1/1 called L
		20 1/1 granted 5
		` + at + ` c fault N3 server/1
		` + at + ` c fault N3 server/2
		2101 c heal N3 server/1
		2102 c heal N3 server/2
		2103 c fault N3 server/3
		2104 c fault N3 server/2
		2200 1/1 ended Aborted LEASE_LOST
		2300 c heal N3 server/2
		2300 c heal N3 server/3`
}

func TestNeedlessLossesAreCounted(t *testing.T) {
	lost := `
		10 1/1 called L
		20 1/1 granted 5
		40 1/1 ended Aborted LEASE_LOST`
	faulty := lost + `
		30 c fault N3 server/1
		50 c heal N3 server/1`
	spares := func(s *history.Settings) { s.Spares = true }
	for _, c := range []struct {
		story

		losses, needless int
	}{
		{story{name: "by a fault", seen: faulty}, 1, 0},
		{story{name: "by a fault that must not cost a lease", seen: faulty, adjust: spares}, 1, 1},
		{story{name: "by servers that came back for less than it takes to reach them", seen: outage("500"), adjust: spares}, 1, 0},
		{story{name: "by a short time without a majority", seen: outage("2100"), adjust: spares}, 1, 1},
		{story{name: "long after a time without a majority", seen: outage("-3000"), adjust: spares}, 1, 1},
		{story{name: "by one server that was away for long", seen: `
			10 1/1 called L
			20 1/1 granted 5
			500 c fault N3 server/1
			1900 c heal N3 server/1
			2100 1/1 ended Aborted LEASE_LOST`, adjust: spares}, 1, 1},
		{story{name: "without any fault", seen: lost}, 1, 1},
		{story{name: "before the first fault", seen: lost + `
			41 c fault N3 server/1`}, 1, 1},
		{story{name: "by a connection that broke by itself", seen: `
			10 1/1 called L
			20 1/1 granted 5
			30 c fault N3 server/1
			40 1/1 ended Unavailable`}, 1, 1},
		{story{name: "by a connection of a sidecar that was killed", seen: `
			10 1/1 called L
			20 1/1 granted 5
			30 c killed sidecar/1
			40 1/1 ended Unavailable`}, 1, 0},
		{story{name: "none: it was released", seen: `
			10 1/1 called L
			20 1/1 granted 5
			40 1/1 ended user`, adjust: spares}, 0, 0},
	} {
		verdict := Judge(c.round())
		if verdict.Losses != c.losses || verdict.NeedlessLosses != c.needless {
			t.Errorf("%s: %d losses, %d needless", c.name, verdict.Losses, verdict.NeedlessLosses)
		}
	}
}
