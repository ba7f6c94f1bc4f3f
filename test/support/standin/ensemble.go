// Package standin stands in for the session layer in tests: sessions without a connection on an ensemble in memory. They can be suspended,
// delayed and expired at will, and need no I/O, so that they work inside a testing/synctest bubble. A table of contract tests runs against
// them and against the session layer on a real server.
package standin

import (
	"cmp"
	"sync"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/embedded"
)

// Options are the settings of an ensemble, as embedded.Options are. The zero value is good.
type Options struct {
	Tick          time.Duration
	ReapInterval  time.Duration
	StuckCounters bool
	// EphemeralBytes bounds the paths of a Session's ephemeral nodes. 256 KiB if zero.
	EphemeralBytes int
}

// An Ensemble is an in-memory server that opens Sessions.
type Ensemble struct {
	*embedded.Ensemble

	mu      *sync.Mutex // the server's, which guards all state here
	options Options
	places  map[string]*place // what Sessions have enqueued
}

// New makes an ensemble. Close stops its timers.
func New(options Options) *Ensemble {
	options.Tick = cmp.Or(options.Tick, 2*time.Second)
	options.EphemeralBytes = cmp.Or(options.EphemeralBytes, 256<<10)
	memory := embedded.New(embedded.Options{
		Tick: options.Tick, ReapInterval: options.ReapInterval, StuckCounters: options.StuckCounters,
	})
	e := &Ensemble{Ensemble: memory, mu: memory.Mutex(), options: options, places: map[string]*place{}}
	memory.OnDelete(e.noticeDeleted)
	return e
}
