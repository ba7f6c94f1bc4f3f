package service_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"

	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	"github.com/sidekeeper/sidekeeper/internal/embedded"
	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/service"
	"github.com/sidekeeper/sidekeeper/test/support/standin"
)

// A watched is one Watch stream, and a view in words how many hold and how many wait: "1 + 2", or "1 + 2 stale".
type watched struct {
	t      *testing.T
	stream grpc.ServerStreamingClient[lockv1.WatchResponse]
	last   *lockv1.View
}

func (s *scene) watch(name string) *watched {
	s.t.Helper()
	stream, err := s.Watch(s.context(), &lockv1.WatchRequest{Name: name})
	s.must(err)
	return &watched{t: s.t, stream: stream}
}

func (w *watched) next() string {
	response, err := w.stream.Recv()
	if err != nil {
		return outcome(err)
	}
	w.last = response.GetView()
	words := fmt.Sprintf("%d + %d", len(w.last.GetHolders()), len(w.last.GetWaiters()))
	if response.GetStale() {
		words += " stale"
	}
	return words
}

func (w *watched) sees(view string) {
	w.t.Helper()
	same(w.t, "view", w.next(), view)
}

// skips reads over one kind of view, which may come or not.
func (w *watched) skips(view, then string) {
	w.t.Helper()
	for {
		if next := w.next(); next != view {
			same(w.t, "view after "+view, next, then)
			return
		}
	}
}

func TestGetShowsHoldersAndWaitersInOrder(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	about := map[string]string{"pod": "a"}
	first := s.hold(s.callers, &lockv1.AcquireRequest{Name: "team/orders", Owner: "one", Metadata: about})
	s.acquire(s.callers, &lockv1.AcquireRequest{Name: "team/orders", Owner: "two"}).sees("queued 1")
	_, err := s.ensemble.memory.Create("/locks/team%2Forders/_c_x-lock-", []byte("jvm"), embedded.PersistentSequential, 0)
	s.must(err)
	_, err = s.Revoke(s.context(), &lockv1.RevokeRequest{Name: "team/orders"})
	s.must(err)
	first.sees("asked by " + "uid:" + uid())

	response, err := s.Get(s.context(), &lockv1.GetRequest{Name: "team/orders"})
	s.must(err)
	view := response.GetView()
	same(t, "name", view.GetName(), "team/orders")
	same(t, "holders", len(view.GetHolders()), 1)
	holder := view.GetHolders()[0]
	same(t, "holder", []any{holder.GetOwner(), holder.GetMetadata(), holder.GetToken(), holder.GetMode(), holder.GetRevocationRequested()},
		[]any{"one", about, first.token, "MODE_EXCLUSIVE", true})
	same(t, "waiters", len(view.GetWaiters()), 2)
	same(t, "first waiter", view.GetWaiters()[0].GetOwner(), "two")
	same(t, "second waiter is foreign", view.GetWaiters()[1].GetForeign(), true)
	if strings.Contains(view.String(), first.hold) {
		t.Error("the hold's id is in the view")
	}
}

func TestALockThatNobodyAskedForIsEmpty(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		response, err := s.Get(s.context(), &lockv1.GetRequest{Name: "nothing"})
		s.must(err)
		same(t, "contenders", len(response.GetView().GetHolders())+len(response.GetView().GetWaiters()), 0)
	})
}

func TestWatchSendsTheStateFirstAndThenEveryChange(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		w := s.watch("orders")
		w.sees("0 + 0")
		a := s.hold(s.callers, &lockv1.AcquireRequest{Name: "orders", Owner: "leader"})
		w.sees("1 + 0")
		same(t, "leader", w.last.GetHolders()[0].GetOwner(), "leader")
		b := s.acquire(s.callers, &lockv1.AcquireRequest{Name: "orders"})
		b.sees("queued 1")
		w.sees("1 + 1")
		a.cancel()
		w.sees("1 + 0")
		b.cancel()
		w.sees("0 + 0")
	})
}

func TestViewsSayThatTheEnsembleCannotBeReached(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		s.ensemble.Before(func(standin.Operation) error { return recipes.ErrUnreachable })
		s.watch("orders").sees("Unavailable ENSEMBLE_UNREACHABLE")
		_, err := s.Get(s.context(), &lockv1.GetRequest{Name: "orders"})
		same(t, "Get", outcome(err), "Unavailable ENSEMBLE_UNREACHABLE")
		_, err = s.LockServiceClient.List(s.context(), &lockv1.ListRequest{})
		same(t, "List", outcome(err), "Unavailable ENSEMBLE_UNREACHABLE")
		_, err = s.Revoke(s.context(), &lockv1.RevokeRequest{Name: "orders"})
		same(t, "Revoke", outcome(err), "Unavailable ENSEMBLE_UNREACHABLE")
		_, err = s.operators.Break(s.context(), &lockv1.BreakRequest{Name: "orders", FencingToken: 1, Reason: "stuck"})
		same(t, "Break", outcome(err), "Unavailable ENSEMBLE_UNREACHABLE")
	})
}

func TestAWatchOutlivesAnEnsembleThatCannotBeReachedForAWhile(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		w := s.watch("orders")
		w.sees("0 + 0")
		failures := 1
		s.ensemble.Before(func(standin.Operation) error {
			if failures--; failures >= 0 {
				return recipes.ErrUnreachable
			}
			return nil
		})
		s.hold(s.callers, &lockv1.AcquireRequest{Name: "orders"})
		w.skips("0 + 0 stale", "1 + 0")
	})
}

func TestWithoutContactAWatchSendsTheViewAgainAsStale(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		first := s.watch("orders")
		first.sees("0 + 0")
		s.ensemble.Suspend()
		first.sees("0 + 0 stale")
		s.watch("orders").sees("0 + 0 stale")
		s.hold(s.callers, &lockv1.AcquireRequest{Name: "orders"})
		s.ensemble.Resume()
		first.skips("0 + 0", "1 + 0")
	})
}

func TestAPlaceOutlivesAnEnsembleThatCannotBeReachedForAWhile(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		a := s.hold(s.callers, &lockv1.AcquireRequest{Name: "orders"})
		<-s.ensemble.opened
		b := s.acquire(s.callers, &lockv1.AcquireRequest{Name: "orders"})
		b.sees("queued 1")
		failures := 1
		(<-s.ensemble.opened).Before(func(standin.Operation) error {
			if failures--; failures >= 0 {
				return recipes.ErrUnreachable
			}
			return nil
		})
		a.cancel()
		b.sees("granted")
	})
}

func TestACallerThatDoesNotReadIsEndedAndHoldsUpNobody(t *testing.T) {
	t.Parallel()
	book := &logbook{}
	virtually(t, func(t *testing.T, s *scene) {
		for i := range 100 {
			data := fmt.Appendf(nil, `{"sidekeeper":1,"metadata":{"k":%q}}`, strings.Repeat("x", 1024))
			_, err := s.ensemble.memory.Create(fmt.Sprintf("/locks/orders/_c_%d-lock-", i), data, embedded.PersistentSequential, 0)
			s.must(err)
		}
		const window = 64 << 10 // which gRPC widens by itself otherwise
		reader := s.dial(s.target(), grpc.WithStaticStreamWindowSize(window), grpc.WithStaticConnWindowSize(window))
		stream, err := reader.Watch(s.context(), &lockv1.WatchRequest{Name: "orders"})
		s.must(err)
		for last, i := "", 0; linesWith(book.Text(), "SLOW_READER") == 0; i++ {
			if i == 300 {
				t.Fatal("a caller that has not read for half a minute is not ended")
			}
			made, err := s.ensemble.memory.Create("/locks/orders/_c_y-lock-", nil, embedded.PersistentSequential, 0)
			s.must(err)
			if last != "" {
				s.must(s.ensemble.memory.Delete(last))
			}
			last = made
			time.Sleep(100 * time.Millisecond)
		}
		w, views := &watched{t: t, stream: stream}, 0
		for next := w.next(); next != "ResourceExhausted SLOW_READER"; next = w.next() {
			if views++; !strings.Contains(next, " + ") || views > 5 {
				t.Fatalf("a caller that did not read was sent %d views, and then %s", views, next)
			}
		}
	}, func(o *service.Options) { o.Log = book.Logger() })
}
