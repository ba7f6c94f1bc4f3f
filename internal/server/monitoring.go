package server

import (
	"context"
	"io"
	"net/http"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/sidekeeper/sidekeeper/internal/httpconns"
)

// contents says what this listener has.
const contents = `Sidekeeper's metrics and health. The API is at another listener.

/metrics   metrics, in the format of Prometheus or, to those who ask for it, of OpenMetrics
/healthz   200 while the process runs
/readyz    200 while the ensemble answers, else 503

Over gRPC without TLS: grpc.health.v1.Health/Check
`

// monitoring serves what scrapers and probes ask for: over HTTP/1.1 /metrics, /healthz (the process, also while it drains, or its drain would
// be cut short) and /readyz, and over gRPC without TLS the health of both.
func monitoring(metrics *Metrics, server *health.Server) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, contents) })
	mux.Handle("GET /metrics", metrics.Handler())
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { answerProbe(w, true) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		answer, err := server.Check(r.Context(), &healthpb.HealthCheckRequest{Service: readiness})
		answerProbe(w, err == nil && answer.GetStatus() == healthpb.HealthCheckResponse_SERVING)
	})
	return withProbes(mux, server)
}

func answerProbe(w http.ResponseWriter, good bool) {
	if !good {
		http.Error(w, "not ready", http.StatusServiceUnavailable)
		return
	}
	_, _ = w.Write([]byte("ok\n")) // who asked has gone if this fails
}

// withProbes answers HTTP/2 too, on which there is nothing but probes over gRPC. A probe must come at once, and its connection ends when another
// needs its place.
func withProbes(handler http.Handler, server *health.Server) http.Handler {
	overGRPC := grpc.NewServer(grpc.MaxRecvMsgSize(longestProbe))
	healthpb.RegisterHealthServer(overGRPC, probes{health: server})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.ProtoMajor == 1:
			handler.ServeHTTP(w, r)
		case strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc"):
			httpconns.GivesWay(r)
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(probeTime))
			overGRPC.ServeHTTP(w, r)
		default:
			http.Error(w, "use HTTP/1.1", http.StatusHTTPVersionNotSupported)
		}
	})
}

// alsoProbes has a server take connections of HTTP/2 without TLS, and little on each.
func alsoProbes(server *http.Server) {
	server.Protocols.SetUnencryptedHTTP2(true)
	server.HTTP2 = &http.HTTP2Config{
		MaxConcurrentStreams: mostProbes, MaxReceiveBufferPerStream: windowHTTP, MaxReceiveBufferPerConnection: mostProbes * windowHTTP,
	}
}

// probes answers Check as /healthz and /readyz do, and no other method of the health service.
type probes struct {
	healthpb.UnimplementedHealthServer

	health *health.Server
}

// Check implements healthpb.HealthServer. The process is healthy while it drains.
func (p probes) Check(ctx context.Context, request *healthpb.HealthCheckRequest) (*healthpb.HealthCheckResponse, error) {
	if request.GetService() == "" {
		return &healthpb.HealthCheckResponse{Status: healthpb.HealthCheckResponse_SERVING}, nil
	}
	return p.health.Check(ctx, request)
}
