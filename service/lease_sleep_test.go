package service_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"google.golang.org/grpc/stats"

	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	"github.com/sidekeeper/sidekeeper/internal/caller"
	"github.com/sidekeeper/sidekeeper/test/simulation"
	"github.com/sidekeeper/sidekeeper/test/support/bubble"
)

// inSleep runs a test with a sidecar on a simulated ensemble, whose leases sleep after a timeout.
func inSleep(t *testing.T, test func(t *testing.T, p *play, host *simulatedHost, sidecar *simulatedSidecar, ctx context.Context)) {
	t.Helper()
	bubble.Test(t, func(t *testing.T) {
		p := &play{T: t, dice: rand.New(rand.NewPCG(1, 0)), open: map[*simulatedStream]bool{}, ensemble: simulation.New(simulation.Options{})}
		defer p.ensemble.Close()
		p.ensemble.Await()
		host := p.host(0)
		defer host.stop(0)
		ctx, cancel := context.WithCancel(caller.StatsHandler{}.TagRPC(from(t.Context()), nil))
		defer cancel()
		test(t, p, host, host.sidecar.Load(), ctx)
	})
}

func (p *play) cutOff() {
	for server := range 3 {
		p.ensemble.CutHost(0, server, true, true)
	}
}

// theLease is the only one.
func theLease(t *testing.T, sidecar *simulatedSidecar) *leasev1.Lease {
	t.Helper()
	list, err := sidecar.leases.List(t.Context(), &leasev1.ListRequest{})
	if err != nil || len(list.GetLeases()) != 1 {
		t.Fatalf("%v, %v", list, err)
	}
	return list.GetLeases()[0]
}

// wantLease fails unless the only lease is listed so, and is valid for some time or not at all.
func wantLease(t *testing.T, sidecar *simulatedSidecar, state leasev1.State, valid bool) {
	t.Helper()
	if only := theLease(t, sidecar); only.GetState() != state || (only.GetValidFor().AsDuration() > 0) != valid {
		t.Errorf("%v, want %v", only, state)
	}
}

// A lease on which nothing stands sleeps, whoever asks for how long he may count on it, and what is acquired on it is valid for as long as he
// was told. Nobody is told of contact that it does not need.
func TestALeaseOnWhichNothingStandsSleepsThoughSomebodyAsks(t *testing.T) {
	inSleep(t, func(t *testing.T, p *play, host *simulatedHost, sidecar *simulatedSidecar, ctx context.Context) {
		stream := &asking{
			&ringStream[*leasev1.MultiplexResponse]{ctx: ctx, events: make(chan *leasev1.MultiplexResponse, 1000)},
			make(asked, 1000),
		}
		closed := make(chan error, 1)
		go func() {
			closed <- sidecar.leases.Multiplex(stream)
			caller.StatsHandler{}.HandleRPC(ctx, &stats.End{})
		}()
		stream.requests <- &leasev1.MultiplexRequest{Request: &leasev1.MultiplexRequest_Open{Open: &leasev1.OpenRequest{}}}
		id := (<-stream.events).GetOpened().GetLeaseId()
		var until time.Time
		asks := func(over time.Duration) {
			t.Helper()
			for end := time.Now().Add(over); time.Now().Before(end); time.Sleep(host.timeout / 20) {
				told, err := sidecar.leases.Check(ctx, &leasev1.CheckRequest{LeaseId: id})
				stream.requests <- &leasev1.MultiplexRequest{Request: &leasev1.MultiplexRequest_Check{Check: &leasev1.CheckValidity{CheckId: 1}}}
				began := time.Now()
				also := (<-stream.events).GetChecked().GetValidFor().AsDuration()
				until = time.Now().Add(also)
				if valid := told.GetValidFor().AsDuration(); err != nil || min(valid, also) < host.timeout/5 || time.Since(began) > time.Millisecond {
					t.Fatalf("valid for %v and %v, told after %v, %v", valid, also, time.Since(began), err)
				}
			}
		}
		asks(host.timeout / 2)
		wantLease(t, sidecar, leasev1.State_STATE_CONNECTED, true)
		for request := range uint64(3) {
			asks(2 * host.timeout)
			wantLease(t, sidecar, leasev1.State_STATE_SLEEPING, false)
			if summary := sidecar.LeaseSummary(); summary.Any {
				t.Errorf("a lease that sleeps is taken for one that is valid for %v", summary.MinValid)
			}
			if shown := sidecar.Snapshot().Leases; len(shown) != 1 || !shown[0].Sleeping {
				t.Errorf("shown: %+v", shown)
			}
			acquire := &leasev1.Start_Acquire{Acquire: &lockv1.AcquireRequest{Name: "bed"}}
			start := &leasev1.Start{RequestId: request + 1, Request: acquire}
			stream.requests <- &leasev1.MultiplexRequest{Request: &leasev1.MultiplexRequest_Start{Start: start}}
			if granted := (<-stream.events).GetEvent().GetAcquire().GetGranted(); granted == nil {
				t.Fatal("not granted")
			}
			if valid, told := theLease(t, sidecar).GetValidFor().AsDuration(), time.Until(until); valid < told {
				t.Errorf("valid for %v where %v was told", valid, told)
			}
			asks(2 * host.timeout)
			wantLease(t, sidecar, leasev1.State_STATE_CONNECTED, true)
			stream.requests <- &leasev1.MultiplexRequest{Request: &leasev1.MultiplexRequest_Stop{Stop: &leasev1.Stop{RequestId: request + 1}}}
			if ended := (<-stream.events).GetEnded(); ended.GetRequestId() != request+1 || ended.GetCode() != 0 {
				t.Fatalf("ended: %v", ended)
			}
		}
		asks(2 * host.timeout)
		p.cutOff()
		asks(2 * host.timeout)
		wantLease(t, sidecar, leasev1.State_STATE_SUSPENDED, false)
		close(stream.requests)
		if err := <-closed; err != nil || len(stream.events) > 0 {
			t.Errorf("%v, and it was told of %d other things", err, len(stream.events))
		}
	})
}

// An asking is a lease's stream on which its caller asks.
type asking struct {
	*ringStream[*leasev1.MultiplexResponse]
	requests asked
}

func (s *asking) Recv() (*leasev1.MultiplexRequest, error) { return s.requests.next(s.ctx) }
