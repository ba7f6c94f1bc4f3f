package recipes

import (
	"context"
	"sync"
)

// A Signal is given once, and stays given. Its zero value was not given yet; one that is nil never is.
type Signal struct {
	mu    sync.Mutex
	given bool
	done  chan struct{} // made for those who ask for it
	then  []*func()
}

// Given returns a signal that was given.
func Given() *Signal { return &Signal{given: true} }

// Give gives the signal. It never waits, also for what was asked to happen then.
func (s *Signal) Give() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.given {
		return
	}
	s.given = true
	if s.done != nil {
		close(s.done)
	}
	for _, each := range s.then {
		go (*each)()
	}
	s.then = nil
}

// IsGiven says whether the signal was given.
func (s *Signal) IsGiven() bool {
	if s == nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.given
}

// Done is closed when the signal is given; nil of none.
func (s *Signal) Done() <-chan struct{} {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.done == nil {
		s.done = make(chan struct{})
		if s.given {
			close(s.done)
		}
	}
	return s.done
}

// Await returns when the signal is given, or with what ended ctx.
func (s *Signal) Await(ctx context.Context) error {
	select {
	case <-s.Done():
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Then has f called in a goroutine of its own when the signal is given, at once if it was, unless stop is called before. Until then it costs no
// goroutine.
func (s *Signal) Then(f func()) (stop func()) {
	if s == nil {
		return func() {}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.given {
		go f()
		return func() {}
	}
	added := &f
	s.then = append(s.then, added)
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for i, each := range s.then {
			if each == added {
				s.then[i] = s.then[len(s.then)-1]
				s.then[len(s.then)-1] = nil
				s.then = s.then[:len(s.then)-1]
				return
			}
		}
	}
}

// An either is what one who waits for several signals waits for.
type either struct{ forget func() }

// of is given when one of the signals is, until it is asked for others or dropped.
func (e *either) of(signals ...*Signal) *Signal {
	e.drop()
	if len(signals) == 1 {
		return signals[0]
	}
	first := &Signal{}
	var stops []func()
	for _, each := range signals {
		stops = append(stops, each.Then(first.Give))
		if each.IsGiven() {
			first.Give()
		}
	}
	e.forget = func() {
		for _, stop := range stops {
			stop()
		}
	}
	return first
}

// drop has nothing wait any more.
func (e *either) drop() {
	if e.forget != nil {
		e.forget()
		e.forget = nil
	}
}
