package service_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/stats"

	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	"github.com/sidekeeper/sidekeeper/internal/caller"
	"github.com/sidekeeper/sidekeeper/internal/trace"
	"github.com/sidekeeper/sidekeeper/service"
	"github.com/sidekeeper/sidekeeper/test/simulation"
	"github.com/sidekeeper/sidekeeper/test/traces"
)

func TestALeasesStreamTellsOfAnEndBeforeTheNextGrantWhateverFails(t *testing.T) {
	t.Parallel()
	grants, shared, losses := 0, 0, 0
	for seed := *firstSeed; seed < *firstSeed+*simulatedSeeds; seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			acts := func(p *play) []act { return []act{p.carry, p.carry, p.call, p.revoke} }
			p := simulate(t, simulation.Options{Seed: seed, Hosts: 2}, acts)
			grants, shared, losses = grants+p.grants, shared+p.shared, losses+p.losses
		})
	}
	t.Logf("%d grants, %d of them beside a reader's, %d of them lost", grants, shared, losses)
	if *recorded == "" && (grants < 5*int(*simulatedSeeds) || shared < int(*simulatedSeeds) || losses < int(*simulatedSeeds)/6) {
		t.Error("too little happens")
	}
}

// A simulatedCarrier is a lease's stream whose caller acquires a lock on it again and again, and asks for how long the lease is valid. It reads
// each message as it is handed to the transport.
type simulatedCarrier struct {
	grpc.ServerStream
	*play
	ctx      context.Context
	opened   chan string // the lease's id
	requests asked
	closed   bool // nothing more is sent
	dice     *rand.Rand
	slow     *rand.Rand // the transport's

	session int64 // 0 if it is over
	mu      sync.Mutex
	holds   *simulatedStream // the newest request; it holds if it has a token and has not ended
	newest  uint64
	gaveUp  bool // the newest request: its caller counts on nothing any more
	again   bool // the newest request has ended as its caller asked: its place has gone
}

// Context implements grpc.ServerStream.
func (c *simulatedCarrier) Context() context.Context { return c.ctx }

// SendHeader implements grpc.ServerStream.
func (c *simulatedCarrier) SendHeader(metadata.MD) error { return nil }

// Recv implements grpc.BidiStreamingServer.
func (c *simulatedCarrier) Recv() (*leasev1.MultiplexRequest, error) { return c.requests.next(c.ctx) }

// An asked is what a lease's stream is asked for, until it is closed.
type asked chan *leasev1.MultiplexRequest

func (a asked) next(ctx context.Context) (*leasev1.MultiplexRequest, error) {
	select {
	case request, more := <-a:
		if !more {
			return nil, io.EOF
		}
		return request, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Send implements grpc.BidiStreamingServer.
func (c *simulatedCarrier) Send(m *leasev1.MultiplexResponse) error {
	if m.GetChecked() != nil { // so that others wait behind it while holds end
		time.Sleep(time.Duration(c.slow.Int64N(int64(600 * time.Millisecond))))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch of := m.GetResponse().(type) {
	case *leasev1.MultiplexResponse_Opened:
		c.opened <- of.Opened.GetLeaseId()
	case *leasev1.MultiplexResponse_Checked:
		c.hears(of.Checked.GetValidFor().AsDuration())
	case *leasev1.MultiplexResponse_Suspended:
		c.hears(of.Suspended.GetRemaining().AsDuration())
	case *leasev1.MultiplexResponse_Event:
		c.isTold(of.Event.GetRequestId(), of.Event.GetAcquire().GetGranted())
	case *leasev1.MultiplexResponse_Ended:
		if c.holds != nil && c.newest == of.Ended.GetRequestId() {
			c.again = of.Ended.GetCode() == 0
			c.endsCarried(c.holds, of.Ended)
			c.holds = nil
		}
	}
	return nil
}

// isTold notes that the caller has read that it holds, if it does and waits for that still.
func (c *simulatedCarrier) isTold(request uint64, granted *lockv1.Granted) {
	if granted != nil && c.holds != nil && !c.gaveUp && c.newest == request {
		c.holds.token = granted.GetFencingToken()
		c.enter(c.holds, c.holds.token)
	}
}

// hears notes what the caller has read of its lease.
func (c *simulatedCarrier) hears(validFor time.Duration) {
	if c.holds != nil && c.holds.token != 0 && !c.gaveUp && c.session != 0 {
		trace.Tell(trace.Step{Kind: traces.Heard, Session: c.session, Until: validFor})
	}
}

// endsCarried is ends for a request on a lease's stream.
func (c *simulatedCarrier) endsCarried(s *simulatedStream, ended *leasev1.Ended) {
	p := c.play
	p.mu.Lock()
	defer p.mu.Unlock()
	close(s.ended)
	open := p.open[s]
	delete(p.open, s)
	if !open || c.ctx.Err() != nil {
		return
	}
	switch reason := ended.GetReason(); reason {
	case "LEASE_LOST":
		p.losses++
	case "LOCK_REVOKED", "SIDECAR_STOPPING":
	default:
		p.Errorf("seed %d: a hold ended with %v", p.seed, ended)
	}
}

// carry opens a lease again and again, and acquires on its stream for some time.
func (p *play) carry(over context.Context, host *simulatedHost, dice *rand.Rand) {
	over = from(over)
	for over.Err() == nil {
		sidecar := host.sidecar.Load()
		ctx, cancel := context.WithCancel(caller.StatsHandler{}.TagRPC(over, nil))
		c := &simulatedCarrier{
			play: p, ctx: ctx, dice: dice, slow: rand.New(rand.NewPCG(dice.Uint64(), 3)),
			opened: make(chan string, 1), requests: make(asked, 1000),
		}
		c.requests <- &leasev1.MultiplexRequest{Request: &leasev1.MultiplexRequest_Open{Open: &leasev1.OpenRequest{}}}
		var using sync.WaitGroup
		using.Go(func() {
			select {
			case <-ctx.Done():
			case id := <-c.opened:
				c.session = service.SessionOf(ctx, sidecar.Services, id)
				c.use()
			}
			c.leaves(cancel)
		})
		_ = sidecar.leases.Multiplex(c) // says if it is lost
		cancel()
		caller.StatsHandler{}.HandleRPC(ctx, &stats.End{})
		using.Wait()
		time.Sleep(time.Duration(dice.Int64N(int64(time.Second))))
	}
}

// use acquires on the stream for some time. A session has one place in a queue, or its trace cannot tell them apart: what comes after a hold
// that the caller has not given up comes on another lease.
func (c *simulatedCarrier) use() {
	lasting, stop := context.WithTimeout(c.ctx, time.Duration(c.dice.Int64N(int64(40*time.Second))))
	defer stop()
	pause := func(most time.Duration) {
		select {
		case <-lasting.Done():
		case <-time.After(time.Duration(c.dice.Int64N(int64(most)))):
		}
	}
	for again := true; again && lasting.Err() == nil; pause(time.Second) {
		again = c.acquire(lasting)
	}
	pause(10 * time.Second)
}

// acquire acquires once, and asks for the lease again and again until that has ended; it returns whether its place has gone. Most of the ends
// that the caller has not asked for it acknowledges, some time later.
func (c *simulatedCarrier) acquire(lasting context.Context) (again bool) {
	asks, hears := 3*time.Second/2+time.Duration(c.dice.Int64N(int64(5*time.Second))), c.dice.IntN(3) > 0
	c.mu.Lock()
	c.newest, c.gaveUp = c.newest+1, false
	id := c.newest
	stopping := sync.OnceFunc(func() { c.stops(id) })
	s := &simulatedStream{
		play: c.play, cancel: stopping, patience: time.Duration(c.dice.Int64N(int64(9 * time.Second))), ended: make(chan struct{}),
		mode: c.mode(c.dice),
	}
	c.holds = s
	c.mu.Unlock()
	acquire := &leasev1.Start_Acquire{Acquire: &lockv1.AcquireRequest{Name: "orders", Mode: s.mode}}
	start := &leasev1.Start{RequestId: id, Request: acquire}
	c.sends(&leasev1.MultiplexRequest{Request: &leasev1.MultiplexRequest_Start{Start: start}})
	switch c.dice.IntN(8) {
	case 0: // it does not wait for long
		time.AfterFunc(s.patience, stopping)
	case 1: // perhaps not even until its place is made
		time.AfterFunc(s.patience/1000, stopping)
	}
	for {
		select {
		case <-lasting.Done():
			return false
		case <-s.ended:
			c.mu.Lock()
			again = c.again
			c.mu.Unlock()
			if hears && !again {
				time.Sleep(asks / 4)
				stopping()
			}
			return again
		case <-time.After(asks):
			for range 2 {
				check := &leasev1.MultiplexRequest_Check{Check: &leasev1.CheckValidity{CheckId: id}}
				c.sends(&leasev1.MultiplexRequest{Request: check})
			}
		}
	}
}

// stops has a request given up, or its end acknowledged: the caller counts on it no more.
func (c *simulatedCarrier) stops(id uint64) {
	c.mu.Lock()
	if c.holds != nil && c.newest == id {
		c.gaveUp = true
		c.letGo(c.holds)
	}
	c.mu.Unlock()
	c.sends(&leasev1.MultiplexRequest{Request: &leasev1.MultiplexRequest_Stop{Stop: &leasev1.Stop{RequestId: id}}})
}

// letGo notes that a caller has given up what it holds.
func (p *play) letGo(s *simulatedStream) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, s)
}

// sends sends a message, unless the caller has closed its stream.
func (c *simulatedCarrier) sends(request *leasev1.MultiplexRequest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return
	}
	select {
	case c.requests <- request:
	case <-c.ctx.Done():
	}
}

// leaves closes the lease, or cancels its stream: the caller counts on nothing of it any more, whatever it is still told.
func (c *simulatedCarrier) leaves(cancel func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.gaveUp = true
	if c.holds != nil {
		c.letGo(c.holds)
	}
	if c.dice.IntN(2) == 0 {
		cancel()
	}
	c.closed = true
	close(c.requests)
}

var _ grpc.BidiStreamingServer[leasev1.MultiplexRequest, leasev1.MultiplexResponse] = (*simulatedCarrier)(nil)
