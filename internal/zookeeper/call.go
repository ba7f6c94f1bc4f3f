package zookeeper

import (
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/sidekeeper/sidekeeper/recipes"
)

// Verdicts of the ensemble that stay inside this package.
var (
	errExists   = errors.New("node exists")
	errNotEmpty = errors.New("node has children")
	// errUnsent wraps the error of a call that ended before anything was sent.
	errUnsent = errors.New("not sent")
)

// verdicts are the answers that say for certain what became of a request.
var verdicts = []struct{ library, ours error }{
	{zk.ErrNoNode, recipes.ErrNoNode},
	{zk.ErrBadVersion, recipes.ErrBadVersion},
	{zk.ErrNodeExists, errExists},
	{zk.ErrNotEmpty, errNotEmpty},
	{zk.ErrNoAuth, recipes.ErrDenied},
	{zk.ErrInvalidACL, recipes.ErrDenied},
	{zk.ErrAuthFailed, recipes.ErrDenied},
	{zk.ErrNoChildrenForEphemerals, recipes.ErrNoNode},
}

// verdict translates the library's error. Whatever it does not know leaves the outcome unknown.
func verdict(err error) error {
	if err == nil {
		return nil
	}
	for _, v := range verdicts {
		if errors.Is(err, v.library) {
			return v.ours
		}
	}
	return fmt.Errorf("%w: %w", recipes.ErrOutcomeUnknown, err)
}

// call makes one request of the library. It waits for a connection before, and returns when the request is answered, when
// the connection it was sent on is lost (ErrOutcomeUnknown) or when the session ends, whichever is first: the library lets
// go of its callers as soon as it is closed.
func call[T any](s *Session, operation string, request func(*zk.Conn) (T, error)) (T, error) {
	var none T
	if _, err := s.awaitConnected(); err != nil {
		return none, fmt.Errorf("%w: %w", errUnsent, err)
	}
	began := time.Now()
	value, err := request(s.conn)
	s.client.config.Observe(operation, time.Since(began))
	if errors.Is(err, zk.ErrSessionExpired) {
		s.lose(errExpired)
		return none, s.Err()
	}
	return value, verdict(err)
}

// awaitConnected returns the number of the present connection, once there is one.
func (s *Session) awaitConnected() (generation int, err error) {
	for {
		s.mu.Lock()
		generation, connected, changed, err := s.generation, s.connected, s.changed, s.err
		s.mu.Unlock()
		if err != nil {
			return 0, err
		}
		if connected {
			return generation, nil
		}
		select {
		case <-changed:
		case <-s.done:
		}
	}
}

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
