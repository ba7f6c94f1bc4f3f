package service

import (
	"context"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/logging"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// Where a call is traced, its context holds its span. Otherwise all here does nothing.

const (
	namesAttribute  = "sidekeeper.names"
	tokenAttribute  = "sidekeeper.fencing_token" //nolint:gosec // no credential
	reasonAttribute = "sidekeeper.reason"        // of an error, as in errors.proto

	mostNames = 10 // of which a span tells
)

// tellNames has the span of a call say what the call is about.
func tellNames(ctx context.Context, method string, request any) {
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return
	}
	if names := subjects[method].names; names != nil {
		about := names(request)
		span.SetAttributes(attribute.StringSlice(namesAttribute, about[:min(len(about), mostNames)]))
	}
}

// tracerOf makes spans for parts of a traced call. They are told as soon as they are over, and the call may last for long.
func tracerOf(ctx context.Context) trace.Tracer {
	return trace.SpanFromContext(ctx).TracerProvider().Tracer("github.com/sidekeeper/sidekeeper/service")
}

// tellGrant notes in the span of a call that it was granted the lock.
func tellGrant(ctx context.Context, token int64) {
	trace.SpanFromContext(ctx).AddEvent("granted", trace.WithAttributes(attribute.Int64(tokenAttribute, token)))
}

// tracedAs is what a line of the log says of the trace that its call belongs to.
func tracedAs(ctx context.Context) logging.Fields {
	if of := trace.SpanContextFromContext(ctx); of.IsSampled() {
		return logging.Fields{"trace_id", of.TraceID().String()}
	}
	return nil
}
