package sidekeeper

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// inBubble is synctest.Test on one processor, since Go's race detector before 1.27 cannot bear two
// (https://github.com/golang/go/issues/78156).
// No test of this package runs beside another.
func inBubble(t *testing.T, test func(*testing.T)) {
	t.Helper()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	synctest.Test(t, test) //nolint:forbidigo // this is how it is borne
}

// A FakeClock stands still until a test moves it.
type FakeClock struct {
	mu     sync.Mutex
	time   time.Duration
	alarms map[chan time.Time]time.Duration
	Coarse time.Duration // how far it may be behind
}

func (f *FakeClock) coarseness() time.Duration { return f.Coarse }

// WithClock makes a client count validity on a fake clock.
func WithClock(clock *FakeClock) Option {
	return func(s *settings) { s.clock = clock }
}

// A SuspendedClock is the system's, on a machine that a test suspends: timers know nothing of that.
type SuspendedClock struct {
	systemClock
	slept  atomic.Int64
	Alarms chan time.Duration // for when each alarm was set, if somebody reads it
}

// NewSuspendedClock makes a clock of a machine that has never been suspended.
func NewSuspendedClock() *SuspendedClock {
	c := &SuspendedClock{Alarms: make(chan time.Duration, 100)}
	c.read = func() time.Duration { return systemTime() + time.Duration(c.slept.Load()) }
	return c
}

// WithSuspendedClock makes a client count validity on such a clock.
func WithSuspendedClock(clock *SuspendedClock) Option {
	return func(s *settings) { s.clock = clock }
}

// Sleep suspends the machine.
func (c *SuspendedClock) Sleep(d time.Duration) { c.slept.Add(int64(d)) }

func (c *SuspendedClock) alarm(at time.Duration) (<-chan time.Time, func() bool) {
	ready, stop := c.systemClock.alarm(at)
	select {
	case c.Alarms <- at:
	default:
	}
	return ready, stop
}

// What waits for silence is tested in bubbles.
func (*FakeClock) after(time.Duration, func()) func() bool { return func() bool { return true } }

// Jump moves the clock on as Advance does, and rings no alarm.
func (f *FakeClock) Jump(by time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.time += by
}

// Advance moves the clock on and rings the alarms whose time has come.
func (f *FakeClock) Advance(by time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.time += by
	for ready, at := range f.alarms {
		if at <= f.time {
			delete(f.alarms, ready)
			ready <- time.Time{}
		}
	}
}

func (f *FakeClock) now() time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.time
}

func (f *FakeClock) alarm(at time.Duration) (<-chan time.Time, func() bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	ready := make(chan time.Time, 1)
	if at <= f.time {
		ready <- time.Time{}
		return ready, func() bool { return true }
	}
	if f.alarms == nil {
		f.alarms = map[chan time.Time]time.Duration{}
	}
	f.alarms[ready] = at
	return ready, func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.alarms, ready)
		return true
	}
}

// Patience is how long a keeper lets pass between two questions.
func Patience(validity time.Duration) time.Duration { return askInterval(validity) }

// Resolve is what Dial makes of a target.
func Resolve(target string) (resolved string, local bool, err error) { return resolve(target) }

// OnEnd has callback called when the lease ends, before the sidecar learns of it.
func OnEnd(l *Lease, callback func()) { l.onEnd(callback) }
