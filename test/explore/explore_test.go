package explore

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// A world of few states is exhausted in seconds. One of many takes as long as all that have fewer.
const (
	fewStates  = 50_000
	manyStates = 400_000
)

var night = flag.Bool("night", false, "exhaust also the worlds of many states")

// Each planted mistake is found, by the shortest way, which a person can read.
func TestPlantedMistakesAreFound(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		mistake mistake
		broken  string
		length  int // of the trace
		last    string
	}{
		{deletedFirst, "NoStreamHoldsWhatIsGone", 5, "caller 1 has its place deleted"},
		{grantedUnproved, "NoStreamHoldsWhatIsGone", 7, "caller 1 has its session ended by the ensemble"},
		{toldLate, "NobodyCountsOnWhatIsGone", 8, "caller 1 has its place deleted"},
		{twoPlaces, "a request has two places", 2, "caller 1 has a second place made"},
	} {
		for i := range 4 {
			carried, many := i%2 == 0, i/2 == 0
			t.Run(fmt.Sprintf("%s, on its lease's stream: %t, where all may hold: %t", c.mistake, carried, many), func(t *testing.T) {
				t.Parallel()
				found := explore(newLock(bounds{
					mistake: c.mistake, carried: [callers]bool{carried, carried}, many: many, ticks: 3, places: 2, asks: 1, faults: 1,
				}), 1_000_000)
				t.Log(found.told())
				if !strings.Contains(found.broken, c.broken) || len(found.trace) != c.length || found.trace[c.length-1] != c.last {
					t.Errorf("got %q in %d steps, want %q in %d", found.broken, len(found.trace), c.broken, c.length)
				}
			})
		}
	}
}

// What the process before had told binds the one that comes after it.
func TestARestartThatForgetsWhoWasToldIsFound(t *testing.T) {
	t.Parallel()
	found := explore(newLock(bounds{mistake: forgotten, carried: [callers]bool{true, true}, ticks: 1, places: 2, kills: 1}), 1_000_000)
	t.Log(found.told())
	if !strings.Contains(found.broken, "NobodyCountsOnWhatIsGone") || len(found.trace) != 8 {
		t.Errorf("got %q in %d steps", found.broken, len(found.trace))
	}
}

// The sidecar tells `begun` when the attempt is recorded, and the ensemble records none whose place is gone.
func TestAnAttemptThatIsToldOrRecordedWronglyIsFound(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		mistake mistake
		broken  string
		length  int // of the trace
	}{
		{toldFirst, "WhatBeginsIsRecorded", 3},
		{unchecked, "NoLateWriteChangesARecord", 11},
	} {
		for _, carried := range [][callers]bool{{true, true}, {}} {
			t.Run(fmt.Sprintf("%s, on leases' streams: %t", c.mistake, carried[0]), func(t *testing.T) {
				t.Parallel()
				found := explore(newLock(bounds{mistake: c.mistake, once: true, carried: carried, ticks: 2, places: 2}), 1_000_000)
				t.Log(found.told())
				if !strings.Contains(found.broken, c.broken) || len(found.trace) != c.length {
					t.Errorf("got %q in %d steps, want %q in %d", found.broken, len(found.trace), c.broken, c.length)
				}
			})
		}
	}
}

// The record's version says whether a number is free. Without it, or by an older list of permits, two permits bear one number.
func TestANumberThatIsChosenWronglyIsFound(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		mistake mistake
		length  int // of the trace
	}{{lagging, 11}, {unversioned, 11}, {toldFirst, 3}} {
		for _, carried := range [][callers]bool{{true, true}, {}} {
			t.Run(fmt.Sprintf("%s, on leases' streams: %t", c.mistake, carried[0]), func(t *testing.T) {
				t.Parallel()
				found := explore(newLock(bounds{mistake: c.mistake, numbered: true, many: true, carried: carried, ticks: 1, places: 2}), 1_000_000)
				t.Log(found.told())
				if !strings.Contains(found.broken, "WhatBeginsIsRecorded") || len(found.trace) != c.length {
					t.Errorf("got %q in %d steps, want %d", found.broken, len(found.trace), c.length)
				}
			})
		}
	}
}

// A claim ends when each of two clocks says that its time is over, or when an operator's request has outwaited the last answer. Its place stays
// the one that others wait for.
func TestAClaimThatEndsTooSoonIsFound(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		mistake mistake
		broken  string
		length  int // of the trace
	}{
		{oneClock, "NobodyCountsOnWhatIsGone", 6},
		{unread, "NobodyCountsOnWhatIsGone", 9},
		{replaced, "OneCallerIsSure", 7},
		{brokenAtOnce, "NobodyCountsOnWhatIsGone", 6},
	} {
		t.Run(string(c.mistake), func(t *testing.T) {
			t.Parallel()
			found := explore(newLock(bounds{mistake: c.mistake, claimed: true, ticks: 2, places: 2, asks: 1}), 1_000_000)
			t.Log(found.told())
			if !strings.Contains(found.broken, c.broken) || len(found.trace) != c.length {
				t.Errorf("got %q in %d steps, want %d", found.broken, len(found.trace), c.length)
			}
		})
	}
}

// What ships keeps its promises in every order of each of these small worlds. With -night they are what a minute exhausts on two cores; without
// it, the two of many states are left out, and with -short those of more than a few. TestRandomWalksThroughALargerWorldKeepWhatIsPromised goes
// further, and exhausts nothing.
func TestEveryOrderOfASmallWorldKeepsWhatIsPromised(t *testing.T) {
	t.Parallel()
	both, neither, oneOfEach := [callers]bool{true, true}, [callers]bool{}, [callers]bool{true}
	for _, c := range []struct {
		name   string
		bounds bounds
		states int // at least
	}{
		{"on leases' streams", bounds{carried: both, ticks: 2, places: 2, asks: 1, faults: 1}, 249_542},
		{"on leases' streams, with other processes", bounds{carried: both, ticks: 1, places: 2, asks: 1, faults: 1, others: true}, 225_204},
		{"with streams of their own", bounds{carried: neither, ticks: 2, places: 2, asks: 1, faults: 1}, 238_948},
		{"with streams of their own, and other processes", bounds{carried: neither, ticks: 1, places: 2, asks: 1, faults: 1, others: true}, 215_255},
		{"where all may hold", bounds{carried: oneOfEach, many: true, ticks: 1, places: 2, asks: 1, faults: 1}, 695_273},
		{"where all may hold, without faults", bounds{carried: oneOfEach, many: true, ticks: 1, places: 2, asks: 1}, 141_109},
		{"one of each, and a hold more", bounds{carried: oneOfEach, ticks: 1, places: 3, asks: 1}, 404_569},
		{"two answers", bounds{carried: both, ticks: 2, places: 2, asks: 2}, 339_555},
		{"a restart", bounds{carried: both, ticks: 1, places: 2, asks: 1, kills: 1}, 151_476},
		{"a restart, with other processes", bounds{carried: oneOfEach, ticks: 1, places: 2, asks: 1, kills: 1, others: true}, 585_538},
		{"attempts at work that is done once", bounds{once: true, carried: oneOfEach, ticks: 1, places: 2, asks: 1}, 47_005},
		{"numbers", bounds{numbered: true, many: true, carried: oneOfEach, ticks: 1, places: 2}, 57_197},
		{"numbers, and a restart", bounds{numbered: true, many: true, carried: both, ticks: 1, places: 2, kills: 1}, 183_780},
		{"a claim", bounds{claimed: true, carried: oneOfEach, ticks: 1, places: 2, asks: 1}, 191_952},
		{"a claim, and a session that ends", bounds{claimed: true, carried: oneOfEach, ticks: 2, places: 2, asks: 1}, 717_474},
		{"a claim, and a restart", bounds{claimed: true, carried: both, ticks: 1, places: 2, kills: 1}, 42_536},
		{"attempts, and a restart", bounds{once: true, carried: both, ticks: 1, places: 2, kills: 1}, 28_384},
	} {
		if testing.Short() && c.states > fewStates || !*night && c.states > manyStates {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			found := explore(newLock(c.bounds), 2_000_000)
			t.Log(found.told())
			if found.broken != "" || !found.whole || found.states < c.states {
				t.Errorf("want at least %d states, all of them, and no promise broken", c.states)
			}
		})
	}
}

// A larger world is walked through at random.
func TestRandomWalksThroughALargerWorldKeepWhatIsPromised(t *testing.T) {
	t.Parallel()
	walks := uint64(5000)
	if testing.Short() {
		walks /= 10
	}
	for seed := range walks {
		dice := rand.New(rand.NewPCG(seed, 1))
		carried := [callers]bool{dice.IntN(2) == 0, dice.IntN(2) == 0}
		world := newLock(bounds{
			carried: carried, ticks: 8, places: 6, asks: 3, faults: 2, kills: 2, others: dice.IntN(2) == 0, once: dice.IntN(4) == 0,
			claimed: dice.IntN(3) == 0,
		})
		broken, trace := walk(world, dice, 200)
		if broken != "" {
			t.Fatalf("seed %d: %s, after\n%s", seed, broken, strings.Join(trace, "\n"))
		}
	}
}

// The walks are long enough to find what is planted.
func TestRandomWalksFindAPlantedMistake(t *testing.T) {
	t.Parallel()
	for seed := range uint64(5000) {
		dice := rand.New(rand.NewPCG(seed, 1))
		world := newLock(bounds{mistake: toldLate, carried: [callers]bool{true, true}, ticks: 8, places: 6, asks: 3, faults: 2, others: true})
		if broken, _ := walk(world, dice, 200); broken != "" {
			return
		}
	}
	t.Error("no walk finds what is told too late")
}

// What a machine does, and what it has written down, depends on nothing but what it is brought.
func TestTheSameSeedIsTheSameTrace(t *testing.T) {
	t.Parallel()
	trace := func(seed uint64) []byte {
		var written []byte
		dice := rand.New(rand.NewPCG(seed, 2))
		walk(newLock(bounds{
			carried: [callers]bool{true, seed%2 == 0}, ticks: 8, places: 6, asks: 3, faults: 2, kills: 2, others: true, written: &written,
		}), dice, 200)
		return written
	}
	length := 0
	for seed := range uint64(400) {
		once, again := trace(seed), trace(seed)
		if length += len(once); !bytes.Equal(once, again) {
			t.Fatalf("seed %d: got\n%s, and then\n%s", seed, once, again)
		}
	}
	if length < 1_000_000 {
		t.Errorf("%d bytes are too little to show anything", length)
	}
}
