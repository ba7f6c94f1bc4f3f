// Package embedded is a ZooKeeper ensemble of one server in memory, for development and tests. It keeps nothing, and
// behaves towards its clients as a standalone ZooKeeper 3.9 does: a table of contract tests runs against both.
//
// Clients connect to a Server, which speaks ZooKeeper's wire protocol.
//
// All state lies behind one mutex, which is never held while anything blocks. Time is Go's (virtual inside a bubble):
// one timer ends sessions and one reaps containers and TTL nodes, each running only while it has something to wait
// for. No goroutine belongs to a node, a watch or a session.
package embedded

import (
	"cmp"
	"sync"
	"time"
)

// Options are the settings of an ensemble. The zero value is good.
type Options struct {
	// Tick is the ensemble's unit of time: sessions last from 2 to 20 ticks and end on whole ticks. 2 s if zero.
	Tick time.Duration
	// ReapInterval is how often idle containers and overdue TTL nodes are looked for. A minute if zero.
	ReapInterval time.Duration
	// StuckCounters keeps a parent's counter at 2147483647 instead of wrapping to −2147483648. ZooKeeper 3.9.5 does
	// both: creates that come one by one all get 2147483647, those that are in its pipeline together wrap, and after
	// them it is 2147483647 again. So past the end numbers neither differ nor order nodes; czxids do.
	StuckCounters bool
	// Committed is told each change in the instant in which it is made; nobody if nil. It must not wait for anything, nor call the ensemble.
	Committed func(Change)
}

// An Ensemble is the in-memory server. Its methods may be called by many goroutines.
type Ensemble struct {
	options Options
	started time.Time

	mu           sync.Mutex
	tree         *tree
	zxid         int64
	nodeWatches  *watchTable
	childWatches *watchTable
	sessions     map[int64]*serverSession
	lastSession  int64
	deadlines    map[int64]map[*serverSession]struct{} // by tick
	expiry       alarm
	reaping      alarm
	deleted      func(path string) // is told of deleted nodes, if anybody wants to be
	closed       bool
}

// New makes an ensemble. Close stops its timers.
func New(options Options) *Ensemble {
	options.Tick = cmp.Or(options.Tick, 2*time.Second)
	options.ReapInterval = cmp.Or(options.ReapInterval, time.Minute)
	now := time.Now()
	return &Ensemble{
		options: options, started: now, tree: newTree(),
		nodeWatches: newWatchTable(), childWatches: newWatchTable(),
		sessions: map[int64]*serverSession{}, deadlines: map[int64]map[*serverSession]struct{}{},
		lastSession: int64(uint64(now.UnixMilli())<<24>>8) | 1<<56,
	}
}

// Close ends every session without deleting what it owned, as if the servers had gone.
func (e *Ensemble) Close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	e.commits(Change{Closed: true})
	e.expiry.stop()
	e.reaping.stop()
	for id, s := range e.sessions {
		delete(e.sessions, id)
		s.holder.ended(causeEnsembleGone)
	}
}

// An alarm is a timer that is set only while there is something to wait for.
type alarm struct {
	timer *time.Timer
	at    time.Time
}

// set makes the alarm run ring at that time, unless it does so sooner already.
func (a *alarm) set(at time.Time, ring func()) {
	if a.timer != nil && !a.at.After(at) {
		return
	}
	a.stop()
	a.at = at
	a.timer = time.AfterFunc(time.Until(at), ring)
}

func (a *alarm) stop() {
	if a.timer != nil {
		a.timer.Stop()
		a.timer = nil
	}
}
