package service_test

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc"

	fencingv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/fencing/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	"github.com/sidekeeper/sidekeeper/service"
)

// A tokenStream is one Watch stream of current tokens.
type tokenStream struct {
	t      *testing.T
	stream grpc.ServerStreamingClient[fencingv1.WatchResponse]
}

func (s *scene) watchTokens(locks ...string) *tokenStream {
	s.t.Helper()
	stream, err := fencingv1.NewFencingServiceClient(s.connection(s.target())).Watch(s.context(), &fencingv1.WatchRequest{Locks: locks})
	s.must(err)
	return &tokenStream{s.t, stream}
}

// next is the next message in words, as in "orders=7 stale", or the end.
func (w *tokenStream) next() string {
	response, err := w.stream.Recv()
	if err != nil {
		return strings.TrimSpace(outcome(err) + " " + facts(err))
	}
	var words []string
	for _, of := range response.GetTokens() {
		word := fmt.Sprintf("%s=%d", of.GetLock(), of.GetFencingToken())
		if of.GetStale() {
			word += " stale"
		}
		words = append(words, word)
	}
	return strings.Join(words, ", ")
}

func (w *tokenStream) sees(message string) {
	w.t.Helper()
	same(w.t, "message", w.next(), message)
}

func TestCurrentTokensAreToldAtOnceAndWheneverTheyChange(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		first := s.hold(s.callers, &lockv1.AcquireRequest{Name: "team/orders"})
		watch := s.watchTokens("team/orders")
		watch.sees(fmt.Sprint("team/orders=", first.token))
		second := s.acquire(s.others, &lockv1.AcquireRequest{Name: "team/orders"})
		second.sees("queued 1")
		first.cancel()
		second.sees("granted")
		watch.sees(fmt.Sprint("team/orders=", second.token))
		second.cancel()
		watch.sees("team/orders=0")
	})
}

func TestCurrentTokensOfSeveralLocks(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		held := s.hold(s.callers, &lockv1.AcquireRequest{Name: "b"})
		watch := s.watchTokens("a", "b")
		seen := map[string]bool{}
		for len(seen) < 2 { // in one message or in two
			for _, word := range strings.Split(watch.next(), ", ") {
				seen[word] = true
			}
		}
		same(t, "tokens", seen, map[string]bool{"a=0": true, fmt.Sprint("b=", held.token): true})
		other := s.hold(s.callers, &lockv1.AcquireRequest{Name: "a"})
		watch.sees(fmt.Sprint("a=", other.token))
	})
}

func TestCurrentTokensAreStaleWithoutContact(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		held := s.hold(s.callers, &lockv1.AcquireRequest{Name: "orders"})
		watch := s.watchTokens("orders")
		watch.sees(fmt.Sprint("orders=", held.token))
		s.ensemble.Suspend()
		watch.sees(fmt.Sprintf("orders=%d stale", held.token))
		s.watchTokens("orders").sees(fmt.Sprintf("orders=%d stale", held.token))
		s.ensemble.Resume()
		watch.sees(fmt.Sprint("orders=", held.token))
	})
}

func TestWatchedTokensAreBounded(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		watch := s.watchTokens("a", "b")
		_ = watch.next()
		same(t, "more than a caller's share", strings.HasPrefix(s.watchTokens("c").next(), "ResourceExhausted QUOTA_EXCEEDED"), true)
		s.watchTokens().sees(`InvalidArgument INVALID_FIELD locks field=locks rule=1 to 100 locks value="0 locks"`)
		s.watchTokens("a", "a").sees(`InvalidArgument INVALID_FIELD locks field=locks rule=no lock twice value="a"`)
		same(t, "a name", strings.HasPrefix(s.watchTokens("a", "").next(), "InvalidArgument INVALID_FIELD locks[1]"), true)
	}, func(o *service.Options) { o.MostWatched, o.WatchShare = 100, func(string) int { return 2 } })
}
