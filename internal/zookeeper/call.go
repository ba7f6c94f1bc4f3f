package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/sidekeeper/sidekeeper/recipes"
)

var (
	// errUnsent wraps the error of a call that ended before anything was sent.
	errUnsent = errors.New("not sent")
	// errThrottled means that the server had too much to do: nothing was done.
	errThrottled = errors.New("throttled by the ensemble")
	// errRefused wraps whatever else was answered: nothing was done.
	errRefused = errors.New("refused by the ensemble")
)

// translations are what the library calls the answers that say for certain what became of a request.
var translations = []struct{ library, ours error }{
	{zk.ErrNoNode, recipes.ErrNoNode},
	{zk.ErrBadVersion, recipes.ErrBadVersion},
	{zk.ErrNodeExists, recipes.ErrExists},
	{zk.ErrNotEmpty, recipes.ErrNotEmpty},
	{zk.ErrNoAuth, recipes.ErrDenied},
	{zk.ErrInvalidACL, recipes.ErrDenied},
	{zk.ErrAuthFailed, recipes.ErrAuthDemanded}, // see stand
	{recipes.ErrLocalSession, recipes.ErrLocalSession},
	{zk.ErrNoChildrenForEphemerals, recipes.ErrNoChildren},
	{zk.ErrNothing, errThrottled},
	{zk.ErrReconfigDisabled, recipes.ErrQuota}, // see nameable, and listOnce for lists
}

// noAnswers are the errors that are no answer, or none that could be read. A session that has moved is one whose connection
// was lost.
var noAnswers = []error{
	zk.ErrConnectionClosed, zk.ErrClosing, zk.ErrNoServer, zk.ErrSessionMoved,
	zk.ErrShortBuffer, zk.ErrAPIError, zk.ErrUnhandledFieldType, zk.ErrUnknown,
}

// translated is what an error of the library means.
func translated(err error) error {
	if err == nil || refused(err) {
		return err
	}
	for _, v := range translations {
		if errors.Is(err, v.library) {
			return v.ours
		}
	}
	for _, noAnswer := range noAnswers {
		if errors.Is(err, noAnswer) {
			return fmt.Errorf("%w: %w", recipes.ErrOutcomeUnknown, err)
		}
	}
	return fmt.Errorf("%w: %w", errRefused, err)
}

// refused says whether the error is why a transaction was not carried out.
func refused(err error) bool {
	_, is := errors.AsType[*recipes.Refusal](err)
	return is
}

// call makes one request of the library. It waits for a connection before, and returns when the request is answered, when
// the connection it was sent on is lost (ErrOutcomeUnknown) or when the session ends, whichever is first: the library lets
// go of its callers as soon as it is closed. One that is throttled is made again. ctx only says on whose behalf.
func call[T any](ctx context.Context, s *Session, operation string, request func(*zk.Conn) (T, error)) (T, error) {
	for refusals := 0; ; refusals++ {
		value, err := callOnce(ctx, s, operation, request)
		if !errors.Is(err, errThrottled) || s.isClosing() {
			return value, err
		}
		s.rest(s.client.retryPause(refusals))
	}
}

func (s *Session) isClosing() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.closing
}

// retryPause is for how long to wait before what was refused so often is asked again.
func (c *Client) retryPause(refusals int) time.Duration {
	longest := 20 * time.Millisecond << min(refusals, 7)
	return longest/2 + c.upTo(longest/2)
}

func callOnce[T any](ctx context.Context, s *Session, operation string, request func(*zk.Conn) (T, error)) (T, error) {
	var none T
	generation, err := s.awaitConnected()
	if err != nil {
		return none, fmt.Errorf("%w: %w", errUnsent, err)
	}
	made := s.begun(ctx, operation, generation)
	value, err := request(s.conn)
	err = made.answered(err)
	if errors.Is(err, recipes.ErrOutcomeUnknown) {
		s.rest(lostRequestPause)
	}
	return value, err
}

// A request is one that was sent, or is about to be.
type request struct {
	ctx        context.Context //nolint:containedctx // says on whose behalf
	session    *Session
	operation  string
	generation int // of the connection
	began      time.Time
	sent       instant
}

func (s *Session) begun(ctx context.Context, operation string, generation int) request {
	return request{ctx: ctx, session: s, operation: operation, generation: generation, began: time.Now(), sent: s.now()}
}

// answered takes in how the request has ended, and returns what that means. It waits for nothing.
func (r request) answered(err error) error {
	s := r.session
	if transactions[r.operation] && isCommitted(err) {
		s.committed(r.generation, r.sent)
	}
	expired := errors.Is(err, zk.ErrSessionExpired)
	err = translated(err)
	if err != nil && (r.operation != "delete" || !errors.Is(err, recipes.ErrNoNode)) {
		s.doubtful.Store(true)
	}
	s.client.config.Observe(r.ctx, r.operation, time.Since(r.began), expired || errors.Is(err, recipes.ErrOutcomeUnknown))
	if errors.Is(err, recipes.ErrDenied) && r.operation != "check" { // a check asks about the root, and takes a refusal for an answer
		s.client.config.Denied()
	}
	if expired {
		s.lose(errExpired)
		return s.Err()
	}
	return err
}

// transactions are the operations that a quorum commits before they are answered.
var transactions = map[string]bool{"create": true, "delete": true, "setData": true, "multi": true, "check": true}

// lostRequestPause is what a caller whose request was lost waits, since many ask again at once: until the library has said that the
// connection is gone, or the ensemble that the session is closed, each request fails without being sent.
const lostRequestPause = time.Millisecond

// A future is a request under way, for askers that may go before it is answered.
type future[T any] struct {
	done  chan struct{}
	value T
	err   error
}

func newFuture[T any]() *future[T] { return &future[T]{done: make(chan struct{})} }

// launch makes the request in a goroutine of the session's. It returns f.
func (f *future[T]) launch(s *Session, request func() (T, error)) *future[T] {
	if !s.startWork() {
		f.err = fmt.Errorf("%w: %w", errUnsent, s.Err())
		close(f.done)
		return f
	}
	go func() {
		defer s.work.Done()
		f.value, f.err = request()
		close(f.done)
	}()
	return f
}

// startWork counts a goroutine that uses the library; discard waits for it.
func (s *Session) startWork() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.work.Add(1)
	}
	return s.err == nil
}

// wait returns what the future holds, unless the asker goes first.
func wait[T any](a asker, f *future[T]) (T, error) {
	if err := a.wait(f.done); err != nil {
		var none T
		return none, err
	}
	return f.value, f.err
}
