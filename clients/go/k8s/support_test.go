package k8s

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
)

// inBubble runs a test in virtual time, on one processor: the race detector cannot bear two in a bubble.
func inBubble(t *testing.T, test func(*testing.T)) {
	t.Helper()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	synctest.Test(t, test) //nolint:forbidigo // this is the module's bubble
}

// A scene is a leadership as a test wants it, and what becomes of who acts for it.
type scene struct {
	began  time.Time
	done   chan struct{}
	yield  chan sidekeeper.Revocation
	ctx    context.Context
	stop   context.CancelCauseFunc
	exited chan struct{}

	mu       sync.Mutex
	until    time.Time
	lost     error
	why      error // of the exit
	resigned bool
}

// newScene is valid for so long, and is not confirmed by itself.
func newScene(validFor time.Duration) *scene {
	s := &scene{
		began: time.Now(), done: make(chan struct{}), yield: make(chan sidekeeper.Revocation, 1), until: time.Now().Add(validFor),
		exited: make(chan struct{}),
	}
	s.ctx, s.stop = context.WithCancelCause(context.Background())
	return s
}

func (s *scene) options() Options {
	return Options{Candidate: "one", Grace: 3 * time.Second, Margin: time.Second, Exit: func(why error) {
		s.why = why
		close(s.exited)
	}}
}

func (s *scene) ValidFor() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost != nil {
		return 0
	}
	return max(time.Until(s.until), 0)
}

func (s *scene) Done() <-chan struct{} { return s.done }

func (s *scene) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lost
}

func (s *scene) YieldRequested() <-chan sidekeeper.Revocation { return s.yield }

func (s *scene) Resign(context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.resigned = true
	return nil
}

func (s *scene) confirm(validFor time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.until = time.Now().Add(validFor)
}

func (s *scene) lose(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost = why
	close(s.done)
}

// at waits until so long after the beginning.
func (s *scene) at(then time.Duration) {
	<-time.After(time.Until(s.began.Add(then)))
	synctest.Wait()
}

// want checks why what acts was stopped, if it was, and whether the process has ended.
func (s *scene) want(t *testing.T, cause error, exited bool) {
	t.Helper()
	synctest.Wait()
	after := time.Since(s.began)
	if got := context.Cause(s.ctx); got != cause {
		t.Errorf("after %v what acts was stopped by %v, not %v", after, got, cause)
	}
	select {
	case <-s.exited:
		if !exited {
			t.Errorf("after %v the process has ended: %v", after, s.why)
		}
	default:
		if exited {
			t.Errorf("after %v the process has not ended", after)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
