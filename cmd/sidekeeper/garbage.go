package main

import (
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

// Garbage may pile up to a quarter of what is in use, stacks included, and always to this many bytes. A small heap is then not collected with
// every few sessions that open, each of which throws away 1.5 MiB, and a large one keeps less garbage than it would by
// Go's own rule.
const (
	leastGarbage   = 24 << 20
	garbagePercent = 25
)

// limitFor is from how many bytes of Go's memory on garbage is collected as often as it takes: twice what may be in use beside it, which
// leaves as much again of what the chart allows. No limit is without one.
func limitFor(mostInUse int64) int64 {
	if mostInUse == 0 {
		return math.MaxInt64
	}
	return 2 * mostInUse
}

// paceGarbage sets after each collection when the next one is due, and from which limit on it is due at once, unless the environment
// does, until it is undone.
func paceGarbage(limit int64) (undo func()) {
	if os.Getenv("GOMEMLIMIT") == "" {
		before := debug.SetMemoryLimit(limit)
		defer func() {
			pacing := undo
			undo = func() {
				pacing()
				debug.SetMemoryLimit(before)
			}
		}()
	}
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	p := &pacer{before: debug.SetGCPercent(garbagePercent)}
	p.pace(0)
	return p.end
}

type pacer struct {
	before int

	mu   sync.Mutex
	over bool
}

func (p *pacer) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
	debug.SetGCPercent(p.before)
}

// pace is called by the runtime once the last mark it has left is collected, which is after each collection.
func (p *pacer) pace(int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return
	}
	debug.SetGCPercent(percentFor(scannedBytes()))
	mark := new(*byte)
	runtime.AddCleanup(mark, p.pace, 0)
}

// scannedBytes is what Go takes the percentage of: what the last collection left on the heap, and the parts of stacks and global variables
// that it went over. A thousand leases have half as much on their stacks as on the heap.
func scannedBytes() (sum uint64) {
	samples := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/stack:bytes"}, {Name: "/gc/scan/globals:bytes"}}
	metrics.Read(samples)
	for _, each := range samples {
		sum += each.Value.Uint64()
	}
	return sum
}

// percentFor is what garbage may add where so many bytes are in use.
func percentFor(used uint64) int {
	return int(max(garbagePercent, leastGarbage*100/max(used, 1<<20)))
}
