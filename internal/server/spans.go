package server

import (
	"context"

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

// tracedAs is what a line of the log says of the trace that its call belongs to.
func tracedAs(ctx context.Context) zap.Field {
	if of := trace.SpanContextFromContext(ctx); of.IsSampled() {
		return zap.Stringer("trace_id", of.TraceID())
	}
	return zap.Skip()
}
