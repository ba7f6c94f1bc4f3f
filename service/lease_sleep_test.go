package service

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"google.golang.org/grpc/stats"

	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	"github.com/sidekeeper/sidekeeper/internal/caller"
	"github.com/sidekeeper/sidekeeper/test/simulation"
	"github.com/sidekeeper/sidekeeper/test/support/bubble"
)

// inSleep runs a test with a sidecar on a simulated ensemble, whose leases sleep after a timeout.
func inSleep(t *testing.T, test func(p *play, host *simulatedHost, leases *leaseService, ctx context.Context)) {
	t.Helper()
	bubble.Test(t, func(t *testing.T) {
		p := &play{T: t, dice: rand.New(rand.NewPCG(1, 0)), open: map[*simulatedStream]bool{}, ensemble: simulation.New(simulation.Options{})}
		defer p.ensemble.Close()
		p.ensemble.Await()
		host := p.host(0)
		defer host.stop(0)
		ctx, cancel := context.WithCancel(caller.StatsHandler{}.TagRPC(from(t.Context()), nil))
		defer cancel()
		test(p, host, &leaseService{services: host.sidecar.Load().Services}, ctx)
	})
}

func (p *play) cutOff() {
	for server := range 3 {
		p.ensemble.CutHost(0, server, true, true)
	}
}

// wantLease fails unless the only lease is listed so, and is valid for some time or not at all.
func wantLease(t *testing.T, leases *leaseService, state leasev1.State, valid bool) {
	t.Helper()
	list, err := leases.List(t.Context(), &leasev1.ListRequest{})
	if err != nil || len(list.GetLeases()) != 1 {
		t.Fatalf("%v, %v", list, err)
	}
	if only := list.GetLeases()[0]; only.GetState() != state || (only.GetValidFor().AsDuration() > 0) != valid {
		t.Errorf("%v, want %v", only, state)
	}
}

// A lease on which nothing stands is proved again for whoever asks for how long it is valid; nobody is told of contact that it does not need.
func TestALeaseOnWhichNothingStandsSleepsUntilSomebodyAsks(t *testing.T) {
	inSleep(t, func(p *play, host *simulatedHost, leases *leaseService, ctx context.Context) {
		stream := &ringStream[*leasev1.OpenResponse]{ctx: ctx, events: make(chan *leasev1.OpenResponse, 1000)}
		go func() {
			_ = leases.Open(&leasev1.OpenRequest{}, stream)
			caller.StatsHandler{}.HandleRPC(ctx, &stats.End{})
		}()
		id := (<-stream.events).GetOpened().GetLeaseId()
		check := func(least, patience time.Duration) {
			t.Helper()
			began := time.Now()
			told, err := leases.Check(ctx, &leasev1.CheckRequest{LeaseId: id})
			if valid := told.GetValidFor().AsDuration(); err != nil || valid < least || (valid > 0) != (least > 0) || time.Since(began) > patience {
				p.Errorf("valid for %v after %v, %v", valid, time.Since(began), err)
			}
		}
		const soon = 50 * time.Millisecond
		check(time.Second/2, soon)
		wantLease(p.T, leases, leasev1.State_STATE_CONNECTED, true)
		for range 10 {
			time.Sleep(host.timeout * 2 / 3)
			check(time.Second/2, soon)
		}
		for range 3 {
			time.Sleep(2 * host.timeout)
			wantLease(p.T, leases, leasev1.State_STATE_SLEEPING, false)
			if summary := leases.services.LeaseSummary(); summary.Any {
				p.Errorf("a lease that sleeps is taken for one that is valid for %v", summary.MinValid)
			}
			if shown := leases.services.Snapshot().Leases; len(shown) != 1 || !shown[0].Sleeping {
				p.Errorf("shown: %+v", shown)
			}
			check(time.Second/2, soon)
			wantLease(p.T, leases, leasev1.State_STATE_CONNECTED, true)
		}
		time.Sleep(2 * host.timeout)
		p.cutOff()
		check(0, max(time.Second, host.timeout/5)+soon)
		p.ensemble.Heal()
		time.Sleep(host.timeout)
		check(time.Second/2, soon)
		if len(stream.events) > 0 {
			p.Errorf("told: %v", <-stream.events)
		}
	})
}

// An asking is a lease's stream on which its caller asks.
type asking struct {
	*ringStream[*leasev1.MultiplexResponse]
	requests asked
}

func (s *asking) Recv() (*leasev1.MultiplexRequest, error) { return s.requests.next(s.ctx) }

// Checks that wait for a lease to be proved again hold nothing up that is asked behind them.
func TestALeaseThatSleepsIsClosedThoughChecksWait(t *testing.T) {
	inSleep(t, func(p *play, host *simulatedHost, leases *leaseService, ctx context.Context) {
		stream := &asking{
			&ringStream[*leasev1.MultiplexResponse]{ctx: ctx, events: make(chan *leasev1.MultiplexResponse, 1000)},
			make(asked, 1000),
		}
		closed := make(chan error, 1)
		go func() {
			closed <- leases.Multiplex(stream)
			caller.StatsHandler{}.HandleRPC(ctx, &stats.End{})
		}()
		stream.requests <- &leasev1.MultiplexRequest{Request: &leasev1.MultiplexRequest_Open{Open: &leasev1.OpenRequest{}}}
		<-stream.events
		ask := func() {
			for id := range uint64(5) {
				check := &leasev1.CheckValidity{CheckId: id}
				stream.requests <- &leasev1.MultiplexRequest{Request: &leasev1.MultiplexRequest_Check{Check: check}}
			}
		}
		time.Sleep(2 * host.timeout)
		ask()
		for id := range uint64(5) {
			if checked := (<-stream.events).GetChecked(); checked.GetCheckId() != id || checked.GetValidFor().AsDuration() <= 0 {
				p.Errorf("checked: %v", checked)
			}
		}
		time.Sleep(2 * host.timeout)
		p.cutOff()
		ask()
		time.Sleep(time.Second / 2)
		close(stream.requests)
		began := time.Now()
		if err := <-closed; err != nil || time.Since(began) > time.Second/4 {
			p.Errorf("%v after %v", err, time.Since(began))
		}
	})
}
