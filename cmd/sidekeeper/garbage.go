package main

import (
	"os"
	"runtime"
	"runtime/debug"
)

// Garbage may pile up to a quarter of the heap, reckoned as if the heap were this much larger than it is. A small heap is
// then not collected with every few sessions that open, each of which throws away 1.5 MiB, and a large one keeps less
// garbage than it would by Go's own rule.
const (
	heapAllowance  = 96 << 20
	garbagePercent = 25
)

// paceGarbage sets how often garbage is collected, unless the environment does, for as long as undo is not called.
func paceGarbage() (undo func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	allowance := make([]byte, heapAllowance) // never written to, so that it takes no memory
	before := debug.SetGCPercent(garbagePercent)
	return func() {
		debug.SetGCPercent(before)
		runtime.KeepAlive(allowance)
	}
}
