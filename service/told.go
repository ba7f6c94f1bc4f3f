package service

import (
	"sync/atomic"
	"time"

	holdv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/hold/v1"
	"github.com/sidekeeper/sidekeeper/internal/outbox"
)

// A latch is closed once, by the first that comes.
type latch struct {
	is     atomic.Bool
	closed chan struct{}
	then   atomic.Pointer[func()] // called then; nil for nothing
}

func newLatch() *latch { return &latch{closed: make(chan struct{})} }

// does has something done when the latch is closed, once, until it is careless. A latch that is remembered for longer keeps nothing else then.
func (l *latch) does(then func()) { l.then.Store(&then) }

// careless has the latch do nothing more.
func (l *latch) careless() { l.then.Store(nil) }

func (l *latch) close() {
	if !l.is.CompareAndSwap(false, true) {
		return
	}
	close(l.closed)
	if then := l.then.Load(); then != nil {
		(*then)()
	}
}

func (s *held[P, M]) tellConnectivity(suspended bool) {
	s.tell(topicConnectivity, func() M {
		if suspended {
			return s.recipe.suspendedFor(s.remaining())
		}
		return s.recipe.resumed(&holdv1.Resumed{})
	})
}

// tell sends an event, unless the hold is not the caller's any more when the event's turn has come.
func (s *held[P, M]) tell(about outbox.Topic, compose func() M) {
	s.put(about, func() (M, bool) {
		event := compose()
		return event, s.mayTell()
	})
}

// remaining is for how long the hold is valid, noted as told to the stream's caller.
func (s *held[P, M]) remaining() time.Duration {
	remaining := s.lease.validFor()
	s.lease.drive.tell(s.id, s.caller, remaining)
	return remaining
}

// mayTell says whether the hold is the caller's still.
func (s *held[P, M]) mayTell() bool {
	return s.lease.validFor() > 0 && s.lease.drive.tell(s.id, s.caller, 0)
}
