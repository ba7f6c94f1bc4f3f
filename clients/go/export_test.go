package sidekeeper

import (
	"sync"
	"time"
)

// A FakeClock stands still until a test moves it.
type FakeClock struct {
	mu     sync.Mutex
	time   time.Duration
	alarms map[chan time.Time]time.Duration
}

// WithClock makes a client count validity on a fake clock.
func WithClock(clock *FakeClock) Option {
	return func(s *settings) { s.clock = clock }
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
func Patience(validity time.Duration) time.Duration { return patience(validity) }

// Resolve is what Dial makes of a target.
func Resolve(target string) (resolved string, local bool, err error) { return resolve(target) }

// FromStatus is what a Client makes of gRPC's errors.
func FromStatus(err error) error { return fromStatus(err) }
