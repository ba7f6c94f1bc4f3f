package server

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/recovery"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/sidekeeper/sidekeeper/internal/budget"
	"github.com/sidekeeper/sidekeeper/internal/caller"
	"github.com/sidekeeper/sidekeeper/internal/methods"
	"github.com/sidekeeper/sidekeeper/service"
)

// reasonTrailer carries an error's reason to clients without the library of rich errors.
const reasonTrailer = "sidekeeper-reason"

// interceptorsOf are what every call goes through, outermost first: metrics, log, errors, status, recovery, reception of
// what is streamed, admission, memory.
func interceptorsOf(options Options, authorizer authorizer, of *budget.Budget) []grpc.ServerOption {
	log, counted := callLog{options.Log}, errorCount{options.Metrics}
	memory := of.Answers()
	admission := &admission{options.MaxStreams, authorizer, denials{options.Audit}}
	passage := passage{
		options.Metrics.calls.StreamServerInterceptor(),
		log.stream,
		counted.stream,
		answerStream,
		recovery.StreamServerInterceptor(),
		admission.stream,
		memory.Stream,
	}
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(
			options.Metrics.calls.UnaryServerInterceptor(),
			log.unary,
			counted.unary,
			answerUnary,
			recovery.UnaryServerInterceptor(),
			admission.unary,
			memory.Unary,
		),
		grpc.ChainStreamInterceptor(
			options.Metrics.calls.StreamServerInterceptor(),
			log.stream,
			counted.stream,
			answerStream,
			recovery.StreamServerInterceptor(),
			of.Stream,
			admission.stream,
			memory.Stream,
			passage.open,
		),
	}
}

// A passage is what the calls go through that come inside of a lease's stream: what those with streams of their own do, but for the reception
// of what is streamed, which the stream that they come in has been through.
type passage []grpc.StreamServerInterceptor

// open has the calls inside of a stream go through the passage.
func (p passage) open(server any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	if info.IsClientStream {
		stream = &passableStream{stream, p}
	}
	return handler(server, stream)
}

func (p passage) through(method string, stream grpc.ServerStream, handle grpc.StreamHandler) error {
	info := &grpc.StreamServerInfo{FullMethod: method, IsServerStream: true}
	for _, interceptor := range slices.Backward(p) {
		inner := handle
		handle = func(server any, stream grpc.ServerStream) error { return interceptor(server, stream, info, inner) }
	}
	tracer := trace.SpanFromContext(stream.Context()).TracerProvider().Tracer("github.com/sidekeeper/sidekeeper/internal/server")
	ctx, span := tracer.Start(stream.Context(), strings.TrimPrefix(method, "/"))
	defer span.End()
	return handle(nil, &passingStream{stream, ctx})
}

// A passableStream is one that calls may come inside of.
type passableStream struct {
	grpc.ServerStream

	passage passage
}

// Context implements grpc.ServerStream.
func (s *passableStream) Context() context.Context {
	return caller.WithPassage(s.ServerStream.Context(), s.passage.through)
}

// A passingStream is one of a call inside of another one's stream, with its span.
type passingStream struct {
	grpc.ServerStream

	ctx context.Context //nolint:containedctx // what it is there for
}

// Context implements grpc.ServerStream.
func (s *passingStream) Context() context.Context { return s.ctx }

// admission decides who may make a call, how many at once, and how many in a second.
type admission struct {
	mostStreams int // of one connection
	authorizer  authorizer
	denials     denials
}

func (a *admission) unary(
	ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler,
) (reply any, err error) {
	from := caller.Of(ctx)
	tellNames(ctx, info.FullMethod, request)
	defer func() { a.denials.answered(from, func() attempt { return attemptOf(info.FullMethod, request) }, err) }()
	asked := questionOf(from, info.FullMethod, request)
	if err := a.authorizer.judge(asked); err != nil {
		return nil, err
	}
	slot := budget.SlotOf(from)
	if err := slot.Spend(costOf(info.FullMethod, request)); err != nil {
		return nil, err
	}
	defer slot.Withdrawn(ctx)
	if a.authorizer.operates(asked) {
		ctx = caller.Operating(ctx)
	}
	return handler(ctx, request)
}

// stream keeps no more on its stack than it must while the stream is open, and so do RecvMsg and whatever else a stream's goroutine waits in:
// a stack is of 8 KiB or of 16.
func (a *admission) stream(server any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	if err := a.authorizer.mayAsk(caller.Of(stream.Context()), info.FullMethod); err != nil { // nothing of the request is read
		a.denials.answered(caller.Of(stream.Context()), func() attempt { return attemptOf(info.FullMethod, nil) }, err)
		return err
	}
	authorized, err := a.enter(stream, info.FullMethod)
	if err != nil {
		return err
	}
	defer a.leave(authorized)
	err = handler(server, authorized)
	a.denials.answered(caller.Of(stream.Context()), func() attempt { return authorized.last }, err)
	return err
}

// enter lets a stream in, unless there are too many. One that was let in must leave.
func (a *admission) enter(stream grpc.ServerStream, method string) (*authorizedStream, error) {
	from := caller.Of(stream.Context())
	slot := budget.SlotOf(from)
	if err := slot.BeginStream(a.mostStreams); err != nil {
		return nil, err
	}
	return &authorizedStream{
		ServerStream: stream, slot: slot, authorizer: a.authorizer, method: method, permission: caller.NewPermission(),
	}, nil
}

func (a *admission) leave(authorized *authorizedStream) {
	if a.authorizer.policy != nil {
		a.authorizer.open.leave(authorized)
	}
	authorized.slot.Withdrawn(authorized.ServerStream.Context())
	authorized.slot.EndStream()
}

// An answered error is what the caller is told, with its cause for the log.
type answered struct {
	status *status.Status
	reason string
	cause  error
}

func (a *answered) Error() string              { return a.cause.Error() }
func (a *answered) Unwrap() error              { return a.cause }
func (a *answered) GRPCStatus() *status.Status { return a.status }

// answerWith makes what a handler returned into a status, and gives its reason to setTrailer.
func answerWith(err error, setTrailer func(metadata.MD)) error {
	if err == nil {
		return nil
	}
	answer, reason := service.StatusOf(err)
	if reason != "" {
		setTrailer(metadata.Pairs(reasonTrailer, reason))
	}
	return &answered{answer, reason, err}
}

// tellEarly is what a caller is told of an error that the interceptors do not meet, as they would tell it.
func (m *Metrics) tellEarly(ctx context.Context, err error) *status.Status {
	answer, reason := service.StatusOf(err)
	if reason != "" {
		_ = grpc.SetTrailer(ctx, metadata.Pairs(reasonTrailer, reason)) // fails only for a call that has ended
		m.refused(answer, reason)
	}
	return answer
}

func answerUnary(ctx context.Context, request any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	reply, err := handler(ctx, request)
	return reply, answerWith(service.Naming(err, methods.Of(info.FullMethod).NamesIn(request)), func(trailer metadata.MD) {
		_ = grpc.SetTrailer(ctx, trailer) // fails only for a call that has ended
	})
}

func answerStream(server any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	return answerWith(handler(server, stream), stream.SetTrailer)
}

// An errorCount counts what callers are told, by its reason.
type errorCount struct{ metrics *Metrics }

func (e errorCount) unary(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	reply, err := handler(ctx, request)
	e.count(ctx, err)
	return reply, err
}

func (e errorCount) stream(server any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	err := handler(server, stream)
	e.count(stream.Context(), err)
	return err
}

func (e errorCount) count(ctx context.Context, err error) {
	told, ok := errors.AsType[*answered](err)
	if !ok {
		return
	}
	if told.status.Code() == codes.ResourceExhausted {
		budget.SlotOf(caller.Of(ctx)).TurnedAway()
	}
	if told.reason != "" {
		trace.SpanFromContext(ctx).SetAttributes(attribute.String(reasonAttribute, told.reason))
		e.metrics.refused(told.status, told.reason)
	}
}
