package scripted

import (
	"context"
	"fmt"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	holdv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/hold/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
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

// An Acquire is one call of LockService.Acquire, or what stands for it on a lease's stream.
type Acquire struct {
	stream[lockv1.AcquireResponse]
	Request *lockv1.AcquireRequest
	Open    *Open // the lease on whose stream it stands; nil, the call is one of its own
	s       *Server
}

// Queue tells the caller that this many are ahead.
func (a *Acquire) Queue(position int32) {
	a.t.Helper()
	a.Send(&lockv1.AcquireResponse{Event: &lockv1.AcquireResponse_Queued{Queued: &holdv1.Queued{Position: position}}})
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
		Suspended: &holdv1.Suspended{Remaining: durationpb.New(remaining)},
	}})
}

// Resume says that contact is back.
func (a *Acquire) Resume() {
	a.t.Helper()
	a.Send(&lockv1.AcquireResponse{Event: &lockv1.AcquireResponse_Resumed{Resumed: &holdv1.Resumed{}}})
}

// AskBack asks the holder to let go.
func (a *Acquire) AskBack(request *holdv1.RevocationRequested) {
	a.t.Helper()
	a.Send(&lockv1.AcquireResponse{Event: &lockv1.AcquireResponse_RevocationRequested{RevocationRequested: request}})
}

type lockServer struct {
	lockv1.UnimplementedLockServiceServer
	s *Server
}

func (l lockServer) Acquire(
	request *lockv1.AcquireRequest, server grpc.ServerStreamingServer[lockv1.AcquireResponse],
) error {
	call := &Acquire{newStream(l.s.t, server), request, nil, l.s}
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
