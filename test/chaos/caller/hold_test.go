package caller

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	"github.com/sidekeeper/sidekeeper/test/chaos/history"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// A scripted lock is valid until it is lost or released.
type scripted struct {
	done chan struct{}
	over atomic.Bool
	err  error
}

func (s *scripted) Valid() bool { return !s.over.Load() }

func (s *scripted) ValidFor() time.Duration {
	if s.over.Load() {
		return 0
	}
	return time.Second
}

func (s *scripted) FencingToken() int64   { return 7 }
func (s *scripted) Done() <-chan struct{} { return s.done }
func (s *scripted) Err() error            { return s.err }

func (s *scripted) lose(err error) {
	s.err = err
	s.over.Store(true)
	close(s.done)
}

func (s *scripted) Release(context.Context) error { return s.err }

// scriptedLocks grant one lock, or refuse with an error.
type scriptedLocks struct {
	lock *scripted
	err  error
}

func (s scriptedLocks) acquire(context.Context, string, sidekeeper.LockOptions) (lock, error) {
	if s.err != nil {
		return nil, s.err
	}
	return s.lock, nil
}

// newCaller makes a caller with such locks, and what tells its history without beliefs, which are as many as there is time for.
func newCaller(t *testing.T, locks scriptedLocks) (c *caller, told func() string) {
	t.Helper()
	folder := t.TempDir()
	writer, err := history.Create(folder, 3)
	if err != nil {
		t.Fatal(err)
	}
	p := &process{history: writer, locks: locks}
	return &caller{process: p, number: 1}, func() (text string) {
		if err := writer.Close(); err != nil {
			t.Fatal(err)
		}
		events, err := history.ReadDirectory(folder)
		if err != nil {
			t.Fatal(err)
		}
		for i := range events {
			switch e := &events[i]; e.Kind {
			case history.Clocks:
			case history.Believed:
				if e.To < e.From {
					t.Errorf("believed from %d to %d", e.From, e.To)
				}
			case history.Told:
				if e.To > e.At && !strings.HasSuffix(text, "told for longer; ") {
					text += "told for longer; "
				} else if e.To <= e.At {
					text += "told; "
				}
			case history.Ended:
				text += fmt.Sprintf("ended %s %s by user %v; ", e.Code, e.Reason, e.ByUser)
			default:
				text += string(e.Kind) + "; "
			}
		}
		return text
	}
}

func expect(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%q instead of %q", got, want)
	}
}

func lost(reason string) error {
	return fmt.Errorf("lock l %w: %w", sidekeeper.ErrLost, &sidekeeper.Error{Code: codes.Aborted, Reason: reason})
}

func TestALockThatIsReleasedIsNotedAsReleased(t *testing.T) {
	held := &scripted{done: make(chan struct{})}
	c, told := newCaller(t, scriptedLocks{lock: held})
	c.with(t.Context(), "l", sidekeeper.LockOptions{}, func(h *hold) {
		if !h.stay(t.Context(), 3*often) {
			t.Error("it did not stay")
		}
	})
	expect(t, told(), "called; granted; releasing; ended OK  by user false; ")
}

func TestALockThatIsLostIsNotedAsLostWhenItsHolderIsTold(t *testing.T) {
	held := &scripted{done: make(chan struct{})}
	c, told := newCaller(t, scriptedLocks{lock: held})
	c.with(t.Context(), "l", sidekeeper.LockOptions{}, func(h *hold) {
		held.lose(lost("LEASE_LOST"))
		if h.stay(t.Context(), time.Minute) {
			t.Error("it stayed")
		}
	})
	expect(t, told(), "called; granted; ended Aborted LEASE_LOST by user false; ")
}

func TestALockThatIsLostWhileItIsReleasedIsNotedAsBoth(t *testing.T) {
	held := &scripted{done: make(chan struct{}), err: lost("LOCK_BROKEN")}
	c, told := newCaller(t, scriptedLocks{lock: held})
	c.with(t.Context(), "l", sidekeeper.LockOptions{}, func(*hold) {})
	expect(t, told(), "called; granted; releasing; ended Aborted LOCK_BROKEN by user false; ")
}

func TestALockThatIsNotGrantedIsNotedWithItsReason(t *testing.T) {
	c, told := newCaller(t, scriptedLocks{err: &sidekeeper.Error{Code: codes.DeadlineExceeded, Reason: "WAIT_TIMEOUT"}})
	if c.with(t.Context(), "l", sidekeeper.LockOptions{}, func(*hold) { t.Error("granted") }) {
		t.Error("granted")
	}
	expect(t, told(), "called; ended DeadlineExceeded WAIT_TIMEOUT by user false; ")
}

func TestAWaitThatTheCallerEndsIsNotedAsTheCallers(t *testing.T) {
	c, told := newCaller(t, scriptedLocks{err: context.Canceled})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c.with(ctx, "l", sidekeeper.LockOptions{}, func(*hold) { t.Error("granted") })
	expect(t, told(), "called; ended Canceled  by user true; ")
}

func TestAHolderThatIsStoppedHasNotBelievedMeanwhile(t *testing.T) {
	held := &scripted{done: make(chan struct{})}
	c, told := newCaller(t, scriptedLocks{lock: held})
	h := c.acquire(t.Context(), "l", sidekeeper.LockOptions{})
	held.over.Store(true)
	since := history.Now()
	if h.look() {
		t.Error("it looked valid")
	}
	h.end(h.lock.Release)
	if h.last > since {
		t.Errorf("believed %v after it was over", h.last.Since(since))
	}
	told()
}

func TestEndingsAreNamedAsTheSidecarNamesThem(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{nil, "OK "},
		{lost("LEASE_LOST"), "Aborted LEASE_LOST"},
		{fmt.Errorf("wait: %w", context.Canceled), "Canceled "},
		{context.DeadlineExceeded, "DeadlineExceeded "},
		{errors.New("broken"), "Unknown broken"},
	} {
		event := ending(c.err)
		expect(t, event.Code+" "+event.Reason, c.want)
	}
}
