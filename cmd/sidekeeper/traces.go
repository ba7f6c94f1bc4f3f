package main

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"
	"google.golang.org/grpc/stats"

	"github.com/sidekeeper/sidekeeper/internal/server"
	"github.com/sidekeeper/sidekeeper/internal/tracing"
	"github.com/sidekeeper/sidekeeper/internal/zookeeper"
)

// traces are on their way to a collector, or nowhere if there is none.
type traces struct {
	sent *tracing.Traces // nil for nowhere
	log  *zap.Logger
}

// traceFlushTimeout is how long the end of the sidecar waits for a collector.
const traceFlushTimeout = 2 * time.Second

func (s *settings) startTraces(ctx context.Context, log *zap.Logger) (traces, error) {
	if s.otlpEndpoint == "" {
		return traces{}, nil
	}
	sent, err := tracing.Start(ctx, tracing.Options{
		Endpoint: s.otlpEndpoint, Ratio: s.traceRatio, Version: server.ThisBuild().Version, Log: log,
	})
	if err != nil {
		return traces{}, fmt.Errorf("--otlp-endpoint: %w", err)
	}
	return traces{sent, log}, nil
}

// close sends what is left, if the collector answers.
func (t traces) close() {
	if t.sent == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), traceFlushTimeout)
	defer cancel()
	if err := t.sent.Close(ctx); err != nil {
		t.log.Warn("the last traces were not sent", zap.Error(err))
	}
}

// ofCalls makes spans of callers' calls.
func (t traces) ofCalls() stats.Handler {
	if t.sent == nil {
		return nil
	}
	return t.sent.Handler()
}

// observer tells metrics and traces of requests to the ensemble.
func (t traces) observer(metrics *server.Metrics) zookeeper.Observer {
	if t.sent == nil {
		return metrics.RequestDone
	}
	return func(ctx context.Context, operation string, took time.Duration, lost bool) {
		metrics.RequestDone(ctx, operation, took, lost)
		t.sent.RequestDone(ctx, operation, took, lost)
	}
}
