package service_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc"

	configv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/config/v1"
	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/service"
	"github.com/sidekeeper/sidekeeper/test/support/expect"
	"github.com/sidekeeper/sidekeeper/test/support/standin"
)

// A keyWatcher is one Watch stream of keys.
type keyWatcher struct {
	t      *testing.T
	stream grpc.ServerStreamingClient[configv1.WatchResponse]
}

func (r *registry) watch(request *configv1.WatchRequest) *keyWatcher {
	r.t.Helper()
	request.AsText = true
	ctx, cancel := context.WithCancel(r.context())
	r.t.Cleanup(cancel)
	stream, err := r.Watch(ctx, request)
	r.must(err)
	return &keyWatcher{r.t, stream}
}

// next is the next message or the end, in words.
func (w *keyWatcher) next() string {
	message, err := w.stream.Recv()
	if err != nil {
		return outcome(err)
	}
	return expect.Watched(message)
}

// sees fails unless these come next, in this order.
func (w *keyWatcher) sees(messages ...string) {
	w.t.Helper()
	for _, message := range messages {
		same(w.t, "message", w.next(), message)
	}
}

func TestAWatchSendsTheStateAndThenChanges(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		r := s.registry()
		same(t, "put", r.put("a", "1")+r.put("b/c", "2")+r.put("bc", "3"), "v1v1v1")
		all := r.watch(&configv1.WatchRequest{})
		all.sees("a=1@v1 b/c=2@v1 bc=3@v1", "synced")
		below := r.watch(&configv1.WatchRequest{Prefix: "b"})
		below.sees("b/c=2@v1", "synced")
		some := r.watch(&configv1.WatchRequest{Keys: []string{"d", "a"}})
		some.sees("a=1@v1", "synced")
		same(t, "put", r.put("a", "2"), "v2")
		all.sees("a=2@v2")
		some.sees("a=2@v2")
		same(t, "put", r.put("b/c/d", "1"), "v1")
		all.sees("b/c/d=1@v1")
		below.sees("b/c/d=1@v1")
		same(t, "put", r.put("d", "1"), "v1")
		all.sees("d=1@v1")
		some.sees("d=1@v1")
		same(t, "delete", r.delete("d"), "OK")
		all.sees("-d")
		some.sees("-d")
	})
}

func TestAWatchOfNothingTellsWhenItAppears(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		r := s.registry()
		w := r.watch(&configv1.WatchRequest{Prefix: "a/b"})
		w.sees("synced")
		same(t, "put", r.put("a/b/c", "1"), "v1")
		w.sees("a/b/c=1@v1")
	})
}

func TestAWatchSaysWhatItSkipped(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		r := s.registry()
		same(t, "put", r.put("a", "1")+r.put("b", "1")+r.put("c", "1"), "v1v1v1")
		w := r.watch(&configv1.WatchRequest{})
		w.sees("a=1@v1 b=1@v1 c=1@v1", "synced")
		r.ensemble.Suspend() // the reader hears of nothing
		w.sees("stale")
		other := recipes.Config{Root: "/sidekeeper/config"}
		store := r.ensemble.memory.NewReader()
		put := func(key string) {
			_, err := other.Put(r.context(), store, key, []byte("2"), recipes.Precondition{})
			r.must(err)
		}
		put("a")
		put("a")
		r.must(other.Delete(r.context(), store, "b", recipes.Precondition{}))
		put("b")
		put("d")
		r.must(other.Delete(r.context(), store, "d", recipes.Precondition{}))
		r.ensemble.Resume()
		seen := w.next() + " " + w.next()
		for _, change := range []string{"a=2@v3 coalesced", "b=2@v1 recreated", "fresh"} {
			if !strings.Contains(seen, change) {
				t.Errorf("%s is not among %s", change, seen)
			}
		}
	})
}

func TestAWatchThatCannotBeginIsUnavailable(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		r := s.registry()
		r.ensemble.Before(func(standin.Operation) error { return recipes.ErrUnreachable })
		r.watch(&configv1.WatchRequest{}).sees("Unavailable ENSEMBLE_UNREACHABLE")
		r.ensemble.Before(func(standin.Operation) error { return recipes.ErrDenied })
		r.watch(&configv1.WatchRequest{}).sees("PermissionDenied ENSEMBLE_DENIED")
		r.ensemble.Before(nil)
	})
}

func TestWatchesEndWhenTheSidecarStops(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		r := s.registry()
		w := r.watch(&configv1.WatchRequest{})
		w.sees("synced")
		go func() { _ = r.services.Stop(r.context()) }()
		w.sees("Unavailable SIDECAR_STOPPING")
	})
}

func TestNoMoreIsWatchedThanMayBe(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		r := s.registry()
		same(t, "put", r.put("a/b", "1")+r.put("a/c", "1"), "v1v1")
		w := r.watch(&configv1.WatchRequest{Prefix: "a"}) // 3 nodes
		w.sees("a/b=1@v1 a/c=1@v1", "synced")
		r.watch(&configv1.WatchRequest{Prefix: "a"}).sees("a/b=1@v1 a/c=1@v1", "synced")
		r.watch(&configv1.WatchRequest{Keys: []string{"x", "y", "z"}}).sees("ResourceExhausted WATCH_LIMIT")
		small := r.watch(&configv1.WatchRequest{Keys: []string{"x", "y"}})
		small.sees("synced")
		same(t, "put", r.put("a/d", "1"), "v1")
		w.sees("ResourceExhausted WATCH_LIMIT")
		same(t, "put", r.put("x", "1"), "v1")
		small.sees("x=1@v1")
	}, func(o *service.Options) { o.MostWatched = 5 })
}

func TestALargeStateComesInPieces(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		r := s.registry()
		value := strings.Repeat("x", 128<<10/3)
		for i := range 10 {
			same(t, "put", r.put(fmt.Sprint("k", i), value), "v1")
		}
		w := r.watch(&configv1.WatchRequest{})
		var pieces []int
		for {
			message, err := w.stream.Recv()
			r.must(err)
			if message.GetSynced() != nil {
				break
			}
			pieces = append(pieces, len(message.GetEntries().GetEntries()))
		}
		same(t, "pieces", pieces, "[2 2 2 2 2]")
	})
}

func TestThousandWatchersOfOneKeyTakeNoMoreRequestsThanOne(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		r := s.registry()
		same(t, "put", r.put("a", "1"), "v1")
		var watchers []*keyWatcher
		for range 1000 {
			watchers = append(watchers, r.watch(&configv1.WatchRequest{Keys: []string{"a"}}))
		}
		for _, w := range watchers {
			w.sees("a=1@v1", "synced")
		}
		before := r.ensemble.Count("Watch") + r.ensemble.Count("Get") + r.ensemble.Count("Commit")
		same(t, "put", r.put("a", "2"), "v2")
		for _, w := range watchers {
			w.sees("a=2@v2")
		}
		if sent := r.ensemble.Count("Watch") + r.ensemble.Count("Get") + r.ensemble.Count("Commit") - before; sent > 3 {
			t.Errorf("%d requests for one update", sent)
		}
	})
}

// countedEvents tells a test what the metrics are told.
type countedEvents struct {
	service.NoEvents

	watches, nodes chan int
}

func (c *countedEvents) KeyWatchBegun()       { c.watches <- 1 }
func (c *countedEvents) KeyWatchEnded()       { c.watches <- -1 }
func (c *countedEvents) NodesWatched(sum int) { c.nodes <- sum }

func TestWatchesAreCountedForTheMetrics(t *testing.T) {
	t.Parallel()
	events := &countedEvents{watches: make(chan int, 9), nodes: make(chan int, 99)}
	r := newRegistry(t, func(o *service.Options) { o.Events = events })
	same(t, "put", r.put("a/b", "1")+r.put("a/c", "1"), "v1v1")
	ctx, cancel := context.WithCancel(r.context())
	stream, err := r.Watch(ctx, &configv1.WatchRequest{Prefix: "a"})
	r.must(err)
	(&keyWatcher{t, stream}).sees(`a/b="1"@v1 a/c="1"@v1`, "synced")
	for sum := range events.nodes {
		if sum == 3 {
			break
		}
	}
	cancel()
	for sum := range events.nodes {
		if sum == 0 {
			break
		}
	}
	same(t, "watches", fmt.Sprint(<-events.watches, <-events.watches), "1 -1")
}
