package embedded

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/sidekeeper/sidekeeper/recipes"
)

// Why a session has ended. All are recipes.ErrSessionEnded.
var (
	causeClosed       = fmt.Errorf("%w: it was closed", recipes.ErrSessionEnded)
	causeExpired      = fmt.Errorf("%w: the ensemble expired it", recipes.ErrSessionEnded)
	causeEnsembleGone = fmt.Errorf("%w: the ensemble is gone", recipes.ErrSessionEnded)
)

// ErrNoSession means that no such session is alive.
var ErrNoSession = errors.New("no such session")

// A holder is what a session belongs to on our side: a connection, or a client of this process. Its methods are called while the
// ensemble is locked.
type holder interface {
	// ended says that the session is over.
	ended(cause error)
}

// A serverSession is a session as the server knows it.
type serverSession struct {
	id      int64
	timeout time.Duration
	tick    int64 // at the end of which it expires; 0 while it is exempt
	holder  holder

	condemned bool // its client is told that it has expired, though it has not yet
}

// openSession starts a session of about that timeout. The ensemble is locked.
func (e *Ensemble) openSession(timeout time.Duration, h holder) *serverSession {
	e.lastSession++
	e.zxid++
	s := &serverSession{id: e.lastSession, timeout: e.negotiate(timeout), holder: h}
	e.sessions[s.id] = s
	e.commits(Change{Zxid: e.zxid, Session: s.id, Timeout: s.timeout})
	return s
}

// negotiate brings a timeout into the range the ensemble accepts.
func (e *Ensemble) negotiate(timeout time.Duration) time.Duration {
	return min(max(timeout, 2*e.options.Tick), 20*e.options.Tick)
}

// endSession ends a session and deletes what it owned, in one transaction. The ensemble is locked.
func (e *Ensemble) endSession(s *serverSession, cause error) {
	e.exempt(s)
	delete(e.sessions, s.id)
	_ = e.write(caller{session: s.id}, func(t *transaction) error {
		t.ended = true
		for _, path := range e.ephemeralsOf(s.id) {
			t.remove(path, t.tree.nodes[path])
		}
		return nil
	})
	s.holder.ended(cause)
}

// ephemeralsOf lists a session's nodes.
func (e *Ensemble) ephemeralsOf(session int64) []string {
	return slices.Sorted(maps.Keys(e.tree.ephemerals[session]))
}

// touch gives a session its full timeout again, counted from now and rounded up to a whole tick.
func (e *Ensemble) touch(s *serverSession) {
	tick := int64((time.Since(e.started)+s.timeout)/e.options.Tick) + 1
	if tick == s.tick {
		return
	}
	e.exempt(s)
	s.tick = tick
	if e.deadlines[tick] == nil {
		e.deadlines[tick] = map[*serverSession]struct{}{}
	}
	e.deadlines[tick][s] = struct{}{}
	e.expiry.set(e.endOf(tick), e.expire)
}

// exempt takes a session out of the queue of those that expire.
func (e *Ensemble) exempt(s *serverSession) {
	delete(e.deadlines[s.tick], s)
	if len(e.deadlines[s.tick]) == 0 {
		delete(e.deadlines, s.tick)
	}
	s.tick = 0
}

func (e *Ensemble) endOf(tick int64) time.Time {
	return e.started.Add(time.Duration(tick) * e.options.Tick)
}

// expire ends the sessions whose tick is over and sets the alarm for the next. The alarm calls it.
func (e *Ensemble) expire() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.expiry.stop()
	if e.closed {
		return
	}
	next, now := int64(math.MaxInt64), time.Now()
	for tick, sessions := range e.deadlines {
		if e.endOf(tick).After(now) {
			next = min(next, tick)
			continue
		}
		for s := range sessions {
			e.endSession(s, causeExpired)
		}
	}
	if next != math.MaxInt64 {
		e.expiry.set(e.endOf(next), e.expire)
	}
}

// Condemn has the server tell a session's client that it has expired, while what the session owns stays there until
// Expire, or until its timeout. So a client can lose its session before anybody else can have what it owned.
func (e *Ensemble) Condemn(session int64) error {
	return e.withSession(session, func(s *serverSession) {
		s.condemned = true
		e.commits(Change{Zxid: e.zxid, Session: s.id, Condemned: true})
		if c, attached := s.holder.(*connection); attached {
			c.end()
		}
	})
}

// Expire ends a session at once, as if its timeout had passed.
func (e *Ensemble) Expire(session int64) error {
	return e.withSession(session, func(s *serverSession) { e.endSession(s, causeExpired) })
}

func (e *Ensemble) withSession(session int64, do func(*serverSession)) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	s, found := e.sessions[session]
	if !found {
		return ErrNoSession
	}
	do(s)
	return nil
}
