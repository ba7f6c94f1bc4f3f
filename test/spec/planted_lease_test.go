//go:build spec

package spec_test

import (
	"slices"
	"testing"

	"github.com/sidekeeper/sidekeeper/test/traces"
)

// A hold's caller is told of it on its lease's stream, asks for the lease while the hold's end is under way, and acknowledges that.
func carried() []traces.LockStep {
	steps := changed(toldAndEnded(), 4, traces.LockStep{Kind: "carried", Caller: 1})
	steps[9].Kind = "stopped"
	return slices.Insert(steps, 8, traces.LockStep{Kind: "lease_told", Caller: 1})
}

// A hold's caller gives it up on its lease's stream, and is told when its place has gone.
func stopped() []traces.LockStep {
	return slices.Concat(carried()[:7], []traces.LockStep{{Kind: "stopped", Caller: 1}, {Kind: "released", Caller: 1}}, carried()[11:])
}

// Nobody reads the lease's stream, and what was told is over.
func unread() []traces.LockStep {
	steps := changed(carried(), 9, traces.LockStep{Kind: "unread", Caller: 1})
	return changed(steps, 10, traces.LockStep{Kind: "expires", Caller: 1})
}

// What is told of a hold on its lease's stream: the lease goes on when the hold has ended.
func TestTracesOfLeasesStreamsThatBreakAPromiseAreRefused(t *testing.T) {
	t.Parallel()
	step := func(kind string) traces.LockStep { return traces.LockStep{Kind: kind, Caller: 1} }
	late := moved(slices.Insert(carried(), 10, step("expires")), 11, 13)
	untold := func(steps []traces.LockStep) []traces.LockStep { return without(steps, 6) } // of the hold itself
	refusePlanted(t, []planted{
		{"a hold ends, and its end is acknowledged", carried(), 0},
		{"a caller hears of its lease before it is told of the hold's end", slices.Insert(carried(), 9, step("lease_heard")), 0},
		{"a caller hears of its lease what it was not told as the hold ended", changed(carried(), 8, step("lease_heard")), 9},
		{"a caller is told that it holds when that has ended", moved(carried(), 5, 7), 8},
		{"a caller is told for how long when that has ended", moved(carried(), 6, 7), 8},
		{"a place is given up before the end is handed over, though its caller counts on it", slices.Delete(carried(), 9, 11), 10},
		{"a place is given up before the end is handed over, when what was told is over", changed(without(carried(), 9), 9, step("expires")), 11},
		{"a place goes though its caller counts on the hold", without(carried(), 10), 12},
		{"a place goes though its caller counts on what its lease was told as the hold ended", without(untold(carried()), 9), 11},
		{"a lease is told of when the hold's end is handed over", moved(without(untold(carried()), 9), 7, 8), 0},
		{"what was told is over", changed(carried(), 10, step("expires")), 0},
		{"whoever was told has left", changed(carried(), 10, step("deserted")), 0},
		{"nobody reads the stream, and what was told is over", unread(), 0},
		{"nobody reads the stream, and its caller counts on the hold", without(unread(), 10), 12},
		{"nobody reads a stream of the hold's own", changed(toldAndEnded(), 8, step("unread")), 9},
		{"a caller gives its hold up", stopped(), 0},
		{"a caller is told that it holds when it has given that up", slices.Insert(stopped(), 9, step("promised")), 10},
		{"a place is given up while its hold is not", without(stopped(), 8), 9},
		{"a hold is released elsewhere, and its place given up before the end is handed over", without(stopped(), 7), 9},
		{"a caller gives its hold up just before that ends", changed(stopped(), 8, step("ended")), 0},
		{"a caller gives its hold up as the end is under way", moved(carried(), 10, 9), 0},
		{"the same, and is not told of the end", without(carried(), 9), 0},
		{"what was told is over, and an end is acknowledged when the place has gone", late, 0},
		{"a caller gives up what has a stream of its own", changed(toldAndEnded(), 9, step("stopped")), 10},
		{"a lease is closed before the end is handed over", changed(carried(), 9, step("closing")), 10},
		{"a lost lease is closed before the end is handed over", changed(carried(), 9, step("buried")), 10},
		{"a session ends though its caller counts on the lease", append(untold(carried())[:8], step("lost")), 9},
		{"a session ends when what was told is over", append(carried()[:9], step("expires"), step("lost"), traces.LockStep{Kind: "end"}), 0},
	})
}
