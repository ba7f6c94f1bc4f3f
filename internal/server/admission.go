package server

import (
	"context"
	"runtime/debug"
	"time"

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

// The admissions decide who may make a call, how many at once, and how many in a second; and tell the caller, the log, the audit and the metrics
// how it has ended.
type admissions struct {
	mostStreams int // of one connection
	authorizer  authorizer
	denials     denials
	metrics     *Metrics
	log         callLog
}

// The kinds of calls, as metrics name them.
const (
	unaryCall    = "unary"
	serverStream = "server_stream"
	bidiStream   = "bidi_stream"
)

func kindOf(info *grpc.StreamServerInfo) string {
	if info.IsClientStream {
		return bidiStream
	}
	return serverStream
}

// An admission is one call, from its beginning until its end.
type admission struct {
	*admissions
	*callCounts

	ctx    context.Context //nolint:containedctx // of the call
	from   caller.Caller
	slot   *budget.Slot
	method string
	kind   string
	began  time.Time

	request    any                // of a unary call
	permission *caller.Permission // of a stream, which a later policy withdraws
	entered    bool               // whether it counts as a stream
	judged     bool               // whether a request has come
	passed     bool               // whether one was let in
	last       attempt            // what its newest request asked for

	inner  bool       // whether it came inside of another one's stream: it has a session already
	span   trace.Span // its own, then; nil for others, whose span is begun before
	goesOn bool       // whether an earlier process has let it in: it costs nothing again
}

// open begins a call that nothing is known of yet but its method.
func (a *admissions) open(ctx context.Context, method, kind string) *admission {
	from, counts := caller.Of(ctx), a.metrics.callsOf(method, kind)
	counts.started.Inc()
	return &admission{
		admissions: a, ctx: ctx, from: from, slot: budget.SlotOf(from), method: method, kind: kind, began: time.Now(), callCounts: counts,
	}
}

// Begin implements caller.Admitter.
func (a *admissions) Begin(ctx context.Context, method string, request any, goesOn bool) (caller.Admission, error) {
	ctx, permission := caller.Within(ctx)
	ctx, span := innerSpan(ctx, method)
	call := a.open(ctx, method, serverStream)
	call.inner, call.goesOn, call.span, call.permission = true, goesOn, span, permission
	err := call.enter()
	if err == nil {
		err = call.judge(request)
	}
	if err != nil {
		return nil, call.End(err)
	}
	return call, nil
}

// enter lets a stream in, unless its caller may make no call of its kind or there are too many. Nothing of its request is read before.
func (c *admission) enter() (err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			err = recovered(panicked)
		}
	}()
	if err := c.authorizer.mayAsk(c.from, c.method); err != nil {
		return err
	}
	if err := c.slot.BeginStream(c.mostStreams); err != nil {
		return err
	}
	c.entered = true
	if !c.inner {
		c.permission = new(caller.Permission)
		c.ctx = caller.WithPermission(c.ctx, c.permission)
	}
	if c.kind == bidiStream {
		c.ctx = caller.WithAdmitter(c.ctx, c.admissions)
	}
	return nil
}

// judge lets a request in. A stream is among those that a new policy judges before it is judged itself, so that none passes between two
// policies.
func (c *admission) judge(request any) (err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			err = recovered(panicked)
		}
	}()
	c.judged = true
	c.received.Inc()
	tellNames(c.ctx, c.method, request)
	asked := questionOf(c.from, c.method, request)
	c.last = attemptOf(c.method, request, asked.names)
	if c.kind != unaryCall && c.authorizer.policy != nil {
		c.authorizer.open.enter(c, asked)
	}
	if err := c.authorizer.judge(asked); err != nil {
		return err
	}
	takes := costOf(c.method, request)
	switch {
	case c.goesOn:
		takes = budget.Cost{}
	case c.inner:
		takes[0] = 0
	}
	if err := c.slot.Spend(takes); err != nil {
		return err
	}
	c.passed = true
	if c.kind == unaryCall && c.authorizer.operates(asked) {
		c.ctx = caller.Operating(c.ctx)
	}
	return nil
}

// recovered is the error of a panic, which ends one call.
func recovered(panicked any) error {
	return &recovery.PanicError{Panic: panicked, Stack: debug.Stack()}
}

// Context implements caller.Admission.
func (c *admission) Context() context.Context { return c.ctx }

// End implements caller.Admission.
func (c *admission) End(err error) error {
	if c.entered {
		if c.authorizer.policy != nil {
			c.authorizer.open.leave(c)
		}
		c.slot.EndStream()
	}
	if c.entered || c.passed {
		c.slot.Withdrawn(c.ctx)
	}
	if !c.judged {
		c.last = attemptOf(c.method, nil, nil)
	}
	c.denials.answered(c.from, c.last, err)
	err = c.answer(err)
	code := status.Code(err)
	c.hasEnded(code)
	if c.times != nil {
		c.times.observe(code, time.Since(c.began))
	}
	c.log.finished(c.ctx, c.method, c.began, err)
	if c.span != nil {
		c.span.End()
	}
	return err
}

// answer makes what a handler returned into a status, with its reason beside it, and counts it.
func (c *admission) answer(err error) error {
	if err == nil {
		return nil
	}
	if c.kind == unaryCall {
		err = service.Naming(err, methods.Of(c.method).NamesIn(c.request))
	}
	answer, reason := service.StatusOf(err)
	if answer.Code() == codes.ResourceExhausted {
		c.slot.TurnedAway()
	}
	if reason != "" {
		if !c.inner {
			_ = grpc.SetTrailer(c.ctx, metadata.Pairs(reasonTrailer, reason)) // fails only for a call that has ended
		}
		trace.SpanFromContext(c.ctx).SetAttributes(attribute.String(reasonAttribute, reason))
		c.metrics.refused(answer, reason)
	}
	return &answered{answer, reason, err}
}
