package main

import (
	"context"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"

	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/encoding/prototext"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	"github.com/sidekeeper/sidekeeper/internal/exit"
)

// A collector takes traces as OpenTelemetry's does.
type collector struct {
	collectorpb.UnimplementedTraceServiceServer

	endpoint string

	mu   sync.Mutex
	got  []*collectorpb.ExportTraceServiceRequest
	news chan struct{} // has room for one
}

func newCollector(t testing.TB) *collector {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &collector{endpoint: "http://" + listener.Addr().String(), news: make(chan struct{}, 1)}
	server := grpc.NewServer()
	collectorpb.RegisterTraceServiceServer(server, c)
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) })
	t.Cleanup(func() {
		server.Stop()
		serving.Wait()
	})
	return c
}

// Export implements the collector's service.
func (c *collector) Export(_ context.Context, request *collectorpb.ExportTraceServiceRequest) (*collectorpb.ExportTraceServiceResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.got = append(c.got, request)
	select {
	case c.news <- struct{}{}:
	default:
	}
	return &collectorpb.ExportTraceServiceResponse{}, nil
}

// spans are those that have come, by their ids.
func (c *collector) spans() map[string]*tracepb.Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	spans := map[string]*tracepb.Span{}
	for _, request := range c.got {
		for _, resource := range request.GetResourceSpans() {
			for _, scope := range resource.GetScopeSpans() {
				for _, span := range scope.GetSpans() {
					spans[string(span.GetSpanId())] = span
				}
			}
		}
	}
	return spans
}

func (c *collector) text() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var text strings.Builder
	for _, request := range c.got {
		text.WriteString(prototext.Format(request))
	}
	return strings.ReplaceAll(text.String(), " ", "") // of which there are more or less at random
}

// paths are the spans of one trace, each with the names of those above it.
func (c *collector) paths(trace string) map[string]*tracepb.Span {
	spans, paths := c.spans(), map[string]*tracepb.Span{}
	for _, span := range spans {
		if hex.EncodeToString(span.GetTraceId()) != trace {
			continue
		}
		path := span.GetName()
		for above := spans[string(span.GetParentSpanId())]; above != nil; above = spans[string(above.GetParentSpanId())] {
			path = above.GetName() + " > " + path
		}
		paths[path] = span
	}
	return paths
}

// attributes of a span, as text.
func attributes(span *tracepb.Span) string {
	var text []string
	for _, attribute := range span.GetAttributes() {
		text = append(text, attribute.GetKey()+"="+prototext.MarshalOptions{}.Format(attribute.GetValue()))
	}
	return strings.ReplaceAll(strings.Join(text, ","), " ", "")
}

const (
	callersTrace = "0af7651916cd43dd8448eb211c80319c"
	callersSpan  = "b7ad6b7169203331"
)

func traced(ctx context.Context) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "traceparent", "00-"+callersTrace+"-"+callersSpan+"-01")
}

func TestATraceLeadsFromACallersSpanToEachRequestToTheEnsemble(t *testing.T) {
	t.Parallel()
	collector := newCollector(t)
	_, ensemble := memoryEnsemble(t)
	s := serve(t, "--zookeeper="+ensemble, "--otlp-endpoint="+collector.endpoint, "--log-level=debug")
	client, err := sidekeeper.Dial(s.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	ctx, cancel := context.WithTimeout(traced(t.Context()), patience)
	defer cancel()
	lock, err := client.Acquire(ctx, "orders", sidekeeper.LockOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.Config().Put(ctx, "shop/limit", []byte("250")); err != nil {
		t.Fatal(err)
	}
	_, refused := client.Config().Get(ctx, "shop/missing")
	if refused == nil {
		t.Fatal("a key that is missing is not")
	}
	if err := lock.Release(ctx); err != nil {
		t.Fatal(err)
	}
	s.signal(syscall.SIGTERM)
	if code := s.ends(); code != 0 {
		t.Fatalf("exit %d; log: %s", code, s.log)
	}
	const acquire, put = "sidekeeper.lock.v1.LockService/Acquire", "sidekeeper.config.v1.ConfigService/Put"
	paths := collector.paths(callersTrace)
	for path, about := range map[string]string{
		acquire:                                                  `sidekeeper.names=array_value:{values:{string_value:"orders"}}`,
		acquire + " > zookeeper createSession":                   `db.operation.name=string_value:"createSession"`,
		acquire + " > wait for the lock":                         "",
		acquire + " > wait for the lock > zookeeper create":      `db.system.name=string_value:"zookeeper"`,
		acquire + " > wait for the lock > zookeeper getChildren": "",
		acquire + " > zookeeper delete":                          "",
		put:                                                      `sidekeeper.names=array_value:{values:{string_value:"shop/limit"}}`,
		put + " > zookeeper multi":                               "",
		"sidekeeper.config.v1.ConfigService/Get":                 `sidekeeper.reason=string_value:"KEY_NOT_FOUND"`,
		"sidekeeper.lock.v1.LockService/Release":                 "",
	} {
		span := paths[path]
		if span == nil {
			t.Errorf("no span %s", path)
			continue
		}
		if text := attributes(span); !strings.Contains(text, about) {
			t.Errorf("%s is about %s, not %s", path, text, about)
		}
	}
	if t.Failed() {
		for path := range paths {
			t.Log("there is", path)
		}
	}
	if span := paths[acquire]; span != nil {
		if hex.EncodeToString(span.GetParentSpanId()) != callersSpan {
			t.Errorf("the parent is %x", span.GetParentSpanId())
		}
		if event := span.GetEvents(); len(event) == 0 || event[0].GetName() != "granted" {
			t.Errorf("events: %v", event)
		}
	}
	hidden := secrets{}
	hidden.add("the hold's id", lock.HoldID())
	for _, leak := range hidden.leaks(collector.text()) {
		t.Errorf("in the traces stands %s", leak)
	}
	if !strings.Contains(collector.text(), `string_value:"sidekeeper"`) {
		t.Error("the service has no name")
	}
	if !strings.Contains(s.log.String(), `"trace_id":"`+callersTrace+`"`) {
		t.Errorf("the log does not name the trace: %s", s.log)
	}
	for _, span := range collector.spans() {
		if name := span.GetName(); strings.HasSuffix(name, "/Check") && hex.EncodeToString(span.GetTraceId()) != callersTrace {
			t.Errorf("%s has begun a trace", name)
		}
	}
}

func TestCallsAreTracedInThePartThatIsAskedFor(t *testing.T) {
	t.Parallel()
	for ratio, want := range map[string]int{"0": 0, "1": 20} {
		collector := newCollector(t)
		_, ensemble := memoryEnsemble(t)
		s := serve(t, "--zookeeper="+ensemble, "--otlp-endpoint="+collector.endpoint, "--trace-ratio="+ratio)
		client, err := sidekeeper.Dial(s.address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { client.Close() })
		for range 20 {
			if _, err := client.Get(t.Context(), "orders"); err != nil {
				t.Fatal(err)
			}
		}
		s.signal(syscall.SIGTERM)
		if code := s.ends(); code != 0 {
			t.Fatalf("exit %d; log: %s", code, s.log)
		}
		got := 0
		for _, span := range collector.spans() {
			if strings.HasSuffix(span.GetName(), "LockService/Get") {
				got++
			}
		}
		if got != want {
			t.Errorf("ratio %s: %d calls of 20 are traced, not %d", ratio, got, want)
		}
	}
}

func TestACollectorThatIsAwayHoldsNothingUp(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0") // accepts, and never answers
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, ensemble := memoryEnsemble(t)
	s := serve(t, "--zookeeper="+ensemble, "--otlp-endpoint=http://"+listener.Addr().String())
	client, err := sidekeeper.Dial(s.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	lock, err := client.Acquire(t.Context(), "orders", sidekeeper.LockOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := lock.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.signal(os.Interrupt)
	if code := s.ends(); code != 0 || !strings.Contains(s.log.String(), "the last traces were not sent") {
		t.Errorf("exit %d; log: %s", code, s.log)
	}
}

func TestAnEndpointThatIsNoneIsRefused(t *testing.T) {
	t.Parallel()
	for _, endpoint := range []string{
		"collector:4317", "grpc://collector:4317", "http://collector", "http://user@collector:4317", "http://collector:4317/v1/traces",
	} {
		p := start(t, "", "serve", "--zookeeper=127.0.0.1:1", "--otlp-endpoint="+endpoint)
		want := fmt.Sprintf("--otlp-endpoint %s: http://host:port or https://host:port", endpoint)
		if code := receive(t, p.code); code != exit.Usage || !strings.Contains(p.stderr.String(), want) {
			t.Errorf("%s: exit %d, %s", endpoint, code, p.stderr)
		}
	}
}
