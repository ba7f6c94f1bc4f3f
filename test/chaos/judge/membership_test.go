package judge

import (
	"testing"
)

func TestWatchersOfGroupsThatSeeWhatIsNotSoAreTold(t *testing.T) {
	log := `
		5 10 s1 create /groups/G/a
		6 20 s2 create /groups/G/b
		7 30 s1 expire
		8 40 s3 create /groups/G/a`
	leave := `
		9 50000 s2 delete /groups/G/b
		10 50000 s3 delete /groups/G/a`
	judgeAll(t, Membership, []story{
		{name: "each as it comes and goes", logged: log + leave, seen: `
			9 1/1 watching group G
			9 1/1 seen
			11 1/1 seen a:5 +a:5
			21 1/1 seen a:5 b:6 +b:6
			31 1/1 seen b:6 -a:5
			41 1/1 seen a:8 b:6 +a:8
			50001 1/1 seen -a:8 -b:6`},
		{name: "several at once", logged: log + leave, seen: `
			15 1/1 watching group G
			15 1/1 seen a:5 +a:5
			41 1/1 seen b:6 a:8 -a:5 +a:8 +b:6
			50001 1/1 seen -a:8 -b:6`},
		{name: "old views while the ensemble is cut", logged: log + leave, seen: `
			9 1/1 watching group G
			12 c fault N1 server/1
			11 1/1 seen a:5 +a:5
			13 1/1 seen a:5 stale
			3000 c heal N1 server/1
			3100 1/1 seen b:6 a:8 -a:5 +a:8 +b:6
			50001 1/1 seen -a:8 -b:6`},
		{name: "an end of the watch", logged: log + leave, seen: `
			9 1/1 watching group G
			11 1/1 seen a:5 +a:5
			12 1/1 ended Unavailable SIDECAR_STOPPING`},
		{name: "a member that is missing while it is there", logged: log + leave, seen: `
			15 1/1 watching group G
			15 1/1 seen a:5 +a:5
			18 1/1 seen -a:5
			19 1/1 ended user`, want: "leave that was still there"},
		{name: "a member that comes back", logged: log + leave, seen: `
			15 1/1 watching group G
			25 1/1 seen a:5 b:6 +a:5 +b:6
			31 1/1 seen b:6 -a:5
			32 1/1 seen a:5 b:6 +a:5
			33 1/1 ended user`, want: "come back"},
		{name: "a member that was never there", logged: log + leave, seen: `
			15 1/1 watching group G
			25 1/1 seen z:4 +z:4
			33 1/1 ended user`, want: "when there was none"},
		{name: "a member before it is there", logged: log + leave, seen: `
			15 1/1 watching group G
			16 1/1 seen a:5 b:6 +a:5 +b:6
			33 1/1 ended user`, want: "when there was none"},
		{name: "a view that does not follow from the one before", seen: `
			15 1/1 watching group G
			16 1/1 seen a:5 +a:5
			17 1/1 seen a:5 b:6`, want: "with [] joined"},
		{name: "one that left and is in the view", seen: `
			15 1/1 watching group G
			16 1/1 seen a:5 +a:5
			17 1/1 seen a:5 -a:5`, want: "[{Name:a Incarnation:5}] left"},
		{name: "a member that is never seen", logged: log + leave, seen: `
			9 1/1 watching group G
			11 1/1 seen a:5 +a:5
			31 1/1 seen -a:5
			41 1/1 seen a:8 +a:8
			50001 1/1 seen -a:8`, want: "had not seen {Name:b Incarnation:6} come"},
		{name: "a member that is never seen to go", logged: log + leave, seen: `
			21 1/1 watching group G
			22 1/1 seen a:5 b:6 +a:5 +b:6
			31 1/1 seen b:6 -a:5
			41 1/1 seen a:8 b:6 +a:8
			50001 1/1 seen b:6 -a:8`, want: "had not seen {Name:b Incarnation:6} go"},
		{name: "a member that knows itself to be there, without logs", seen: `
			9 2/1 joining G a
			10 2/1 joined 5
			30 2/1 releasing
			31 2/1 ended user
			9 1/1 watching group G
			11 1/1 seen a:5 +a:5
			29 1/1 seen -a:5`, want: "leave that was still there"},
		{name: "a member that is about to leave, and one that has been lost, without logs", seen: `
			9 2/1 joining G a
			10 2/1 joined 5
			30 2/1 releasing
			35 2/1 ended user
			9 3/1 joining G b
			10 3/1 joined 6
			11 c fault N1 server/1
			900 3/1 ended Aborted LEASE_LOST
			9 1/1 watching group G
			11 1/1 seen a:5 b:6 +a:5 +b:6
			30 1/1 seen b:6 -a:5
			40 1/1 seen -b:6`},
	})
}
