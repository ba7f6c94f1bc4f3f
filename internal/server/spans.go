package server

import (
	"context"
	"strings"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"

	"github.com/sidekeeper/sidekeeper/internal/methods"
)

// Where a call is traced, its context holds its span. Otherwise all here does nothing.

const (
	namesAttribute  = "sidekeeper.names"
	reasonAttribute = "sidekeeper.reason" // of an error, as in errors.proto

	mostNames = 10 // of which a span tells
)

// tellNames has the span of a call say what the call is about.
func tellNames(ctx context.Context, method string, request any) {
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return
	}
	if about := methods.Of(method).NamesIn(request); about != nil {
		span.SetAttributes(attribute.StringSlice(namesAttribute, about[:min(len(about), mostNames)]))
	}
}

// innerSpan begins a span of its own for a call that comes inside of another one's stream; nil where that is not traced.
func innerSpan(ctx context.Context, method string) (context.Context, trace.Span) {
	of := trace.SpanFromContext(ctx)
	if !of.SpanContext().IsValid() {
		return ctx, nil
	}
	tracer := of.TracerProvider().Tracer("github.com/sidekeeper/sidekeeper/internal/server")
	return tracer.Start(ctx, strings.TrimPrefix(method, "/")) //nolint:spancheck // End ends it
}

// tracedAs is what a line of the log says of the trace that its call belongs to.
func tracedAs(ctx context.Context) zap.Field {
	if of := trace.SpanContextFromContext(ctx); of.IsSampled() {
		return zap.Stringer("trace_id", of.TraceID())
	}
	return zap.Skip()
}
