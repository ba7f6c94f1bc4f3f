package server

import (
	"context"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/sidekeeper/sidekeeper/internal/caller"
	"github.com/sidekeeper/sidekeeper/service"
)

// What one caller may have of requests that have not come as a whole, over all its connections.
const (
	mostIncomplete = 64               // that are read at once, each of which may take as much memory as the longest message
	mostUnread     = 1024             // that wait for their turn, each of which may take as much as the window of a stream
	longestRequest = 10 * time.Second // from a call's headers to the end of its request
)

// An intake is where one caller's requests come in. Nothing of a request is read before its turn.
type intake struct {
	reading chan struct{}
	calls   atomic.Int64 // that are read or wait
}

func newIntake() *intake { return &intake{reading: make(chan struct{}, mostIncomplete)} }

// enter waits for the turn of a call. Whoever was admitted leaves.
func (i *intake) enter(ctx context.Context, identity string, memory memory) error {
	if i.calls.Add(1) > mostIncomplete+mostUnread {
		i.calls.Add(-1)
		return service.QuotaExceeded("incomplete requests", mostIncomplete+mostUnread, identity)
	}
	err := i.turn(ctx, identity, memory)
	if err != nil {
		i.calls.Add(-1)
	}
	return err
}

func (i *intake) turn(ctx context.Context, identity string, memory memory) error {
	select {
	case i.reading <- struct{}{}:
		return nil
	default:
	}
	if err := memory.spare(); err != nil {
		return err
	}
	late := time.NewTimer(longestRequest)
	defer late.Stop()
	select {
	case i.reading <- struct{}{}:
		return nil
	case <-late.C:
		return service.QuotaExceeded("incomplete requests", mostIncomplete, identity)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (i *intake) leave() {
	<-i.reading
	i.calls.Add(-1)
}

// A rawStream is what gRPC's own stream can do beyond what it shows.
type rawStream interface {
	RecvCompress() string
	WriteStatus(answer *status.Status) error // from any goroutine; it ends the call, and with it what reads the request
}

//nolint:forbidigo // gRPC's own answer to an encoding that is not known, which has no reason of ours
var errCompressed = status.Error(codes.Unimplemented, "compressed requests are not accepted: send them without grpc-encoding")

// A reception reads requests for their callers: uncompressed ones, so many at a time, each within a time.
type reception struct {
	memory   memory
	metrics  *Metrics
	complete time.Duration
}

// read reads one request.
func (r reception) read(ctx context.Context, read func() error) error {
	raw, ok := grpc.ServerTransportStreamFromContext(ctx).(rawStream)
	if !ok {
		return read()
	}
	if encoding := raw.RecvCompress(); encoding != "" && encoding != "identity" {
		return errCompressed
	}
	from := caller.Of(ctx)
	quota := slotOf(from).quota
	if quota == nil {
		return read()
	}
	if err := quota.intake.enter(ctx, from.Identity, r.memory); err != nil {
		return r.told(ctx, err).Err()
	}
	defer quota.intake.leave()
	late := time.AfterFunc(r.complete, func() { _ = raw.WriteStatus(r.told(ctx, tooSlow(r.complete, from))) }) // fails for who has gone
	if err := read(); late.Stop() {
		return err
	}
	return errTooSlow
}

func tooSlow(most time.Duration, from caller.Caller) error {
	return service.QuotaExceeded("seconds until a request is complete", int(most/time.Second), from.Identity)
}

// errTooSlow ends a call whose caller has its status already.
//
//nolint:forbidigo // nobody is told of it
var errTooSlow = status.Error(codes.ResourceExhausted, "the request did not come in time")

// told is what the caller is told of an error that the interceptors do not meet, as they would tell it.
func (r reception) told(ctx context.Context, err error) *status.Status {
	answer, reason := service.StatusOf(err)
	if reason != "" {
		_ = grpc.SetTrailer(ctx, metadata.Pairs(reasonTrailer, reason)) // fails only for a call that has ended
		r.metrics.callErrors.WithLabelValues(reason).Inc()
	}
	return answer
}

// A receptionist has the requests of the services that register with it read by a reception.
type receptionist struct {
	grpc.ServiceRegistrar

	reception reception
}

// RegisterService implements grpc.ServiceRegistrar. Streams are read by the interceptor.
func (r receptionist) RegisterService(description *grpc.ServiceDesc, handlers any) {
	watched := *description
	watched.Methods = nil
	for _, method := range description.Methods {
		answer := method.Handler
		method.Handler = func(server any, ctx context.Context, decode func(any) error, through grpc.UnaryServerInterceptor) (any, error) {
			return answer(server, ctx, func(request any) error {
				return r.reception.read(ctx, func() error { return decode(request) })
			}, through)
		}
		watched.Methods = append(watched.Methods, method)
	}
	r.ServiceRegistrar.RegisterService(&watched, handlers)
}

func (r reception) stream(server any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	return handler(server, receivedStream{stream, r})
}

// A receivedStream has its requests read by a reception.
type receivedStream struct {
	grpc.ServerStream

	reception reception
}

// RecvMsg implements grpc.ServerStream.
func (s receivedStream) RecvMsg(request any) error {
	return s.reception.read(s.Context(), func() error { return s.ServerStream.RecvMsg(request) })
}
