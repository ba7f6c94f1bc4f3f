package recipes

import (
	"context"
	"sync"
)

// A Signal is given once, and stays given. Its zero value was not given yet; one that is nil never is.
type Signal struct {
	mu     sync.Mutex
	given  bool
	done   chan struct{} // made for those who ask for it
	newest *Sequel       // of those that are not dropped
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
	for each := s.newest; each != nil; each = each.older {
		go each.then()
	}
	s.newest = nil
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

// A Sequel is what follows when a signal is given. Of nil nothing does.
type Sequel struct {
	of           *Signal
	then         func()
	newer, older *Sequel
}

// Then has f called in a goroutine of its own when the signal is given, at once if it was, unless the sequel is dropped before. Until then it
// costs no goroutine.
func (s *Signal) Then(f func()) *Sequel {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.given {
		go f()
		return nil
	}
	added := &Sequel{of: s, then: f, older: s.newest}
	if s.newest != nil {
		s.newest.newer = added
	}
	s.newest = added
	return added
}

// Drop has nothing follow any more.
func (q *Sequel) Drop() {
	if q == nil {
		return
	}
	q.of.mu.Lock()
	defer q.of.mu.Unlock()
	switch {
	case q.newer != nil:
		q.newer.older = q.older
	case q.of.newest == q:
		q.of.newest = q.older
	}
	if q.older != nil {
		q.older.newer = q.newer
	}
	q.newer, q.older = nil, nil
}

// An either is what one who waits for several signals waits for.
type either struct{ sequels []*Sequel }

// of is given when one of the signals is, until it is asked for others or dropped.
func (e *either) of(signals ...*Signal) *Signal {
	e.drop()
	if len(signals) == 1 {
		return signals[0]
	}
	first := &Signal{}
	for _, each := range signals {
		e.sequels = append(e.sequels, each.Then(first.Give))
		if each.IsGiven() {
			first.Give()
		}
	}
	return first
}

// drop has nothing wait any more.
func (e *either) drop() {
	for _, each := range e.sequels {
		each.Drop()
	}
	e.sequels = nil
}
