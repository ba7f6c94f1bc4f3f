package service

import (
	"sync"
	"time"

	holdv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/hold/v1"
	"github.com/sidekeeper/sidekeeper/internal/outbox"
)

// A latch is closed once, by the first that comes.
type latch struct {
	mu     sync.Mutex
	is     bool
	closed chan struct{}
	told   interface{ isGivenUp() } // then; nil for none
}

func newLatch() *latch { return &latch{closed: make(chan struct{})} }

// tell has a request told when the latch is closed, or nothing any more: a latch that is remembered for longer keeps no request.
func (l *latch) tell(of interface{ isGivenUp() }) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.told = of
}

func (l *latch) close() {
	l.mu.Lock()
	first, told := !l.is, l.told
	l.is = true
	l.mu.Unlock()
	if !first {
		return
	}
	close(l.closed)
	if told != nil {
		told.isGivenUp()
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
