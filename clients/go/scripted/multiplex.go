package scripted

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	assignmentv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/assignment/v1"
	holdv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/hold/v1"
	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	membershipv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/membership/v1"
)

// An Open is one call of LeaseService.Multiplex.
type Open struct {
	stream[leasev1.MultiplexResponse]
	Request *leasev1.OpenRequest
	Claims  *leasev1.Resume // in its place
	Stops   chan uint64     // the ids of the requests that are stopped, if somebody reads it
	s       *Server
	id      string
	opened  chan struct{} // closed by Accept

	held    chan struct{} // until when no end that was asked for is told; nil, it is told at once
	sending sync.Mutex
	mu      sync.Mutex
	stopped map[uint64]context.CancelFunc
}

// Accept opens the lease under this id, or resumes it.
func (o *Open) Accept(id string) {
	o.t.Helper()
	o.accept(id, o.Claims != nil)
}

// AcceptResumable opens a lease that outlives the sidecar.
func (o *Open) AcceptResumable(id string) {
	o.t.Helper()
	o.accept(id, true)
}

func (o *Open) accept(id string, resumable bool) {
	o.t.Helper()
	o.id = id
	o.s.mu.Lock()
	o.s.leases[id] = o
	o.s.mu.Unlock()
	o.Send(&leasev1.MultiplexResponse{Response: &leasev1.MultiplexResponse_Opened{
		Opened: &leasev1.Opened{LeaseId: id, Ttl: durationpb.New(15 * time.Second), Resumable: resumable},
	}})
	for _, claim := range o.Claims.GetClaims() {
		o.start(claim.GetStart())
	}
	close(o.opened)
}

// Suspend says that contact with the ensemble is lost.
func (o *Open) Suspend(remaining time.Duration) {
	o.t.Helper()
	o.Send(&leasev1.MultiplexResponse{Response: &leasev1.MultiplexResponse_Suspended{
		Suspended: &holdv1.Suspended{Remaining: durationpb.New(remaining)},
	}})
}

// Resume says that contact is back.
func (o *Open) Resume() {
	o.t.Helper()
	o.Send(&leasev1.MultiplexResponse{Response: &leasev1.MultiplexResponse_Resumed{Resumed: &holdv1.Resumed{}}})
}

// HoldStops keeps what is stopped from now on in its place, until goOn is called.
func (o *Open) HoldStops() (goOn func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	held := make(chan struct{})
	o.held = held
	return func() { close(held) }
}

type leaseServer struct {
	leasev1.UnimplementedLeaseServiceServer
	s *Server
}

func (l leaseServer) Multiplex(server leasev1.LeaseService_MultiplexServer) error {
	first, err := server.Recv()
	if err != nil {
		return err
	}
	o := &Open{
		stream:  stream[leasev1.MultiplexResponse]{t: l.s.t, caller: server.Context(), end: make(chan error, 1)},
		Request: first.GetOpen(), Claims: first.GetResume(), Stops: make(chan uint64, 100), s: l.s,
		opened: make(chan struct{}), stopped: map[uint64]context.CancelFunc{},
	}
	o.send = func(message *leasev1.MultiplexResponse) error {
		o.sending.Lock()
		defer o.sending.Unlock()
		return server.Send(message)
	}
	l.s.opens <- o
	go o.read(server)
	return o.wait()
}

func (o *Open) read(server leasev1.LeaseService_MultiplexServer) {
	if o.Claims != nil { // what is claimed is known before it is stopped
		select {
		case <-o.opened:
		case <-o.caller.Done():
		}
	}
	for {
		message, err := server.Recv()
		if errors.Is(err, io.EOF) { // the caller closes the lease
			o.End(nil)
		}
		if err != nil {
			return
		}
		switch request := message.GetRequest().(type) {
		case *leasev1.MultiplexRequest_Start:
			o.start(request.Start)
		case *leasev1.MultiplexRequest_Stop:
			o.stop(request.Stop.GetRequestId())
		case *leasev1.MultiplexRequest_Check:
			go o.check(request.Check.GetCheckId())
		}
	}
}

// check answers as Check of the lease does, whose error is the lease's end.
func (o *Open) check(id uint64) {
	reply, err := o.s.CheckLease(o.caller, &leasev1.CheckRequest{LeaseId: o.id})
	if err != nil {
		o.End(err)
		return
	}
	_ = o.send(&leasev1.MultiplexResponse{Response: &leasev1.MultiplexResponse_Checked{
		Checked: &leasev1.Checked{CheckId: id, ValidFor: reply.GetValidFor()},
	}})
}

func (o *Open) start(start *leasev1.Start) {
	ctx, stop := context.WithCancel(o.caller)
	id := start.GetRequestId()
	o.mu.Lock()
	o.stopped[id] = stop
	o.mu.Unlock()
	var wait func() error
	switch request := start.GetRequest().(type) {
	case *leasev1.Start_Acquire:
		call := &Acquire{Request: request.Acquire, Open: o, s: o.s}
		call.stream = begun(ctx, o, func(event *lockv1.AcquireResponse) *leasev1.Event {
			return &leasev1.Event{RequestId: id, Event: &leasev1.Event_Acquire{Acquire: event}}
		})
		wait = call.wait
		o.s.acquires <- call
	case *leasev1.Start_Join:
		call := &Join{Request: request.Join}
		call.stream = begun(ctx, o, func(event *membershipv1.JoinResponse) *leasev1.Event {
			return &leasev1.Event{RequestId: id, Event: &leasev1.Event_Join{Join: event}}
		})
		wait = call.wait
		o.s.Groups.joins <- call
	case *leasev1.Start_Share:
		call := &Share{Request: request.Share}
		call.stream = begun(ctx, o, func(event *assignmentv1.JoinResponse) *leasev1.Event {
			return &leasev1.Event{RequestId: id, Event: &leasev1.Event_Share{Share: event}}
		})
		wait = call.wait
		o.s.shares <- call
	}
	go func() {
		defer stop()
		o.ended(id, wait(), ctx.Err() != nil)
	}()
}

// begun is what stands for the stream of a single call.
func begun[Event any](ctx context.Context, o *Open, event func(*Event) *leasev1.Event) stream[Event] {
	return stream[Event]{t: o.t, caller: ctx, end: make(chan error, 1), send: func(of *Event) error {
		return o.send(&leasev1.MultiplexResponse{Response: &leasev1.MultiplexResponse_Event{Event: event(of)}})
	}}
}

func (o *Open) ended(id uint64, err error, asked bool) {
	o.mu.Lock()
	held := o.held
	o.mu.Unlock()
	if asked && held != nil {
		select {
		case <-held:
		case <-o.caller.Done():
		}
	}
	if o.caller.Err() != nil {
		return
	}
	ended := &leasev1.Ended{RequestId: id}
	if told := status.Convert(err); err != nil && !asked {
		ended.Code, ended.Message = int32(told.Code()), told.Message()
		for _, detail := range told.Details() {
			if info, is := detail.(*errdetails.ErrorInfo); is {
				ended.Reason, ended.Metadata = info.GetReason(), info.GetMetadata()
			}
		}
	}
	_ = o.send(&leasev1.MultiplexResponse{Response: &leasev1.MultiplexResponse_Ended{Ended: ended}})
}

func (o *Open) stop(id uint64) {
	o.mu.Lock()
	stop := o.stopped[id]
	o.mu.Unlock()
	select {
	case o.Stops <- id:
	default:
	}
	if stop != nil {
		stop()
	}
}
