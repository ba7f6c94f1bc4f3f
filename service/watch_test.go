package service_test

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	assignmentv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/assignment/v1"
	configv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/config/v1"
	electionv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/election/v1"
	fencingv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/fencing/v1"
	holdv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/hold/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	membershipv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/membership/v1"
	semaphorev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/semaphore/v1"
)

type keptAlive interface{ GetKeepalive() *holdv1.Keepalive }

// kindsOf returns the next messages of a Watch: `keepalive` or `news`, or the end.
func kindsOf[M any, P interface {
	*M
	keptAlive
}](stream grpc.ServerStreamingClient[M], err error) func() string {
	return func() string {
		if err != nil {
			return outcome(err)
		}
		message, err := stream.Recv()
		switch {
		case err != nil:
			return strings.TrimSpace(outcome(err) + " " + facts(err))
		case P(message).GetKeepalive() != nil:
			return "keepalive"
		}
		return "news"
	}
}

// watches begins each Watch that there is, with its keepalive, and returns what its messages are.
func (s *scene) watches(keepalive *durationpb.Duration) map[string]func() string {
	s.semaphore("calls", 2)
	connection := s.connection(s.target())
	ctx := s.context()
	_, err := assignmentv1.NewAssignmentServiceClient(connection).Define(ctx, &assignmentv1.DefineRequest{Set: "parts", Count: 3})
	s.must(err)
	return map[string]func() string{
		"lock":      kindsOf(s.Watch(ctx, &lockv1.WatchRequest{Name: "orders", Keepalive: keepalive})),
		"semaphore": kindsOf(s.semaphores.Watch(ctx, &semaphorev1.WatchRequest{Name: "calls", Keepalive: keepalive})),
		"election":  kindsOf(s.elections.Watch(ctx, &electionv1.WatchRequest{Name: "orders", Keepalive: keepalive})),
		"group":     kindsOf(s.groups.Watch(ctx, &membershipv1.WatchRequest{Group: "shop", Keepalive: keepalive})),
		"set": kindsOf(assignmentv1.NewAssignmentServiceClient(connection).Watch(
			ctx, &assignmentv1.WatchRequest{Set: "parts", Keepalive: keepalive})),
		"fencing": kindsOf(fencingv1.NewFencingServiceClient(connection).Watch(
			ctx, &fencingv1.WatchRequest{Locks: []string{"orders"}, Keepalive: keepalive})),
		"config": kindsOf(configv1.NewConfigServiceClient(connection).Watch(ctx, &configv1.WatchRequest{Keepalive: keepalive})),
	}
}

func TestEachWatchBeginsWithTheKeepaliveThatItsReaderAskedFor(t *testing.T) {
	t.Parallel()
	for of, next := range newScene(t).watches(lasting(time.Hour)) {
		same(t, of, next()+" "+next(), "keepalive news")
	}
}

func TestAWatchWhoseReaderAsksForNoKeepaliveSendsNone(t *testing.T) {
	t.Parallel()
	for of, next := range newScene(t).watches(nil) {
		same(t, of, next(), "news")
	}
}

func TestAKeepaliveOutOfRangeIsRefused(t *testing.T) {
	t.Parallel()
	for text, keepalive := range map[string]time.Duration{
		"999.999999ms": time.Second - 1, "1h0m0.000000001s": time.Hour + 1, "-1s": -time.Second,
	} {
		for of, next := range newScene(t).watches(lasting(keepalive)) {
			same(t, of, next(), "InvalidArgument INVALID_FIELD keepalive field=keepalive rule=a duration from 1s to 1h0m0s value="+strconv.Quote(text))
		}
	}
}

func TestWithoutContactAWatchOfASemaphoreSendsTheViewAgainAsStale(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		s.semaphore("calls", 2)
		begin := func() func() string {
			watch, err := s.semaphores.Watch(s.context(), &semaphorev1.WatchRequest{Name: "calls"})
			s.must(err)
			return func() string {
				got, err := watch.Recv()
				s.must(err)
				return got.GetView().GetName() + map[bool]string{true: " stale"}[got.GetStale()]
			}
		}
		first := begin()
		same(t, "view", first(), "calls")
		s.ensemble.Suspend()
		same(t, "view", first(), "calls stale")
		same(t, "view of another watch", begin()(), "calls stale")
		s.ensemble.Resume()
		same(t, "view", first(), "calls")
	})
}
