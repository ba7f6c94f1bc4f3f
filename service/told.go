package service

import (
	"maps"
	"sync"
	"time"

	holdv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/hold/v1"
	"github.com/sidekeeper/sidekeeper/internal/caller"
	"github.com/sidekeeper/sidekeeper/internal/trace"
)

// clocks is what part of a time that others count, on a clock that may be slow, is to be waited for in addition, on one that may be
// fast: each is right within 1 %.
const clocks = 50

// A tellings knows who may count on something: for each connection, until when it was told that the hold is valid. Whatever
// is told of a validity is noted before it leaves.
type tellings struct {
	mu     sync.Mutex
	until  map[*caller.Ending]time.Time
	closed bool

	session, token int64 // whose they are; the lease's without a token
	stopped        bool  // the caller of a hold on its lease's stream has given it up, perhaps before it was granted
}

// note notes that a caller is about to be told this validity. It returns false, and the caller must not be told, if the hold
// has ended.
func (t *tellings) note(to caller.Caller, validity time.Duration) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return false
	}
	t.trace(trace.Promised, validity)
	now := time.Now()
	if until := now.Add(validity + validity/clocks); validity > 0 && to.Ending != nil && until.After(t.until[to.Ending]) {
		maps.DeleteFunc(t.until, func(_ *caller.Ending, until time.Time) bool { return until.Before(now) })
		if t.until == nil {
			t.until = map[*caller.Ending]time.Time{}
		}
		t.until[to.Ending] = until
	}
	return true
}

// noted is a copy of what was noted.
func (t *tellings) noted() map[*caller.Ending]time.Time {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.until)
}

// begin says whose they are, and how a hold is told of.
func (t *tellings) begin(session, token int64, how trace.Kind) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.session, t.token = session, token
	t.saysLocked(how)
	if t.stopped {
		t.saysLocked(trace.Stopped)
	}
}

// stop notes that the caller of a hold on its lease's stream counts on it no more.
func (t *tellings) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopped = true
	t.saysLocked(trace.Stopped)
}

// close has nothing told any more.
func (t *tellings) close(end trace.Kind) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	t.saysLocked(end)
}

// says has a step of the hold's told, if there is one.
func (t *tellings) says(step trace.Kind) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.saysLocked(step)
}

func (t *tellings) saysLocked(step trace.Kind) {
	if t.token != 0 {
		t.trace(step, 0)
	}
}

func (t *tellings) trace(kind trace.Kind, validity time.Duration) {
	if t.session != 0 {
		trace.Tell(trace.Step{Kind: kind, Session: t.session, Token: t.token, Until: validity})
	}
}

// A latch is closed once, by whoever comes first.
type latch struct {
	once   sync.Once
	closed chan struct{}
	then   func() // called then; may be nil
}

func newLatch() *latch { return &latch{closed: make(chan struct{})} }

// newEnding is a latch that is closed when the caller of a stream has given up what it waits for or holds, which ends the stream.
func newEnding(of over) *latch {
	return &latch{closed: make(chan struct{}), then: func() { of.end(errGivenUp) }}
}

func (l *latch) close() {
	l.once.Do(func() {
		close(l.closed)
		if l.then != nil {
			l.then()
		}
	})
}

// later joins what was noted of two things: of each connection the later instant.
func later(a, b map[*caller.Ending]time.Time) map[*caller.Ending]time.Time {
	if a == nil {
		return b
	}
	for connection, until := range b {
		if until.After(a[connection]) {
			a[connection] = until
		}
	}
	return a
}

func (s *heldStream[P, M]) tellConnectivity() {
	suspended := s.connectivity.suspended
	s.tell(topicConnectivity, func() M {
		if suspended {
			return s.recipe.suspendedFor(s.remaining())
		}
		return s.recipe.resumed(&holdv1.Resumed{})
	})
}

// tell sends an event, unless the hold is not the caller's any more when the event's turn has come.
func (s *heldStream[P, M]) tell(about topic, compose func() M) {
	s.box.put(about, func() (M, bool) {
		event := compose()
		return event, s.mayTell()
	})
}

// remaining is for how long the hold is valid, noted as told to the stream's caller.
func (s *heldStream[P, M]) remaining() time.Duration {
	remaining := s.lease.validFor()
	s.told.note(s.caller, remaining)
	return remaining
}

// mayTell says whether the hold is the caller's still.
func (s *heldStream[P, M]) mayTell() bool { return s.lease.validFor() > 0 && s.told.note(s.caller, 0) }
