package judge

import (
	"strings"
	"testing"
	"time"
)

// restarted is a sidecar that is killed at 100 ms, and listens again at 150 ms.
const restarted = `
	90 c fault N22 sidecar/1
	100 c killed sidecar/1
	150 c restarted sidecar/1 100
	400 c heal N22 sidecar/1`

func TestWhatDoesNotOutliveASidecarThatIsReplacedSoonIsTold(t *testing.T) {
	holds := func(then string) string {
		return restarted + `
			10 1/1 called L
			20 1/1 granted 5
			101 1/1 suspended` + then
	}
	waitsFor := func(most, then string) string {
		return restarted + `
			1 2/1 called L
			2 2/1 granted 3
			10 1/1 called L exclusive ` + most + `
			20 1/1 queued 1` + then
	}
	waits := func(then string) string { return waitsFor("0", then) }
	held := `
		5 11 s1 place 1/1 L`
	behind := `
		3 1 s2 place 2/1 L
		5 11 s1 place 1/1 L`
	joined := restarted + `
		10 1/1 joining G m
		20 1/1 joined 5
		101 1/1 suspended`
	member := `
		5 11 s1 create /groups/G/m x`
	judgeAll(t, Restarts, []story{
		{name: "a hold that is kept and released", logged: held + `
			6 502 s1 gone 1/1 L`, seen: holds(`
			170 1/1 resumed
			500 1/1 releasing
			510 1/1 ended OK`)},
		{name: "a hold that is lost", logged: held + `
			6 180 s1 close`, seen: holds(`
			190 1/1 ended Aborted LEASE_LOST`), want: "lost L (Aborted LEASE_LOST) 90ms after sidecar/1 had ended"},
		{name: "a hold that is lost with its stream", logged: held + `
			6 2000 s1 expire`, seen: holds(`
			110 1/1 ended Unavailable`), want: "lost L (Unavailable )"},
		{name: "a hold whose caller was killed", logged: held + `
			6 2000 s1 expire`, seen: holds(`
			105 c killed client/1`)},
		{name: "a hold that is lost when its time is over", logged: held + `
			6 2200 s1 expire`, seen: holds(`
			1900 1/1 ended Aborted LEASE_LOST`)},
		{name: "a hold that is lost long after it was resumed, but not after the next restart", logged: held + `
			6 2000 s1 close`, seen: holds(`
			170 1/1 resumed
			1700 c fault N22 sidecar/1
			1750 c restarted sidecar/1 1700
			1701 1/1 suspended
			1900 1/1 ended Aborted LEASE_LOST`), want: "lost L (Aborted LEASE_LOST) 200ms after sidecar/1 had ended"},
		{name: "a hold that is lost beside another fault", logged: held + `
			6 180 s1 close`, seen: holds(`
			15 c fault N3 server/1
			190 1/1 ended Aborted LEASE_LOST`)},
		{name: "a hold beside another sidecar", logged: held + `
			6 180 s1 close`, seen: strings.ReplaceAll(holds(`
			190 1/1 ended Aborted LEASE_LOST`), "sidecar/1", "sidecar/2")},
		{name: "a hold whose node goes before it is released", logged: held + `
			6 160 s1 gone 1/1 L`, seen: holds(`
			170 1/1 resumed
			500 1/1 releasing
			510 1/1 ended OK`), want: "went at zxid 0x6, 61ms after sidecar/1 had ended, and client 1/1 had not given L up"},
		{name: "a hold that is acquired anew", logged: held + `
			6 160 s1 expire
			7 165 s2 place 1/1 L`, seen: holds(`
			170 1/1 resumed
			500 1/1 releasing
			510 1/1 ended OK`), want: "client 1/1 took another place for L at zxid 0x7"},
		{name: "a wait that goes on", logged: behind + `
			6 600 s2 gone 2/1 L
			7 700 s1 gone 1/1 L`, seen: waits(`
			590 2/1 releasing
			610 1/1 granted 5
			611 2/1 ended OK
			690 1/1 releasing
			710 1/1 ended OK`)},
		{name: "a wait that fails", logged: behind, seen: waits(`
			110 1/1 ended Unavailable`), want: "client 1/1 lost L (Unavailable )"},
		{name: "a wait that comes to its end", logged: behind + `
			6 180 s1 gone 1/1 L
			7 600 s2 gone 2/1 L`, seen: waits(`
			190 1/1 ended DeadlineExceeded WAIT_TIMEOUT
			590 2/1 releasing
			611 2/1 ended OK`)},
		{name: "a wait that comes to its end while the sidecar is away", logged: behind + `
			6 180 s1 gone 1/1 L
			7 600 s2 gone 2/1 L`, seen: waitsFor("100", `
			110 1/1 ended Unavailable
			590 2/1 releasing
			611 2/1 ended OK`)},
		{name: "a wait that fails before its end", logged: behind, seen: waitsFor("101", `
			110 1/1 ended Unavailable`), want: "client 1/1 lost L (Unavailable )"},
		{name: "a wait that begins at the end of the line again", logged: behind + `
			6 160 s1 gone 1/1 L
			7 170 s1 place 1/1 L`, seen: waits(``), want: "client 1/1 took another place for L at zxid 0x7"},
		{name: "a member that stays", logged: member, seen: joined + `
			170 1/1 resumed
			500 1/1 releasing
			510 1/1 ended OK`},
		{name: "a member that is lost", logged: member + `
			6 170 s1 delete /groups/G/m`, seen: joined + `
			180 1/1 ended Aborted MEMBER_REMOVED`, want: "lost G/m (Aborted MEMBER_REMOVED)"},
		{name: "a member whose node goes", logged: member + `
			6 170 s1 delete /groups/G/m`, seen: joined + `
			180 1/1 resumed`, want: "/groups/G/m went at zxid 0x6"},
		{name: "another sidecar that is refused beside a frozen one", seen: `
			50 c doubled sidecar/1 refused`},
		{name: "another sidecar that serves beside a frozen one", seen: `
			50 c doubled sidecar/1 ok`, want: "another process served beside that of sidecar/1, which was frozen"},
	})
}

func TestWhatOutlivesASidecarIsCounted(t *testing.T) {
	told := story{
		logged: `
			3 1 s2 place 2/1 L
			5 11 s1 place 1/1 L
			6 12 s1 place 3/1 M
			7 13 s1 create /groups/G/m x`,
		seen: restarted + `
			1 2/1 called L
			2 2/1 granted 3
			10 1/1 called L
			13 1/1 queued 1
			11 3/1 called M
			14 3/1 granted 6
			15 4/1 joining G m
			16 4/1 joined 7
			101 2/1 suspended
			110 2/1 ended Unavailable
			101 3/1 suspended
			170 3/1 resumed
			101 4/1 suspended
			140 4/1 resumed`,
	}
	v := Judge(told.round())
	if v.Restarts != 1 || v.Outlived != (Standing{Holds: 1, Members: 1, Places: 1}) || v.Lost != (Standing{Holds: 1}) {
		t.Errorf("%d restarts, outlived by %+v, lost %+v", v.Restarts, v.Outlived, v.Lost)
	}
	if len(v.Pauses) != 2 || max(v.Pauses[0], v.Pauses[1]) != 20*time.Millisecond || min(v.Pauses[0], v.Pauses[1]) != 0 {
		t.Errorf("pauses of %v", v.Pauses)
	}
}
