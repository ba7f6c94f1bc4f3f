package standin

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/sidekeeper/sidekeeper/recipes"
)

// A Session is one session without a connection. It is alive, and counts as heard of by the ensemble, until it is
// closed or expired; while it is suspended its time runs out. It stands in for the session layer in tests.
type Session struct {
	*line
	reader *Reader
	shared bool // the reader is somebody else's
	id     int64
	expiry time.Duration // its timeout, as negotiated

	lifetime  context.Context //nolint:containedctx // ends with the session
	end       context.CancelFunc
	missed    []*recipes.Signal // of places that others have deleted while it was suspended
	cause     error             // why it ended
	validity  *time.Timer       // rings when a suspended session can no longer prove itself
	silent    time.Time         // since when it has been suspended
	finishing sync.Once
}

// Why a session has ended that the ensemble has not ended. Both are recipes.ErrSessionEnded.
var (
	causeClosed   = fmt.Errorf("%w: it was closed", recipes.ErrSessionEnded)
	causeUnproven = fmt.Errorf("%w: it can no longer prove itself", recipes.ErrSessionEnded)
)

var _ recipes.Adopter = (*Session)(nil)

// OpenSession opens a session with a reader of its own, which is suspended together with it. The timeout is brought
// into the ensemble's range.
func (e *Ensemble) OpenSession(timeout time.Duration) *Session {
	s := e.NewReader().OpenSession(timeout)
	s.shared = false
	return s
}

// OpenSession opens a session that reads through r. Session and reader are suspended each for itself.
func (r *Reader) OpenSession(timeout time.Duration) *Session {
	e := r.view.ensemble
	s := &Session{line: newLine(e.mu), reader: r, shared: true}
	s.lifetime, s.end = context.WithCancel(context.Background())
	e.mu.Lock()
	defer e.mu.Unlock()
	s.id, s.expiry = e.StartSession(timeout, s.ended)
	return s
}

// Open opens a session as OpenSession does.
func (e *Ensemble) Open(ctx context.Context, timeout time.Duration) (*Session, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return e.OpenSession(timeout), nil
}

// ID is the session's number, as it stands in Node.Owner.
func (s *Session) ID() int64 { return s.id }

// Reader is what the session reads through.
func (s *Session) Reader() *Reader { return s.reader }

// Timeout is the session's negotiated timeout.
func (s *Session) Timeout() time.Duration { return s.expiry }

// Key is what the session would be come back to with.
func (s *Session) Key() recipes.SessionKey { return recipes.SessionKey{ID: s.id, Timeout: s.expiry} }

// ValidFor is for how long the session is certainly still its owner's; 0 when it has ended. It is one tick less than
// the timeout, and runs down while the session is suspended.
func (s *Session) ValidFor() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.cause != nil:
		return 0
	case s.suspended:
		return max(0, time.Until(s.silent.Add(s.proof())))
	}
	return s.proof()
}

// proof is how long a session is valid after it was last heard of.
func (s *Session) proof() time.Duration { return s.expiry - s.ensemble().options.Tick }

func (s *Session) ensemble() *Ensemble { return s.reader.view.ensemble }

// Err says why the session has ended: a recipes.ErrSessionEnded, or nil while it is alive.
func (s *Session) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cause
}

// Done implements recipes.Session.
func (s *Session) Done() <-chan struct{} { return s.lifetime.Done() }

// AfterEnd implements service.Session.
func (s *Session) AfterEnd(f func()) (stop func() bool) { return context.AfterFunc(s.lifetime, f) }

// Suspend takes contact with the ensemble away: calls wait. If it lasts, the session ends one tick before its timeout,
// and the ensemble expires it within a tick after it.
func (s *Session) Suspend() { s.set(s.lose) }

// Resume gives contact back. A session that has ended stays so.
func (s *Session) Resume() { s.set(s.regain) }

func (s *Session) lose() {
	if s.cause != nil || !s.suspend(true) {
		return
	}
	s.silent = time.Now()
	s.validity = time.AfterFunc(s.proof(), s.unproven)
	s.ensemble().Unheard(s.id, true)
	if !s.shared {
		s.reader.suspend(true)
	}
}

func (s *Session) regain() {
	if s.cause != nil || !s.suspend(false) {
		return
	}
	s.validity.Stop()
	s.ensemble().Unheard(s.id, false)
	s.deliverGone()
	if !s.shared {
		s.reader.resume()
	}
}

// unproven ends a session whose validity is over. The ensemble expires it later.
func (s *Session) unproven() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.suspended {
		s.ended(causeUnproven)
	}
}

// Expire has the ensemble expire the session now.
func (s *Session) Expire() { _ = s.ensemble().Expire(s.id) }

// Close ends the session. What it owned is gone when Close returns, unless it is suspended: then the ensemble does not
// hear of it and expires the session later.
func (s *Session) Close(context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.cause != nil:
	case s.suspended:
		s.ended(causeClosed)
	default:
		s.ensemble().EndSession(s.id)
	}
}

// ended takes in that the session is over. The first cause stands.
func (s *Session) ended(cause error) {
	s.finishing.Do(func() {
		s.cause = cause
		if s.validity != nil {
			s.validity.Stop()
		}
		s.ensemble().forgetPlaces(s.id)
		s.end()
	})
}

// SawDeleted implements recipes.Session.
func (s *Session) SawDeleted(path string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reader.view.deleted[path]
}

// Owns implements recipes.Session.
func (s *Session) Owns(node recipes.Node) bool { return node.Owner == s.id }

// WatchOwn implements recipes.Session.
func (s *Session) WatchOwn(ctx context.Context, path string) (recipes.Node, *recipes.Signal, func(), error) {
	node, changed, err := s.Watch(ctx, path)
	return node, changed, func() {}, err
}

// Seen implements recipes.Session. It does not bound the validity.
func (s *Session) Seen(string, int32) {}

// Disregard implements recipes.Session.
func (s *Session) Disregard(string) {}

// Prove implements recipes.Session.
func (s *Session) Prove(ctx context.Context) error {
	return s.call(ctx, s.over(), Operation{Name: "Prove"}, func() error { return nil })
}

// Asleep implements service.Session. It never sleeps.
func (s *Session) Asleep() bool { return false }

// AssuredFor is ValidFor: it never sleeps.
func (s *Session) AssuredFor() time.Duration { return s.ValidFor() }

func (s *Session) over() over { return over{done: s.Done(), why: s.Err} }

// Children implements recipes.Tree.
func (s *Session) Children(ctx context.Context, path string) ([]string, error) {
	return s.reader.children(ctx, s.line, s.over(), path)
}

// WatchChildren implements recipes.Tree.
func (s *Session) WatchChildren(ctx context.Context, path string) ([]string, *recipes.Signal, error) {
	return s.reader.watchChildren(ctx, s.line, s.over(), path)
}

// Get implements recipes.Tree.
func (s *Session) Get(ctx context.Context, path string) (recipes.Node, error) {
	return s.reader.get(ctx, s.line, s.over(), path)
}

// Watch implements recipes.Tree.
func (s *Session) Watch(ctx context.Context, path string) (recipes.Node, *recipes.Signal, error) {
	return s.reader.watch(ctx, s.line, s.over(), path)
}

// CatchUp implements recipes.Tree.
func (s *Session) CatchUp(ctx context.Context) error {
	return s.reader.catchUp(ctx, s.line, s.over())
}
