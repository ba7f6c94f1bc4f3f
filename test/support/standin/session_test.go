package standin_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/embedded"
	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/support/bubble"
	"github.com/sidekeeper/sidekeeper/test/support/standin"
)

// inBubble runs a test on an ensemble of its own in virtual time.
func inBubble(t *testing.T, test func(*testing.T, *standin.Ensemble)) {
	bubble.Test(t, func(t *testing.T) { test(t, standin.New(standin.Options{})) })
}

func enqueue(t *testing.T, s *standin.Session) (path string, gone <-chan struct{}) {
	t.Helper()
	made, err := s.Enqueue(t.Context(), "/locks/orders", "-lock-", []byte("mine"))
	if err != nil {
		t.Fatal(err)
	}
	name, gone := made.Name, made.Gone.Done()
	return "/locks/orders/" + name, gone
}

// pass lets virtual time go by.
func pass(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func closed(channel <-chan struct{}) bool {
	synctest.Wait()
	select {
	case <-channel:
		return true
	default:
		return false
	}
}

func TestEnqueueMakesParentsAndNumberedPlacesThatDequeueDeletes(t *testing.T) {
	inBubble(t, func(t *testing.T, e *standin.Ensemble) {
		s := e.OpenSession(10 * time.Second)
		first, gone := enqueue(t, s)
		second, _ := enqueue(t, s)
		if !strings.HasSuffix(first, "-lock-0000000000") || !strings.HasSuffix(second, "-lock-0000000001") {
			t.Fatalf("places are %s and %s", first, second)
		}
		node, err := s.Get(t.Context(), first)
		if err != nil || !s.Owns(node) || string(node.Data) != "mine" {
			t.Fatalf("place reads %+v, %v", node, err)
		}
		s.Dequeue(t.Context(), first)
		if got := e.Names("/locks/orders"); len(got) != 1 {
			t.Errorf("left after Dequeue: %v", got)
		}
		if closed(gone) {
			t.Error("Dequeue of an own place counts as deleted by somebody else")
		}
	})
}

func TestAPlaceDeletedBySomebodyElseIsToldOnceInContact(t *testing.T) {
	inBubble(t, func(t *testing.T, e *standin.Ensemble) {
		s := e.OpenSession(10 * time.Second)
		path, gone := enqueue(t, s)
		s.Suspend()
		if err := e.Delete(path); err != nil {
			t.Fatal(err)
		}
		if closed(gone) {
			t.Fatal("told while suspended")
		}
		s.Resume()
		if !closed(gone) {
			t.Fatal("not told after resuming")
		}
	})
}

func TestCountersWrapOrStick(t *testing.T) {
	for _, test := range []struct {
		name  string
		stuck bool
		want  []string
	}{
		{"wrap", false, []string{"/q/n2147483647", "/q/n-2147483648", "/q/n-2147483647"}},
		{"stick", true, []string{"/q/n2147483647", "/q/m2147483647"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			e := standin.New(standin.Options{StuckCounters: test.stuck})
			if _, err := e.Create("/q", nil, embedded.Persistent, 0); err != nil {
				t.Fatal(err)
			}
			if err := e.SetSequence("/q", 1<<31-1); err != nil {
				t.Fatal(err)
			}
			for _, want := range test.want {
				path, err := e.Create(want[:4], nil, embedded.PersistentSequential, 0)
				if err != nil || path != want {
					t.Errorf("created %q, %v; want %q", path, err, want)
				}
			}
		})
	}
}

func TestASuspendedSessionEndsBeforeTheEnsembleExpiresIt(t *testing.T) {
	inBubble(t, func(t *testing.T, e *standin.Ensemble) {
		s := e.OpenSession(10 * time.Second)
		enqueue(t, s)
		s.Suspend()
		pass(s.Timeout() - 3*time.Second)
		if got := s.ValidFor(); got != time.Second {
			t.Errorf("valid for %v after 7 of 10 s, want 1 s", got)
		}
		pass(time.Second)
		if !closed(s.Done()) || s.ValidFor() != 0 || !errors.Is(s.Err(), recipes.ErrSessionEnded) {
			t.Errorf("after 8 of 10 s: valid for %v, error %v", s.ValidFor(), s.Err())
		}
		if len(e.Names("/locks/orders")) != 1 {
			t.Error("the ensemble dropped the node before the timeout")
		}
		pass(4 * time.Second)
		if got := e.Names("/locks/orders"); len(got) != 0 {
			t.Errorf("left a tick after the timeout: %v", got)
		}
	})
}

func TestSessionsInContactLiveAndResumedOnesGoOn(t *testing.T) {
	inBubble(t, func(t *testing.T, e *standin.Ensemble) {
		s := e.OpenSession(10 * time.Second)
		enqueue(t, s)
		pass(time.Hour)
		s.Suspend()
		pass(5 * time.Second)
		s.Resume()
		pass(time.Hour)
		if s.Err() != nil || len(e.Names("/locks/orders")) != 1 {
			t.Errorf("after a short cut: error %v", s.Err())
		}
	})
}

func TestExpireAndCloseDropWhatTheSessionOwned(t *testing.T) {
	for name, end := range map[string]func(*standin.Session){
		"expire": (*standin.Session).Expire,
		"close":  func(s *standin.Session) { s.Close(context.Background()) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, e *standin.Ensemble) {
				s := e.OpenSession(10 * time.Second)
				path, gone := enqueue(t, s)
				end(s)
				if !closed(s.Done()) || len(e.Names("/locks/orders")) != 0 {
					t.Error("the session or its node is still there")
				}
				if closed(gone) {
					t.Error("the end of a session counts as deletion by somebody else")
				}
				s.Dequeue(t.Context(), path)
				if _, err := s.Get(t.Context(), path); !errors.Is(err, recipes.ErrSessionEnded) {
					t.Errorf("Get answers %v", err)
				}
			})
		})
	}
}

func TestCallsWaitWhileSuspended(t *testing.T) {
	inBubble(t, func(t *testing.T, e *standin.Ensemble) {
		s := e.OpenSession(10 * time.Second)
		s.Suspend()
		suspended, changed := s.Suspended()
		if !suspended {
			t.Fatal("not suspended")
		}
		returned := make(chan struct{})
		go func() {
			defer close(returned)
			enqueue(t, s)
		}()
		if closed(returned) || closed(changed) {
			t.Fatal("a call went through, or the state changed")
		}
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errors.New("gave up"))
		defer cancel()
		if _, err := s.Children(ctx, "/"); err == nil || err.Error() != "gave up" {
			t.Errorf("Children answers %v, want the cause", err)
		}
		s.Resume()
		if !closed(returned) || !closed(changed) {
			t.Error("the call still waits, or the change was not told")
		}
	})
}
