package main

import (
	"math"
	"runtime"
	"runtime/metrics"
	"testing"
	"time"
)

func TestGarbageMayBeAQuarterOfTheHeapAndIsAlwaysSome(t *testing.T) {
	t.Parallel()
	for live, want := range map[uint64]int{0: 2400, 1 << 20: 2400, 24 << 20: 100, 96 << 20: 25, 1 << 30: 25} {
		if got := percentFor(live); got != want {
			t.Errorf("with %d bytes in use: %d %%, want %d", live, got, want)
		}
	}
}

func TestThePaceOfCollectionsFollowsTheHeap(t *testing.T) {
	before := percentNow()
	undo := paceGarbage(math.MaxInt64)
	defer undo()
	hold(t)
	awaitPercent(t, "a small heap", func(percent int) bool { return percent > garbagePercent })
	undo()
	runtime.GC()
	if got := percentNow(); got != before {
		t.Errorf("undone: %d %%, want %d", got, before)
	}
}

// hold has the heap be large for a while.
func hold(t *testing.T) {
	t.Helper()
	held := make([]byte, 256<<20)
	awaitPercent(t, "a large heap", func(percent int) bool { return percent == garbagePercent })
	runtime.KeepAlive(held)
}

func percentNow() int {
	sample := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(sample)
	return int(sample[0].Value.Uint64())
}

// awaitPercent collects garbage until the pace is as it should be.
func awaitPercent(t *testing.T, when string, right func(percent int) bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; runtime.GC() {
		percent := percentNow()
		if right(percent) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %d %%", when, percent)
		}
	}
}
