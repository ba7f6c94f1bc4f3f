// Package tracing sends traces to an OpenTelemetry collector: a span for each call of a caller, and below it one for each request
// that the sidecar makes to the ensemble for it. A call belongs to the trace that its caller's metadata name (W3C Trace Context).
// Nothing of a request or an answer but names and fencing tokens stands in a span, since ids of leases and holds are secrets.
package tracing

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.37.0"
	api "go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"
	"google.golang.org/grpc/stats"
)

// Options say where traces go.
type Options struct {
	Endpoint string  // of the collector, which speaks OTLP over gRPC; with TLS if it is https. See EndpointRule
	Ratio    float64 // of the calls that begin a trace, those that are traced: 0 to 1. A caller that begins one decides itself
	Version  string  // of the sidecar
	Log      *zap.Logger
}

// Traces are on their way to a collector. What it does not take in some seconds, or would be more than some thousand spans, is dropped.
type Traces struct {
	provider *trace.TracerProvider
	tracer   api.Tracer
}

// Start begins to send. A collector that does not answer is no error: it is told to the log. The service is called `sidekeeper`; that, its
// other attributes, and headers, certificates and limits of the connection are changed by OpenTelemetry's own environment variables.
// Close what it returns.
func Start(ctx context.Context, options Options) (*Traces, error) {
	exporter, err := otlptracegrpc.New(ctx, otlptracegrpc.WithEndpointURL(options.Endpoint))
	if err != nil {
		return nil, err
	}
	about, err := resource.New(ctx,
		resource.WithAttributes(semconv.ServiceName("sidekeeper"), semconv.ServiceVersion(options.Version)),
		resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil {
		return nil, errors.Join(err, exporter.Shutdown(ctx))
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { options.Log.Warn("traces not sent", zap.Error(err)) }))
	provider := trace.NewTracerProvider(
		trace.WithBatcher(exporter),
		trace.WithResource(about),
		trace.WithSampler(trace.ParentBased(rarely{trace.TraceIDRatioBased(options.Ratio)})))
	return &Traces{provider, provider.Tracer("github.com/sidekeeper/sidekeeper/internal/tracing")}, nil
}

// EndpointRule is what an endpoint must be.
const EndpointRule = "http://host:port or https://host:port, and nothing else"

// IsEndpoint says whether the text is one.
func IsEndpoint(text string) bool {
	parsed, err := url.Parse(text)
	return err == nil && (parsed.Scheme == "http" || parsed.Scheme == "https") && parsed.Hostname() != "" && parsed.Port() != "" &&
		*parsed == url.URL{Scheme: parsed.Scheme, Host: parsed.Host}
}

// Handler makes the spans of calls. Those about the sidecar's health, and about its description, have none.
func (t *Traces) Handler() stats.Handler {
	return otelgrpc.NewServerHandler(
		otelgrpc.WithTracerProvider(t.provider),
		otelgrpc.WithPropagators(propagation.TraceContext{}),
		otelgrpc.WithFilter(func(call *stats.RPCTagInfo) bool { return strings.HasPrefix(call.FullMethodName, "/sidekeeper.") }))
}

// RequestDone makes the span of a request to the ensemble that was answered just now, or whose answer was lost, if the call that asked
// for it is traced.
func (t *Traces) RequestDone(ctx context.Context, operation string, took time.Duration, lost bool) {
	if !api.SpanContextFromContext(ctx).IsSampled() {
		return
	}
	_, span := t.tracer.Start(ctx, "zookeeper "+operation,
		api.WithSpanKind(api.SpanKindClient), api.WithTimestamp(time.Now().Add(-took)),
		api.WithAttributes(semconv.DBSystemNameKey.String("zookeeper"), semconv.DBOperationName(operation)))
	if lost {
		span.SetStatus(codes.Error, "the answer was lost")
	}
	span.End()
}

// Close sends what is left, until ctx ends.
func (t *Traces) Close(ctx context.Context) error { return t.provider.Shutdown(ctx) }

// rarely begins no trace with a call that clients make every few seconds to count their locks' validity.
type rarely struct{ trace.Sampler }

// ShouldSample implements trace.Sampler.
func (r rarely) ShouldSample(about trace.SamplingParameters) trace.SamplingResult {
	if strings.HasSuffix(about.Name, "/Check") {
		return trace.SamplingResult{Decision: trace.Drop}
	}
	return r.Sampler.ShouldSample(about)
}
