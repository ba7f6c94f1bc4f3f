// It looks inside: which bucket a call falls into shows in no answer, since its time cannot be chosen.

package server

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
)

func TestTheTimesOfCallsAreCountedByMethodAndOutcome(t *testing.T) {
	t.Parallel()
	metrics := NewMetrics()
	metrics.callsOf("/sidekeeper.lock.v1.LockService/Acquire", serverStream) // a stream has none
	metrics.callsOf("/sidekeeper.lock.v1.LockService/Release", unaryCall)    // and neither has a method that was not called
	get := metrics.callsOf("/sidekeeper.lock.v1.LockService/Get", unaryCall)
	for code, took := range map[codes.Code]time.Duration{
		codes.OK: time.Millisecond, codes.NotFound: 1100 * time.Microsecond, codes.Aborted: 5 * time.Second, codes.Internal: 6 * time.Second,
	} {
		get.times.observe(code, took)
	}
	of := func(outcome, le string) string {
		return `grpc_server_handling_seconds_bucket{grpc_method="Get",grpc_service="sidekeeper.lock.v1.LockService",grpc_type="unary",outcome="` +
			outcome + `",le="` + le + `"} `
	}
	shown := httptest.NewRecorder()
	metrics.Handler().ServeHTTP(shown, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	text := shown.Body.String()
	for _, want := range []string{
		of("ok", "0.001") + "1", of("ok", "+Inf") + "1",
		of("refused", "0.001") + "0", of("refused", "0.0025") + "1", of("refused", "1") + "1", of("refused", "5") + "2",
		of("failed", "5") + "0", of("failed", "+Inf") + "1",
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
	if got, want := strings.Count(text, "grpc_server_handling_seconds_count{"), len(outcomeNames); got != want {
		t.Errorf("%d histograms, want %d, of the one method that was called", got, want)
	}
	if !strings.Contains(text, `outcome="refused"} 5.0011`+"\n") {
		t.Errorf("the sum of those that were refused is wrong:\n%s", text)
	}
}

// BenchmarkHandlingTime is what a call pays for its time being counted, the look at the clock included.
func BenchmarkHandlingTime(b *testing.B) {
	of, began := new(handling), time.Now()
	b.ReportAllocs()
	for b.Loop() {
		of.observe(codes.OK, time.Since(began))
	}
}
