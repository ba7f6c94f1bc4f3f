package budget

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	"github.com/sidekeeper/sidekeeper/internal/caller"
	"github.com/sidekeeper/sidekeeper/internal/policy"
	"github.com/sidekeeper/sidekeeper/service"
)

// What one caller may have of requests that have not come as a whole, over all its connections.
const (
	MostIncomplete = 64               // that are read at once, each of which may take as much memory as the longest message
	urgentIn       = 4                // a quarter as many beside them, of the calls that keep and let go what the caller has
	mostUnread     = 1024             // that wait for their turn, each of which may take as much as the window of a stream
	LongestRequest = 10 * time.Second // from a call's headers to the end of its request
)

// An intake is where one caller's requests come in. Nothing of a request is read before its turn.
type intake struct {
	reading chan struct{}
	calls   atomic.Int64 // that are read or wait
}

// newIntake makes one that reads so many requests at once.
func newIntake(most int) *intake { return &intake{reading: make(chan struct{}, most)} }

// enter waits for the turn of a call. Whoever was admitted leaves.
func (i *intake) enter(ctx context.Context, identity string, memory Memory) error {
	if most := cap(i.reading) + mostUnread; i.calls.Add(1) > int64(most) {
		i.calls.Add(-1)
		return service.QuotaExceeded(policy.IncompleteRequests.String(), most, identity, 0)
	}
	err := i.turn(ctx, identity, memory)
	if err != nil {
		i.calls.Add(-1)
	}
	return err
}

func (i *intake) turn(ctx context.Context, identity string, memory Memory) error {
	select {
	case i.reading <- struct{}{}:
		return nil
	default:
	}
	if err := memory.spare(); err != nil {
		return err
	}
	late := time.NewTimer(LongestRequest)
	defer late.Stop()
	select {
	case i.reading <- struct{}{}:
		return nil
	case <-late.C:
		return service.QuotaExceeded(policy.IncompleteRequests.String(), cap(i.reading), identity, 0)
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

// A Reception reads requests for their callers: uncompressed ones, so many at a time, each within a time.
type Reception struct {
	Limits   *caller.Limits
	Memory   Memory
	Large    *semaphore.Weighted                                 // see NewLarge
	May      func(from caller.Caller, method string) error       // whether a caller may make any call of a method
	Complete time.Duration                                       // what a request has to come
	Told     func(ctx context.Context, err error) *status.Status // what the caller is told of an error that no interceptor meets
}

// read reads the first request of a call.
func (r Reception) read(ctx context.Context, method string, request any, decode func(any) error) error {
	read := func() error {
		message, is := request.(proto.Message)
		if !is {
			return decode(request)
		}
		return r.decode(ctx, message, decode, FieldsOf(message.ProtoReflect().Descriptor()))
	}
	raw, ok := grpc.ServerTransportStreamFromContext(ctx).(rawStream)
	if !ok {
		return read()
	}
	if encoding := raw.RecvCompress(); encoding != "" && encoding != "identity" {
		return errCompressed
	}
	from := caller.Of(ctx)
	quota := SlotOf(from).quota
	if quota == nil {
		return read()
	}
	intake := quota.intakeFor(method, r.Limits.Of(from.Identity, policy.IncompleteRequests))
	if err := intake.enter(ctx, from.Identity, r.Memory); err != nil {
		return r.Told(ctx, err).Err()
	}
	defer intake.leave()
	late := time.AfterFunc(r.Complete, func() { _ = raw.WriteStatus(r.Told(ctx, tooSlow(r.Complete, from))) }) // fails for who has gone
	if err := read(); late.Stop() {
		return err
	}
	return errTooSlow
}

// decode has a request decoded that has no more fields than that.
func (r Reception) decode(ctx context.Context, message proto.Message, decode func(any) error, most int) error {
	into := countedRequests.Get().(*counted)
	_, multiplexed := message.(*leasev1.MultiplexRequest)
	*into = counted{Message: message, ctx: ctx, all: r.Large, most: most, further: multiplexed && most == MostFields}
	err, refused := decode(into), into.refused
	*into = counted{}
	countedRequests.Put(into)
	switch {
	case refused == nil:
		return err
	case errors.Is(refused, errFields):
		return r.Told(ctx, service.QuotaExceeded(RequestFields, most, caller.Of(ctx).Identity, 0)).Err()
	}
	return refused
}

// readOn reads a further request of a stream. So many streams of one caller may be open for one at a time.
func (r Reception) readOn(ctx context.Context, request any, decode func(any) error) error {
	from := caller.Of(ctx)
	quota := SlotOf(from).quota
	message, is := request.(proto.Message)
	switch {
	case !is:
		return decode(request)
	case quota == nil:
		return r.decode(ctx, message, decode, MostFields)
	}
	if most := r.Limits.Of(from.Identity, policy.IncompleteRequests); quota.talks.Add(1) > int64(most) {
		quota.talks.Add(-1)
		return service.QuotaExceeded(policy.IncompleteRequests.String(), most, from.Identity, 0)
	}
	defer quota.talks.Add(-1)
	return r.decode(ctx, message, decode, MostFields)
}

// RequestSeconds is the limit that no policy sets.
const RequestSeconds = "request_seconds"

func tooSlow(most time.Duration, from caller.Caller) error {
	return service.QuotaExceeded(RequestSeconds, int(most/time.Second), from.Identity, 0)
}

// errTooSlow ends a call whose caller has its status already.
//
//nolint:forbidigo // nobody is told of it
var errTooSlow = status.Error(codes.ResourceExhausted, "the request did not come in time")

// Registrar has the requests of the services that register with it read by the reception.
func (r Reception) Registrar(registrar grpc.ServiceRegistrar) grpc.ServiceRegistrar {
	return receptionist{registrar, r}
}

type receptionist struct {
	grpc.ServiceRegistrar

	reception Reception
}

// RegisterService implements grpc.ServiceRegistrar. Streams are read by the interceptor.
func (r receptionist) RegisterService(description *grpc.ServiceDesc, handlers any) {
	watched := *description
	watched.Methods = nil
	for _, method := range description.Methods {
		answer, name := method.Handler, "/"+description.ServiceName+"/"+method.MethodName
		method.Handler = func(server any, ctx context.Context, decode func(any) error, through grpc.UnaryServerInterceptor) (any, error) {
			if err := r.reception.May(caller.Of(ctx), name); err != nil { // nothing of the request is read
				refuse := func(context.Context, any) (any, error) { return nil, err }
				return through(ctx, nil, &grpc.UnaryServerInfo{Server: server, FullMethod: name}, refuse)
			}
			return answer(server, ctx, func(request any) error {
				return r.reception.read(ctx, name, request, decode)
			}, through)
		}
		watched.Methods = append(watched.Methods, method)
	}
	r.ServiceRegistrar.RegisterService(&watched, handlers)
}

// Stream is an interceptor.
func (r Reception) Stream(server any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	return handler(server, &receivedStream{ServerStream: stream, reception: r, method: info.FullMethod})
}

// A receivedStream has its first request read by a Reception. Further ones, which only callers of streams in both directions send, have
// any time and take no place of the others.
type receivedStream struct {
	grpc.ServerStream

	reception Reception
	method    string
	begun     bool
}

// RecvMsg implements grpc.ServerStream.
func (s *receivedStream) RecvMsg(request any) error {
	if !s.begun {
		s.begun = true
		return s.reception.read(s.Context(), s.method, request, s.ServerStream.RecvMsg)
	}
	if s.method == leasev1.LeaseService_Multiplex_FullMethodName {
		return s.reception.decode(s.Context(), request.(proto.Message), s.ServerStream.RecvMsg, MostFields) // there are no more of these than leases
	}
	return s.reception.readOn(s.Context(), request, s.ServerStream.RecvMsg)
}
