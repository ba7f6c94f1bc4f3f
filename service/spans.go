package service

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// Where a call is traced, its context holds its span. Otherwise all here does nothing.

const tokenAttribute = "sidekeeper.fencing_token" //nolint:gosec // no credential

// beginSpan makes a span for a part of a traced call. It is told as soon as it is over, and the call may last for long.
func beginSpan(call, within context.Context, what string) (context.Context, trace.Span) {
	of := trace.SpanFromContext(call)
	if !of.SpanContext().IsValid() {
		return within, of // which tells nothing
	}
	tracer := of.TracerProvider().Tracer("github.com/sidekeeper/sidekeeper/service")
	return tracer.Start(within, what) //nolint:spancheck // the caller ends it
}

// tellGrant notes in the span of a call that it was granted the lock.
func tellGrant(ctx context.Context, token int64) {
	if span := trace.SpanFromContext(ctx); span.IsRecording() {
		span.AddEvent("granted", trace.WithAttributes(attribute.Int64(tokenAttribute, token)))
	}
}
