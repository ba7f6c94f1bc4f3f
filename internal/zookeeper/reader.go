package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"
	"go.uber.org/zap"

	"github.com/sidekeeper/sidekeeper/recipes"
)

// A reader lists and watches for all sessions of a sidecar. It stands on one session after the other, each of which ends with
// its connection: the library would arm its watches again by itself, but loses some on the way. A new session starts with
// a transaction that its server has carried out, so that it shows all that an earlier one has shown. What an earlier one has not heard of
// its writes is shown too, and final: they were carried out by then, or are refused, since that session is closed before.
type reader struct {
	client *Client
	large  largeDirectories
	counts childCounts

	mu      sync.Mutex
	view    *view // nil while there is none
	why     error // of that
	changed chan struct{}
}

// A view is what the reader sees through one of its sessions.
type view struct {
	session *Session

	mu        sync.Mutex
	nodes     map[string]*watched // by path, while their watch is armed or being armed
	lists     map[string]*watched
	removals  map[string]chan struct{} // of watches at the server, by path, each closed when it is over
	deleted   map[string]struct{}      // paths of contenders that were seen deleted lately
	listings  sharedRequests[[]string]
	catchings sharedRequests[struct{}]

	unanswered atomic.Int64 // writes that may have been sent and were not answered
}

// run keeps a view until ctx ends.
func (r *reader) run(ctx context.Context) {
	var last *view
	for failures := 0; ctx.Err() == nil; {
		session, err := r.client.open(ctx, r.client.config.SessionTimeout, true)
		if err == nil {
			err = session.succeed(ctx, last)
		}
		if err != nil {
			failures++
			r.client.heardDenial(errors.Is(err, recipes.ErrDenied))
			r.failed(err)
			pause(ctx, r.client.upTo(50*time.Millisecond<<min(failures, 5)))
			continue
		}
		r.client.heardDenial(false)
		began := time.Now()
		last = r.present(ctx, session)
		if failures++; time.Since(began) > session.interval {
			failures = 0
			continue
		}
		pause(ctx, r.client.upTo(10*time.Millisecond<<min(failures, 4))) // all wait for the reader
	}
}

// succeed readies the session for the view after this one, if there was one. If the session fails on the way it is over anyway.
func (s *Session) succeed(ctx context.Context, last *view) error {
	if last != nil && last.unanswered.Load() > 0 {
		if err := last.session.remains().closeFor(ctx, s); err != nil {
			s.Close(ctx)
			return err
		}
		last.unanswered.Store(0)
	}
	return s.makePermanent(ctx)
}

// present shows what a session sees for as long as it lasts, and returns the view that has ended.
func (r *reader) present(ctx context.Context, session *Session) *view {
	v := newView(session)
	r.show(v)
	r.client.introduction() // credentials that are newer than the session
	select {
	case <-session.Done():
	case <-ctx.Done():
		session.Close(ctx)
	}
	r.show(nil)
	v.fireAll()
	return v
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

func (r *reader) show(v *view) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.view, r.why = v, nil
	close(r.changed)
	r.changed = make(chan struct{})
}

func (r *reader) failed(why error) {
	r.client.config.Log.Debug("ensemble not reached", zap.Error(why))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.why = why
}

// whyNone is why there is no view, if that is known.
func (r *reader) whyNone() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.why
}

func (r *reader) current() (*view, <-chan struct{}) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.view, r.changed
}

// address is the server the reader is attached to. Sessions prefer it: what they have written is there at once.
func (r *reader) address() string {
	v, _ := r.current()
	if v == nil {
		return ""
	}
	return v.session.server()
}

// reachable says whether the ensemble answers, with a channel that is closed when that may have changed. A session that has
// ended says nothing any more: then it is the next view that is waited for.
func (r *reader) reachable() (bool, <-chan struct{}) {
	v, replaced := r.current()
	if v == nil {
		return false, replaced
	}
	suspended, changed := v.session.Suspended()
	if v.session.Err() != nil {
		return false, replaced
	}
	return !suspended, changed
}

// fired takes a watch's event from the library.
func (r *reader) fired(s *Session, e zk.Event) {
	if v, _ := r.current(); v != nil && v.session == s {
		v.fire(e.Type, e.Path)
	}
}

// ask asks the present view, and the next one if a view ends under the question. Only for what may be asked twice.
func ask[T any](r *reader, a asker, question func(*view) (T, error)) (T, error) {
	var none T
	for {
		v, changed := r.current()
		if v == nil {
			if err := a.wait(changed); err != nil {
				return none, r.client.demanded(err)
			}
			continue
		}
		answer, err := question(v)
		if !errors.Is(err, recipes.ErrOutcomeUnknown) && (err == nil || v.session.Err() == nil) {
			return answer, err
		}
		if err := v.retired(r, a, changed); err != nil {
			return none, r.client.demanded(err)
		}
	}
}

// retired waits until the reader has another view than this one, whose session has failed.
func (v *view) retired(r *reader, a asker, changed <-chan struct{}) error {
	if v.session.Err() == nil {
		return a.pause(time.Millisecond) // the connection is gone; the library is about to say so
	}
	if now, _ := r.current(); now != v {
		return a.wait(closed)
	}
	return a.wait(changed)
}

func (v *view) children(a asker, path string) ([]string, error) {
	return wait(a, v.listings.join(v.session, path, func() ([]string, error) {
		return v.listOnce(path, func() ([]string, error) {
			return call(a.ctx, v.session, "getChildren", func(c *zk.Conn) ([]string, error) {
				names, _, err := c.Children(path)
				return names, err
			})
		})
	}))
}

func (v *view) catchUp(a asker) (struct{}, error) {
	return wait(a, v.catchings.join(v.session, "", func() (struct{}, error) {
		_, err := call(a.ctx, v.session, "check", func(c *zk.Conn) (struct{}, error) {
			return struct{}{}, v.session.commit("/")
		})
		if errors.Is(err, recipes.ErrNoNode) || errors.Is(err, recipes.ErrDenied) {
			err = nil
		}
		return struct{}{}, err
	}))
}

// expect has the present view read and watch a node that somebody is about to ask for, and does not wait for it. A node
// that the reader has not heard of yet is asked for again by whoever needs it.
func (r *reader) expect(ctx context.Context, path string) {
	if v, _ := r.current(); v != nil {
		v.watched(ctx, path)
	}
}

type watchedNode struct {
	node    recipes.Node
	changed *recipes.Signal
}

// write sends a write once, as soon as there is a view to send it through. An asker that goes before the answer leaves the
// outcome unknown, and a view that ends does. Neither is carried out after a later request of the reader's.
func write[T any](r *reader, a asker, operation string, request func(s *Session, withdrawn *atomic.Bool) (T, error)) (T, error) {
	var none T
	for {
		v, changed := r.current()
		if v == nil {
			if err := a.wait(changed); err != nil {
				return none, r.client.demanded(err)
			}
			continue
		}
		var withdrawn atomic.Bool // or it would be sent behind the back of an asker that has gone, who may ask anew
		answer := launchWrite(v, func() (T, error) {
			return call(a.ctx, v.session, operation, func(*zk.Conn) (T, error) { return request(v.session, &withdrawn) })
		})
		if err := a.wait(answer.done); err != nil {
			withdrawn.Store(true)
			return none, unknown(err)
		}
		switch err := answer.err; {
		case errors.Is(err, errUnsent):
			if err := v.retired(r, a, changed); err != nil {
				return none, r.client.demanded(err)
			}
		case errors.Is(err, recipes.ErrSessionEnded): // the reader's, which is nothing to the asker
			return none, fmt.Errorf("%w: the reader's session ended", recipes.ErrOutcomeUnknown)
		default:
			return answer.value, err
		}
	}
}

// launchWrite makes a write through the view. One that was not answered may still be carried out while the view's session lives.
func launchWrite[T any](v *view, request func() (T, error)) *future[T] {
	return newFuture[T]().launch(v.session, func() (T, error) {
		v.unanswered.Add(1)
		value, err := request()
		if !errors.Is(err, recipes.ErrOutcomeUnknown) && !errors.Is(err, recipes.ErrSessionEnded) {
			v.unanswered.Add(-1)
		}
		return value, err
	})
}

// unknown is what an asker is told who goes, for this reason, before the answer. It never is ErrUnreachable, which says that
// nothing was sent.
func unknown(err error) error {
	if errors.Is(err, recipes.ErrUnreachable) {
		return fmt.Errorf("%w: no answer in time", recipes.ErrOutcomeUnknown)
	}
	return fmt.Errorf("%w: %w", recipes.ErrOutcomeUnknown, err)
}
