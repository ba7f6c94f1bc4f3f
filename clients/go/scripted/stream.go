package scripted

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	membershipv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/membership/v1"
)

// A stream is one call that lives until the test or the caller ends it.
type stream[Event any] struct {
	t      testing.TB
	caller context.Context // of the call: it is what Gone shows
	send   func(*Event) error
	end    chan error
}

func newStream[Event any](t testing.TB, server grpc.ServerStreamingServer[Event]) stream[Event] {
	t.Helper()
	return stream[Event]{t: t, caller: server.Context(), send: server.Send, end: make(chan error, 1)}
}

// Send sends an event.
func (s *stream[Event]) Send(event *Event) {
	s.t.Helper()
	if err := s.send(event); err != nil {
		s.t.Errorf("send: %v", err)
	}
}

// End ends the stream with err; nil means OK.
func (s *stream[Event]) End(err error) {
	select {
	case s.end <- err:
	default: // it has been ended before
	}
}

// AwaitGone returns when the caller has left or the stream was ended.
func (s *stream[Event]) AwaitGone() {
	s.t.Helper()
	select {
	case <-s.caller.Done():
	case <-time.After(patience):
		s.t.Fatal("the caller has not left the stream")
	}
}

// GoneWithin says whether the caller leaves, or the stream is ended, in this time.
func (s *stream[Event]) GoneWithin(limit time.Duration) bool {
	select {
	case <-s.caller.Done():
		return true
	case <-time.After(limit):
		return false
	}
}

// HasDeadline says whether the caller bound the stream with a gRPC deadline.
func (s *stream[Event]) HasDeadline() bool {
	_, has := s.caller.Deadline()
	return has
}

func (s *stream[Event]) wait() error {
	select {
	case err := <-s.end:
		return err
	case <-s.caller.Done():
		return s.caller.Err()
	}
}

// An Acquire is one call of LockService.Acquire.
type Acquire struct {
	stream[lockv1.AcquireResponse]
	Request *lockv1.AcquireRequest
	s       *Server
}

// Queue tells the caller that this many are ahead.
func (a *Acquire) Queue(position int32) {
	a.t.Helper()
	a.Send(&lockv1.AcquireResponse{Event: &lockv1.AcquireResponse_Queued{Queued: &lockv1.Queued{Position: position}}})
}

// Grant grants the lock, and returns the id of the hold.
func (a *Acquire) Grant(token int64) string {
	a.t.Helper()
	id := fmt.Sprintf("%032x", token)
	a.s.mu.Lock()
	a.s.holds[id] = a
	a.s.mu.Unlock()
	a.Send(&lockv1.AcquireResponse{Event: &lockv1.AcquireResponse_Granted{
		Granted: &lockv1.Granted{HoldId: id, FencingToken: token},
	}})
	return id
}

// Suspend says that contact with the ensemble is lost.
func (a *Acquire) Suspend(remaining time.Duration) {
	a.t.Helper()
	a.Send(&lockv1.AcquireResponse{Event: &lockv1.AcquireResponse_Suspended{
		Suspended: &lockv1.Suspended{Remaining: durationpb.New(remaining)},
	}})
}

// Resume says that contact is back.
func (a *Acquire) Resume() {
	a.t.Helper()
	a.Send(&lockv1.AcquireResponse{Event: &lockv1.AcquireResponse_Resumed{Resumed: &lockv1.Resumed{}}})
}

// AskBack asks the holder to let go.
func (a *Acquire) AskBack(request *lockv1.RevocationRequested) {
	a.t.Helper()
	a.Send(&lockv1.AcquireResponse{Event: &lockv1.AcquireResponse_RevocationRequested{RevocationRequested: request}})
}

// An Open is one call of LeaseService.Open.
type Open struct {
	stream[leasev1.OpenResponse]
	Request *leasev1.OpenRequest
	s       *Server
}

// Accept opens the lease under this id.
func (o *Open) Accept(id string) {
	o.t.Helper()
	o.s.mu.Lock()
	o.s.leases[id] = o
	o.s.mu.Unlock()
	o.Send(&leasev1.OpenResponse{Event: &leasev1.OpenResponse_Opened{
		Opened: &leasev1.Opened{LeaseId: id, Ttl: durationpb.New(15 * time.Second)},
	}})
}

type lockServer struct {
	lockv1.UnimplementedLockServiceServer
	s *Server
}

func (l lockServer) Acquire(
	request *lockv1.AcquireRequest, server grpc.ServerStreamingServer[lockv1.AcquireResponse],
) error {
	call := &Acquire{newStream(l.s.t, server), request, l.s}
	l.s.acquires <- call
	return call.wait()
}

func (l lockServer) Watch(request *lockv1.WatchRequest, server grpc.ServerStreamingServer[lockv1.WatchResponse]) error {
	return watched(l.s.Watch, request, server)
}

// watched is a watch as the test's function has it.
func watched[Request, Event any](
	by func(*Request, grpc.ServerStreamingServer[Event]) error, request *Request, server grpc.ServerStreamingServer[Event],
) error {
	if by == nil {
		return errUnscripted
	}
	return by(request, server)
}

type leaseServer struct {
	leasev1.UnimplementedLeaseServiceServer
	s *Server
}

func (l leaseServer) Open(
	request *leasev1.OpenRequest, server grpc.ServerStreamingServer[leasev1.OpenResponse],
) error {
	call := &Open{newStream(l.s.t, server), request, l.s}
	l.s.opens <- call
	return call.wait()
}

// Multiplex shows what comes over a lease's stream as the calls that do the same.
func (l leaseServer) Multiplex(server grpc.BidiStreamingServer[leasev1.MultiplexRequest, leasev1.MultiplexResponse]) error {
	first, err := server.Recv()
	if err != nil {
		return err
	}
	c := &carrier{s: l.s, server: server, stops: map[uint64]context.CancelFunc{}}
	go c.read()
	return l.Open(first.GetOpen(), &inner[leasev1.OpenResponse]{ctx: server.Context(), send: func(event *leasev1.OpenResponse) error {
		switch of := event.GetEvent().(type) {
		case *leasev1.OpenResponse_Opened:
			c.lease.Store(of.Opened.GetLeaseId())
			return c.send(&leasev1.MultiplexResponse{Response: &leasev1.MultiplexResponse_Opened{Opened: of.Opened}})
		case *leasev1.OpenResponse_Suspended:
			return c.send(&leasev1.MultiplexResponse{Response: &leasev1.MultiplexResponse_Suspended{Suspended: of.Suspended}})
		case *leasev1.OpenResponse_Resumed:
			return c.send(&leasev1.MultiplexResponse{Response: &leasev1.MultiplexResponse_Resumed{Resumed: of.Resumed}})
		}
		return nil
	}})
}

// A carrier is a lease's stream.
type carrier struct {
	s      *Server
	server grpc.BidiStreamingServer[leasev1.MultiplexRequest, leasev1.MultiplexResponse]
	lease  atomic.Value // its id

	sending sync.Mutex
	mu      sync.Mutex
	stops   map[uint64]context.CancelFunc
}

// An inner is the stream of one call inside of another one's.
type inner[Event any] struct {
	grpc.ServerStream

	ctx  context.Context
	send func(*Event) error
}

func (i *inner[Event]) Context() context.Context { return i.ctx }
func (i *inner[Event]) Send(event *Event) error  { return i.send(event) }

func (c *carrier) send(message *leasev1.MultiplexResponse) error {
	c.sending.Lock()
	defer c.sending.Unlock()
	return c.server.Send(message)
}

func (c *carrier) read() {
	for {
		message, err := c.server.Recv()
		if err != nil {
			return
		}
		switch of := message.GetRequest().(type) {
		case *leasev1.MultiplexRequest_Start:
			c.start(of.Start)
		case *leasev1.MultiplexRequest_Stop:
			c.mu.Lock()
			stop := c.stops[of.Stop.GetRequestId()]
			c.mu.Unlock()
			if stop != nil {
				stop()
			}
		case *leasev1.MultiplexRequest_Check:
			go c.check(of.Check.GetCheckId())
		}
	}
}

// check answers as CheckLease is scripted. An error ends the lease.
func (c *carrier) check(id uint64) {
	lease, _ := c.lease.Load().(string)
	reply, err := c.s.CheckLease(c.server.Context(), &leasev1.CheckRequest{LeaseId: lease})
	if err == nil {
		checked := &leasev1.Checked{CheckId: id, ValidFor: reply.GetValidFor()}
		_ = c.send(&leasev1.MultiplexResponse{Response: &leasev1.MultiplexResponse_Checked{Checked: checked}})
		return
	}
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	if of := c.s.leases[lease]; of != nil {
		of.End(err)
	}
}

func (c *carrier) start(request *leasev1.Start) {
	id := request.GetRequestId()
	ctx, stop := context.WithCancel(c.server.Context())
	lease, _ := c.lease.Load().(string)
	c.mu.Lock()
	c.stops[id] = stop
	c.mu.Unlock()
	go func() {
		defer stop()
		var err error
		switch of := request.GetRequest().(type) {
		case *leasev1.Start_Acquire:
			of.Acquire.LeaseId = lease
			err = lockServer{s: c.s}.Acquire(of.Acquire, &inner[lockv1.AcquireResponse]{ctx: ctx, send: func(event *lockv1.AcquireResponse) error {
				return c.event(&leasev1.Event{RequestId: id, Event: &leasev1.Event_Acquire{Acquire: event}})
			}})
		case *leasev1.Start_Join:
			of.Join.LeaseId = lease
			err = groupServer{g: &c.s.Groups}.Join(of.Join, &inner[membershipv1.JoinResponse]{ctx: ctx, send: func(event *membershipv1.JoinResponse) error {
				return c.event(&leasev1.Event{RequestId: id, Event: &leasev1.Event_Join{Join: event}})
			}})
		}
		c.ended(id, err, ctx.Err() != nil)
	}()
}

func (c *carrier) event(event *leasev1.Event) error {
	return c.send(&leasev1.MultiplexResponse{Response: &leasev1.MultiplexResponse_Event{Event: event}})
}

func (c *carrier) ended(id uint64, err error, stopped bool) {
	ended := &leasev1.Ended{RequestId: id}
	if told := status.Convert(err); err != nil && !stopped {
		ended.Code, ended.Message = int32(told.Code()), told.Message()
		for _, detail := range told.Details() {
			if info, ok := detail.(*errdetails.ErrorInfo); ok {
				ended.Reason, ended.Metadata = info.GetReason(), info.GetMetadata()
			}
		}
	}
	_ = c.send(&leasev1.MultiplexResponse{Response: &leasev1.MultiplexResponse_Ended{Ended: ended}})
}
