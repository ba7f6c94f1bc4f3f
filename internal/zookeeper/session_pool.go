package zookeeper

import (
	"context"
	"crypto/tls"
	"errors"
	"sync"
	"time"

	"github.com/sidekeeper/sidekeeper/recipes"
)

// How long an idle session is kept, and how far back a pool counts how many were opened: it keeps no more than that.
const (
	idleTimeout = 5 * time.Second
	poolWindow  = 5 * time.Second
)

// A PooledSession is a session for as long as one lease stands on it. When it is closed and the session is clean, the session is kept
// idle for the next lease that asks for the same timeout, which then costs no transaction: most leases stand under one call each.
//
// A session is clean if nothing of what was asked on it can show any more: nothing stands that it owned, each request to write was
// answered and carried out (a deletion may have found nothing), and all over the connection that it was born with. What was not
// answered, or was refused, bars it from being used again, though it may have done no harm. The proof of an idle session goes on, and one
// that is not well proved is not used again either. So its next user cannot tell it from a new one, but for its number.
type PooledSession struct {
	*Session

	key  poolKey
	loan context.Context //nolint:containedctx // ends, under the session's lock, when the session has ended or has been given back
	done context.CancelFunc

	mu     sync.Mutex
	closed bool
	calls  int // under way that may write
}

// A poolKey is what sessions are alike in that can stand for one another.
type poolKey struct {
	timeout time.Duration // as it was asked for
	auth    string        // credentials
	tls     *tls.Config   // changes with the certificates
}

func (c *Client) poolKey(timeout time.Duration) poolKey {
	key := poolKey{timeout: timeout, auth: string(c.introduction())}
	if timeout == 0 {
		key.timeout = c.config.SessionTimeout
	}
	if c.config.TLS != nil {
		key.tls = c.config.TLS()
	}
	return key
}

func newPooled(key poolKey) *PooledSession {
	p := &PooledSession{key: key}
	p.loan, p.done = context.WithCancel(context.Background())
	return p
}

// OpenPooled opens a session as Open does, or takes an idle one.
func (c *Client) OpenPooled(ctx context.Context, timeout time.Duration) (*PooledSession, error) {
	c.pool.count()
	for {
		opened := newPooled(c.poolKey(timeout))
		if opened.Session = c.pool.take(opened.key); opened.Session == nil {
			var err error
			if opened.Session, err = c.openFresh(ctx, timeout); err != nil {
				return nil, err
			}
		}
		if opened.lend() {
			return opened, nil
		}
	}
}

// openFresh opens a session. Idle ones do not stand in its way where the ensemble counts connections.
func (c *Client) openFresh(ctx context.Context, timeout time.Duration) (*Session, error) {
	s, err := c.Open(ctx, timeout)
	if errors.Is(err, recipes.ErrConnectionLimit) && c.pool.clear() > 0 {
		return c.Open(ctx, timeout)
	}
	return s, err
}

// lend gives the session to p, unless it has ended.
func (p *PooledSession) lend() bool {
	s := p.Session
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.atEnd = p.done
		now := s.now()
		s.follow(s.want(now), now)
	}
	return s.err == nil
}

// enter begins a call that may write, unless p is closed.
func (p *PooledSession) enter() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return errClosed
	}
	p.calls++
	return nil
}

func (p *PooledSession) leave() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls--
}

func (p *PooledSession) isClosed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closed
}

// Close gives up all that the session owns, and ends it for p: it is given back if it is clean, and closed otherwise; see
// Session.Close. Later calls wait for the first.
func (p *PooledSession) Close(ctx context.Context) {
	p.mu.Lock()
	before, idle := p.closed, p.calls == 0
	p.closed = true
	p.mu.Unlock()
	if before {
		<-p.loan.Done()
		return
	}
	if idle && p.client.pool.hasRoom() && p.giveUp(ctx) && p.client.pool.put(p) {
		return
	}
	p.Session.Close(ctx)
}

// giveUp deletes what the session owns, if that is one node and the session can be used again, and says whether that was so.
func (p *PooledSession) giveUp(ctx context.Context) bool {
	s := p.Session
	s.mu.Lock()
	usable, paths := s.isUsable(), make([]string, 0, 1)
	for path := range s.places {
		paths = append(paths, path)
	}
	s.mu.Unlock()
	if !usable || len(paths) > 1 {
		return false
	}
	for _, path := range paths {
		remove := s.delete
		if s.isMember(path) {
			remove = s.deleteOwn
		}
		s.markReleased(path)
		err := remove(ctx, path)
		if !settled(err) {
			return false
		}
		s.tellLeft(path, err)
		s.forgetReleased(path)
	}
	return true
}

func (s *Session) isMember(path string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.places[path].member
}

// isUsable says whether another lease may stand on the session when nothing stands any more that it owns. The lock is held.
func (s *Session) isUsable() bool {
	return s.err == nil && !s.closing && !s.asleep && !s.doubtful.Load() && s.connected && s.generation == 1 && !s.suspended && !s.doubted &&
		s.validUntil().since(s.now()) > s.negotiated/2
}

// isClean says whether another lease may stand on the session now. The lock is held.
func (s *Session) isClean() bool {
	return s.isUsable() && len(s.places) == 0 && s.bytes == 0 && len(s.placeBarriers) == 0
}

// Done implements recipes.Session.
func (p *PooledSession) Done() <-chan struct{} { return p.loan.Done() }

// AfterEnd has f called in a goroutine of its own after the session has ended, unless stop is called before.
func (p *PooledSession) AfterEnd(f func()) (stop func() bool) { return context.AfterFunc(p.loan, f) }

// Err returns why the session has ended for p, or nil.
func (p *PooledSession) Err() error {
	if err := p.Session.Err(); err != nil || !p.isClosed() {
		return err
	}
	return errClosed
}

// ValidFor is 0 from Close on; see Session.ValidFor.
func (p *PooledSession) ValidFor() time.Duration {
	if p.isClosed() {
		return 0
	}
	return p.Session.ValidFor()
}

// AssuredFor is 0 from Close on; see Session.AssuredFor.
func (p *PooledSession) AssuredFor() time.Duration {
	if p.isClosed() {
		return 0
	}
	return p.Session.AssuredFor()
}

// Prove fails once p is closed; see Session.Prove.
func (p *PooledSession) Prove(ctx context.Context) error {
	if err := p.Session.Prove(ctx); err != nil {
		return err
	}
	return p.Err()
}

// Enqueue implements recipes.Session.
func (p *PooledSession) Enqueue(ctx context.Context, dir, marker string, data []byte, beside ...string) (recipes.Enqueued, error) {
	if err := p.enter(); err != nil {
		return recipes.Enqueued{}, err
	}
	defer p.leave()
	return p.Session.Enqueue(ctx, dir, marker, data, beside...)
}

// EnqueueThen implements recipes.Session.
func (p *PooledSession) EnqueueThen(
	ctx context.Context, dir, marker string, data []byte, then func(recipes.Enqueued, error), beside ...string,
) {
	if err := p.enter(); err != nil {
		then(recipes.Enqueued{}, err)
		return
	}
	p.Session.EnqueueThen(ctx, dir, marker, data, func(made recipes.Enqueued, err error) {
		p.leave()
		then(made, err)
	}, beside...)
}

// EnqueueAll implements recipes.Session.
func (p *PooledSession) EnqueueAll(ctx context.Context, ends []recipes.QueueEnd, data []byte) ([]recipes.Enqueued, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	return p.Session.EnqueueAll(ctx, ends, data)
}

// Dequeue implements recipes.Session.
func (p *PooledSession) Dequeue(ctx context.Context, place string) {
	if !p.whileOpen(func() { p.Session.Dequeue(ctx, place) }) {
		<-p.loan.Done() // Close deletes it
	}
}

// DequeueThen implements recipes.Session.
func (p *PooledSession) DequeueThen(ctx context.Context, place string, then func()) {
	if p.enter() != nil {
		context.AfterFunc(p.loan, then) // Close deletes it
		return
	}
	p.Session.DequeueThen(ctx, place, func() {
		p.leave()
		then()
	})
}

// Create implements recipes.MemberSession.
func (p *PooledSession) Create(
	ctx context.Context, member string, data []byte, guards ...recipes.Guard,
) (recipes.Node, *recipes.Signal, error) {
	if err := p.enter(); err != nil {
		return recipes.Node{}, nil, err
	}
	defer p.leave()
	return p.Session.Create(ctx, member, data, guards...)
}

// Update implements recipes.Session.
func (p *PooledSession) Update(
	ctx context.Context, path string, data []byte, version int32, guards ...recipes.Guard,
) (recipes.Node, error) {
	if err := p.enter(); err != nil {
		return recipes.Node{}, err
	}
	defer p.leave()
	return p.Session.Update(ctx, path, data, version, guards...)
}

// Delete implements recipes.MemberSession.
func (p *PooledSession) Delete(ctx context.Context, member string) {
	if !p.whileOpen(func() { p.Session.Delete(ctx, member) }) {
		<-p.loan.Done()
	}
}

// WatchOwn implements recipes.Session.
func (p *PooledSession) WatchOwn(ctx context.Context, place string) (recipes.Node, *recipes.Signal, func(), error) {
	node, changed, seen, err := p.Session.WatchOwn(ctx, place)
	return node, changed, func() { p.whileOpen(seen) }, err
}

// Seen implements recipes.Session.
func (p *PooledSession) Seen(place string, version int32) {
	p.whileOpen(func() { p.Session.Seen(place, version) })
}

// Disregard implements recipes.Session.
func (p *PooledSession) Disregard(place string) {
	p.whileOpen(func() { p.Session.Disregard(place) })
}

// whileOpen does what concerns a place, unless p is closed: a member of the next lease may have the same path. It says whether it did.
func (p *PooledSession) whileOpen(do func()) bool {
	if p.enter() != nil {
		return false
	}
	defer p.leave()
	do()
	return true
}
