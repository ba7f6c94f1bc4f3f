//go:build spec

package spec_test

import (
	"slices"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/test/traces"
)

// One caller holds a lock and gives it up; the next one holds it until its session is over.
func handOver() []traces.LockStep {
	return []traces.LockStep{
		{Kind: "asked", Caller: 1},
		{Kind: "created", Caller: 1, Place: 1},
		{Kind: "made", Caller: 1, Place: 1},
		{Kind: "granted", Caller: 1, Place: 1, Token: 1},
		{Kind: "asked", Caller: 2},
		{Kind: "created", Caller: 2, Place: 2},
		{Kind: "found", Caller: 2, Place: 2},
		{Kind: "leaving", Caller: 1, Place: 1},
		{Kind: "deleted", Caller: 1, Place: 1},
		{Kind: "left", Caller: 1, Place: 1},
		{Kind: "granted", Caller: 2, Place: 2, Token: 2},
		{Kind: "over", Caller: 2},
		{Kind: "lost", Caller: 2},
		{Kind: "end"},
	}
}

// without is the steps without the one at i.
func without[S any](steps []S, i int) []S { return slices.Delete(steps, i, i+1) }

// moved has the step at one place take another.
func moved[S any](steps []S, from, to int) []S {
	step := steps[from]
	return slices.Insert(slices.Delete(steps, from, from+1), to, step)
}

// changed is the steps with another one at i.
func changed[S any](steps []S, i int, to S) []S {
	steps[i] = to
	return steps
}

// A hold's caller is told of it, hears of its end, and says so.
func toldAndEnded() []traces.LockStep {
	return []traces.LockStep{
		{Kind: "asked", Caller: 1},
		{Kind: "created", Caller: 1, Place: 1},
		{Kind: "made", Caller: 1, Place: 1},
		{Kind: "granted", Caller: 1, Place: 1, Token: 1},
		{Kind: "held", Caller: 1},
		{Kind: "promised", Caller: 1},
		{Kind: "hold_told", Caller: 1},
		{Kind: "ended", Caller: 1},
		{Kind: "status", Caller: 1},
		{Kind: "acknowledged", Caller: 1},
		{Kind: "leaving", Caller: 1, Place: 1},
		{Kind: "deleted", Caller: 1, Place: 1},
		{Kind: "left", Caller: 1, Place: 1},
		{Kind: "end"},
	}
}

// Two readers hold a lock together, and a writer after them.
func shared() []traces.LockStep {
	one, other := traces.Readers+1, traces.Readers+2
	return []traces.LockStep{
		{Kind: "asked", Caller: one},
		{Kind: "created", Caller: one, Place: 1},
		{Kind: "made", Caller: one, Place: 1},
		{Kind: "granted", Caller: one, Place: 1, Token: 1},
		{Kind: "asked", Caller: other},
		{Kind: "created", Caller: other, Place: 2},
		{Kind: "made", Caller: other, Place: 2},
		{Kind: "granted", Caller: other, Place: 2, Token: 2},
		{Kind: "hold_told", Caller: one},
		{Kind: "hold_told", Caller: other},
		{Kind: "asked", Caller: 1},
		{Kind: "created", Caller: 1, Place: 3},
		{Kind: "made", Caller: 1, Place: 3},
		{Kind: "leaving", Caller: one, Place: 1},
		{Kind: "deleted", Caller: one, Place: 1},
		{Kind: "left", Caller: one, Place: 1},
		{Kind: "leaving", Caller: other, Place: 2},
		{Kind: "deleted", Caller: other, Place: 2},
		{Kind: "left", Caller: other, Place: 2},
		{Kind: "granted", Caller: 1, Place: 3, Token: 3},
		{Kind: "leaving", Caller: 1, Place: 3},
		{Kind: "deleted", Caller: 1, Place: 3},
		{Kind: "left", Caller: 1, Place: 3},
		{Kind: "end"},
	}
}

// A writer holds a lock, and a reader after it.
func sharedAfterwards() []traces.LockStep {
	steps := handOver()
	for i := range steps {
		if steps[i].Caller == 2 {
			steps[i].Caller = traces.Readers + 1
		}
	}
	return steps
}

// Each property has a trace that breaks it and nothing else.
func TestTracesOfLocksThatBreakAPromiseAreRefused(t *testing.T) {
	t.Parallel()
	heard, leaseHeard := traces.LockStep{Kind: "heard", Caller: 1}, traces.LockStep{Kind: "lease_heard", Caller: 1}
	leaseTold, over := traces.LockStep{Kind: "lease_told", Caller: 1}, traces.LockStep{Kind: "over", Caller: 1}
	refusePlanted(t, []planted{
		{"nothing is wrong", handOver(), 0},
		{"a lock is granted beside its holder", moved(handOver(), 10, 7), 8},
		{"a lock is granted before its place goes", moved(handOver(), 10, 8), 9},
		{"a token is another place's", changed(handOver(), 10, traces.LockStep{Kind: "granted", Caller: 2, Place: 2, Token: 1}), 11},
		{"a place is held that was never made", without(handOver(), 1), 2},
		{"a place is not looked for", changed(handOver(), 6, traces.LockStep{Kind: "asked", Caller: 2}), 7},
		{"a place is found by whoever has not lost it", changed(handOver(), 6, traces.LockStep{Kind: "found", Caller: 2, Place: 1}), 7},
		{"a place goes that nobody has given up", without(handOver(), 7), 8},
		{"a place stands that was left", without(handOver(), 8), 9},
		{"a session ends under its holder", without(handOver(), 11), 12},
		{"a place is left behind", slices.Delete(handOver(), 11, 13), 12},
		{"whoever is the first waits", append(handOver()[:3], traces.LockStep{Kind: "still", Caller: 1, Place: 1}), 4},
		{"a lock is granted though its session is not proved", changed(handOver(), 3, traces.LockStep{Kind: "granted late", Caller: 1}), 4},
		{"a hold ends and is acknowledged", toldAndEnded(), 0},
		{"a caller hears what it was told", slices.Insert(toldAndEnded(), 7, heard), 0},
		{"a caller hears of its hold what it was not told", slices.Insert(toldAndEnded(), 6, heard), 7},
		{"a caller hears of its lease what it was not told", slices.Insert(toldAndEnded(), 7, leaseHeard), 8},
		{"what was told of a hold is over", changed(toldAndEnded(), 9, traces.LockStep{Kind: "expires", Caller: 1}), 0},
		{"whoever was told has left", changed(toldAndEnded(), 9, traces.LockStep{Kind: "deserted", Caller: 1}), 0},
		{"a hold is given up", without(changed(toldAndEnded(), 7, traces.LockStep{Kind: "released", Caller: 1}), 9), 0},
		{"a place goes though its caller counts on it", without(toldAndEnded(), 9), 11},
		{"a place goes though its caller counts on its lease", without(changed(toldAndEnded(), 6, leaseTold), 9), 11},
		{"a session ends though its caller counts on it", append(toldAndEnded()[:9], traces.LockStep{Kind: "lost", Caller: 1}), 10},
		{"a caller is told that it holds when that has ended", moved(toldAndEnded(), 5, 7), 8},
		{"a caller is told for how long when that has ended", moved(toldAndEnded(), 6, 7), 8},
		{"a place is left before the end is told", moved(toldAndEnded(), 8, 10), 10},
		{"an end is told that is none yet", moved(toldAndEnded(), 8, 6), 7},
		{"a lost session is closed before its stream has ended", slices.Insert(toldAndEnded(), 7, traces.LockStep{Kind: "buried", Caller: 1}), 8},
		{"a lost session's stream does not end", append(toldAndEnded()[:7], over, traces.LockStep{Kind: "lost", Caller: 1}), 9},
		{"readers share a lock, and a writer follows", shared(), 0},
		{"the second of the readers is granted first", moved(shared(), 3, 7), 0},
		{"a reader follows a writer", sharedAfterwards(), 0},
		{"a reader is told beside a writer", moved(sharedAfterwards(), 10, 7), 8},
		{"a reader is told before a writer's place goes", moved(sharedAfterwards(), 10, 8), 9},
		{"a writer is told beside readers", moved(shared(), 19, 13), 14},
		{"a writer is told beside the last of the readers", moved(shared(), 19, 16), 17},
		{"a writer is told before the last reader's place goes", moved(shared(), 19, 17), 18},
		{"a reader waits for a reader", changed(shared(), 7, traces.LockStep{Kind: "still", Caller: traces.Readers + 2, Place: 2}), 8},
		{"a place is taken by another hand", changed(handOver(), 8, traces.LockStep{Kind: "taken", Caller: 1, Place: 1}), 9},
	})
}

// A planted trace is one that was made by hand.
type planted struct {
	name  string
	steps []traces.LockStep
	at    int // the step that cannot be taken; 0 if the trace is admitted
}

func refusePlanted(t *testing.T, made []planted) {
	t.Helper()
	var all []traces.LockTrace
	for _, each := range made {
		all = append(all, traces.LockTrace{Steps: each.steps})
	}
	refused := lockModel(2, 2).refuse(t, all)
	for i, each := range made {
		if got := refused[i]; got != each.at {
			t.Errorf("%s: refused at step %d, not %d", each.name, got, each.at)
		}
	}
}

// A session of 4 s is proved four times, is over, and then ended.
func proven() []traces.SessionStep {
	return []traces.SessionStep{
		{Kind: "opened", Sent: 1, Answered: 5_000, Until: 3_920_001},
		{Kind: "proved", Sent: 1_000_000, Answered: 1_010_000, Until: 3_920_001},
		{Kind: "proved", Sent: 2_000_000, Answered: 2_010_000, Until: 3_920_001},
		{Kind: "proved", Sent: 3_000_000, Answered: 3_010_000, Until: 3_920_001},
		{Kind: "proved", Sent: 3_900_000, Answered: 3_910_000, Until: 4_920_000},
		{Kind: "over"},
		{Kind: "ended", Clock: 4_920_000},
	}
}

// ending is how a session's trace goes on with the fourth transaction, and whatever is told then.
func ending(with ...traces.SessionStep) []traces.SessionStep { return append(proven()[:4], with...) }

func TestTracesOfSessionsThatBreakAPromiseAreRefused(t *testing.T) {
	t.Parallel()
	over, end := traces.SessionStep{Kind: "over"}, traces.SessionStep{Kind: "ended", Clock: 20_000_000}
	proved := func(sent, answered, until int64) traces.SessionStep {
		return traces.SessionStep{Kind: "proved", Sent: sent, Answered: answered, Until: until}
	}
	read := func(sent int64) traces.SessionStep {
		return traces.SessionStep{Kind: "read", Sent: sent, Answered: sent + 10_000, Until: 3_920_001}
	}
	shared := func(before, from, until int64) traces.SessionStep {
		return traces.SessionStep{Kind: "shared", Before: before, From: from, Until: until}
	}
	back := traces.SessionStep{Kind: "attached", Sent: 3_500_000, Answered: 3_510_000, Until: 3_920_001}
	underWay := []traces.SessionStep{proved(3_500_000, 3_520_000, 3_920_001), proved(3_510_000, 3_910_000, 3_920_001)}
	underWay[0].Heartbeat, underWay[1].Heartbeat = true, true
	slept, once, twice := traces.SessionStep{Kind: "slept"}, proved(8_000_000, 8_010_000, 3_920_001), proved(8_020_000, 8_030_000, 9_920_000)
	woken := func(clock int64) traces.SessionStep { return traces.SessionStep{Kind: "woken", Clock: clock} }
	assured := func(until int64) traces.SessionStep {
		return traces.SessionStep{Kind: "woken", Clock: 8_040_000, Until: until}
	}
	late := back
	late.Until = 3_500_000 + 3_920_000
	planted := []struct {
		name  string
		steps []traces.SessionStep
		at    int
	}{
		{"nothing is wrong", proven(), 0},
		{"a session comes back", ending(back, proved(3_600_000, 3_610_000, 7_420_000), over, end), 0},
		{"whoever has a session gives it up", ending(traces.SessionStep{Kind: "closing"}, traces.SessionStep{Kind: "ended", Clock: 3_500_000}), 0},
		{"a session is valid for a timeout from its newest answer", ending(proved(3_900_000, 3_910_000, 7_820_000), over, end), 5},
		{"a session is valid for a timeout from the newest answer but one", ending(proved(3_900_000, 3_910_000, 5_920_000), over, end), 5},
		{"two transactions that were under way together count", ending(proved(3_005_000, 3_910_000, 4_920_000), over, end), 5},
		{"a heartbeat is sent before the one before was answered", ending(underWay...), 6},
		{"another transaction is sent before that", ending(underWay[0], proved(3_510_000, 3_910_000, 3_920_001), over, end), 0},
		{"a handshake counts before a transaction has followed", ending(late, over, end), 5},
		{"what was answered on an earlier connection counts", ending(back, proved(3_900_000, 3_910_000, 8_420_000), over, end), 6},
		{"another session proves it", ending(read(3_400_000), shared(4_510_000, 500_000, 7_320_000), over, end), 0},
		{"another session proves it that has come later", ending(read(3_400_000), shared(4_510_000, 3_450_000, 7_320_000), over, end), 6},
		{"another session proves it too soon", ending(read(3_400_000), shared(4_509_000, 500_000, 7_320_000), over, end), 6},
		{"another session proves it, and it takes that for more", ending(read(3_400_000), shared(4_510_000, 9, 7_321_000), over, end), 6},
		{"another session proves it that has come back", ending(back, read(3_600_000), shared(4_710_000, 9, 7_520_000), over, end), 7},
		{"a read counts as a transaction", ending(read(3_400_000), read(3_900_000), proved(3_910_000, 3_920_000, 6_920_001), over, end), 7},
		{"a session that sleeps is ended", ending(slept, end), 0},
		{"a session that sleeps is proved again", ending(slept, read(6_000_000), once, twice, woken(8_040_000), over, end), 0},
		{"a session that sleeps is awake before it is proved", ending(slept, read(6_000_000), once, woken(8_010_000)), 8},
		{"a session that is awake again is ended", ending(slept, read(6_000_000), once, twice, woken(8_040_000), end), 10},
		{"a session is proved for as long as was told as it slept", ending(slept, read(6_000_000), once, twice, assured(9_920_000), over, end), 0},
		{"a session is proved for less than was told as it slept", ending(slept, read(6_000_000), once, twice, assured(9_921_000)), 9},
		{"a session that sleeps is ended before what was believed is over", ending(slept, traces.SessionStep{Kind: "ended", Clock: 3_900_000}), 6},
		{"a session is ended that is not over", without(proven(), 5), 6},
		{"a session is ended before what was believed is over", changed(proven(), 6, traces.SessionStep{Kind: "ended", Clock: 4_919_999}), 7},
	}
	var all []traces.SessionTrace
	for _, each := range planted {
		all = append(all, traces.SessionTrace{Steps: each.steps})
	}
	refused := sessionModel(4*time.Second, realTick).refuse(t, all)
	for i, each := range planted {
		if got := refused[i]; got != each.at {
			t.Errorf("%s: refused at step %d, not %d", each.name, got, each.at)
		}
	}
}
