package service_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/stats"

	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	"github.com/sidekeeper/sidekeeper/internal/caller"
	"github.com/sidekeeper/sidekeeper/service"
	"github.com/sidekeeper/sidekeeper/test/simulation"
	"github.com/sidekeeper/sidekeeper/test/support/bubble"
)

// A ring is callers, at two sidecars by turns, of which each holds a lock with its lease and waits for the next one's, but for the last where it
// is left open. All is in virtual time.
type ring struct {
	*play
	over     context.Context // ends with the test
	sidecars []*simulatedSidecar
	streams  sync.WaitGroup
}

func inRing(t *testing.T, test func(*ring)) {
	t.Helper()
	for seed := range uint64(4) {
		bubble.Test(t, func(t *testing.T) {
			r := &ring{play: &play{T: t, dice: rand.New(rand.NewPCG(seed, 0)), seed: seed}}
			r.ensemble = simulation.New(simulation.Options{Seed: seed, Hosts: 2})
			defer r.ensemble.Close()
			r.ensemble.Await()
			var end context.CancelFunc
			r.over, end = context.WithCancel(context.Background())
			for number := range r.hosts {
				r.sidecars = append(r.sidecars, r.host(number).sidecar.Load())
			}
			test(r)
			end()
			r.streams.Wait()
			for number := range r.hosts {
				r.hosts[number].stop(0)
			}
		})
	}
}

// A ringStream is a stream of one of them; done gets how it ends.
type ringStream[M any] struct {
	grpc.ServerStream
	ctx    context.Context
	events chan M
	done   chan string
}

func (s *ringStream[M]) Context() context.Context { return s.ctx }

func (s *ringStream[M]) SendHeader(metadata.MD) error { return nil }

func (s *ringStream[M]) Send(m M) error { s.events <- m; return nil }

func ringBegins[M any](r *ring, handle func(*ringStream[M]) error) *ringStream[M] {
	s := &ringStream[M]{ctx: caller.StatsHandler{}.TagRPC(r.over, nil), events: make(chan M, 1000), done: make(chan string, 1)}
	r.streams.Go(func() {
		_, reason := service.StatusOf(handle(s))
		s.done <- reason
		caller.StatsHandler{}.HandleRPC(s.ctx, &stats.End{})
	})
	return s
}

func (r *ring) lease(i int) (id string) {
	stream := ringBegins(r, func(s *ringStream[*leasev1.OpenResponse]) error {
		return r.sidecars[i%2].leases.Open(&leasev1.OpenRequest{Owner: fmt.Sprint("caller ", i)}, s)
	})
	return (<-stream.events).GetOpened().GetLeaseId()
}

func (r *ring) acquire(i int, lease string, of int) *ringStream[*lockv1.AcquireResponse] {
	stream := ringBegins(r, func(s *ringStream[*lockv1.AcquireResponse]) error {
		request := &lockv1.AcquireRequest{Name: fmt.Sprint("lock-", of), LeaseId: lease, DetectDeadlock: true}
		return r.sidecars[i%2].locks.Acquire(request, s)
	})
	return stream
}

// plant has each of count callers hold a lock, and all but those who are left out wait for the next one's.
func (r *ring) plant(count, waits int) (waiting []*ringStream[*lockv1.AcquireResponse]) {
	leases := make([]string, count)
	for i := range count {
		leases[i] = r.lease(i)
		if granted := <-r.acquire(i, leases[i], i).events; granted.GetGranted() == nil {
			r.Fatalf("seed %d: %v", r.seed, granted)
		}
	}
	for i := range waits {
		stream := r.acquire(i, leases[i], (i+1)%count)
		if queued := <-stream.events; queued.GetQueued() == nil {
			r.Fatalf("seed %d: %v", r.seed, queued)
		}
		waiting = append(waiting, stream)
	}
	return waiting
}

// explained is which locks the explanation of the first one leads to, and its circles.
func (r *ring) explained(at int) string {
	explained, err := r.sidecars[at%2].locks.Explain(r.over, &lockv1.ExplainRequest{Name: "lock-0"})
	if err != nil {
		r.Fatal(err)
	}
	var words []string
	for _, lock := range explained.GetLocks() {
		words = append(words, lock.GetName())
		for _, holder := range lock.GetHolders() {
			words = append(words, "held by", holder.GetContender().GetOwner())
		}
	}
	for _, circle := range explained.GetCycles() {
		words = append(words, fmt.Sprint("circle of ", len(circle.GetLinks())))
	}
	return strings.Join(words, " ")
}

// whoIsTold is who of them has been told something since the last time, and what.
func whoIsTold(waiting []*ringStream[*lockv1.AcquireResponse]) string {
	var words []string
	for i, one := range waiting {
		select {
		case reason := <-one.done:
			words = append(words, fmt.Sprint(i, " ", reason))
		default:
		}
	}
	return strings.Join(words, ", ")
}

func TestWhoeverClosesACircleIsToldWithinThreeSeconds(t *testing.T) {
	t.Parallel()
	for _, count := range []int{2, 3} {
		inRing(t, func(r *ring) {
			waiting := r.plant(count, count)
			time.Sleep(3 * time.Second)
			same(t, "told within three seconds", whoIsTold(waiting), fmt.Sprint(count-1, " DEADLOCK"))
			time.Sleep(time.Minute)
			same(t, "told later", whoIsTold(waiting), "")
		})
	}
}

func TestWhoeverWaitsForOneThatWaitsInNoCircleIsNotTold(t *testing.T) {
	t.Parallel()
	inRing(t, func(r *ring) {
		waiting := r.plant(3, 2)
		time.Sleep(time.Minute)
		same(t, "told", whoIsTold(waiting), "")
		want := "lock-0 held by caller 0 lock-1 held by caller 1 lock-2 held by caller 2"
		for at := range 2 {
			same(t, "explanation", r.explained(at), want)
		}
	})
}
