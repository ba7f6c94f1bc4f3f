package service

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// Where a call is traced, its context holds its span. Otherwise all here does nothing.

const tokenAttribute = "sidekeeper.fencing_token" //nolint:gosec // no credential

// tracerOf makes spans for parts of a traced call. They are told as soon as they are over, and the call may last for long.
func tracerOf(ctx context.Context) trace.Tracer {
	return trace.SpanFromContext(ctx).TracerProvider().Tracer("github.com/sidekeeper/sidekeeper/service")
}

// tellGrant notes in the span of a call that it was granted the lock.
func tellGrant(ctx context.Context, token int64) {
	if span := trace.SpanFromContext(ctx); span.IsRecording() {
		span.AddEvent("granted", trace.WithAttributes(attribute.Int64(tokenAttribute, token)))
	}
}
