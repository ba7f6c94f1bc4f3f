package server_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"

	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	"github.com/sidekeeper/sidekeeper/internal/caller"
	"github.com/sidekeeper/sidekeeper/internal/server"
	"github.com/sidekeeper/sidekeeper/recipes"
)

func noLog() *zap.Logger { return zap.NewNop() }

func described(c caller.Caller) string { return fmt.Sprintf("%s operator %v", c.Identity, c.Operator) }

func TestErrorsOfTheTableReachTheCallerInThreeWays(t *testing.T) {
	t.Parallel()
	p := newProbe(t)
	p.get = func(context.Context) error { return fmt.Errorf("lock secret-path: %w", recipes.ErrSessionEnded) }
	p.acquire = func(grpc.ServerStreamingServer[lockv1.AcquireResponse]) error { return recipes.ErrKindMismatch }
	client := lockv1.NewLockServiceClient(p.dial(p.address()))

	var trailer metadata.MD
	_, err := client.Get(within(t), &lockv1.GetRequest{}, grpc.Trailer(&trailer))
	same(t, "answer", outcome(err), "Aborted LEASE_LOST")
	same(t, "trailer", trailer.Get("sidekeeper-reason"), "[LEASE_LOST]")
	same(t, "first word", strings.HasPrefix(status.Convert(err).Message(), "LEASE_LOST: "), true)
	same(t, "path told", strings.Contains(status.Convert(err).Message(), "secret-path"), false)

	stream, err := client.Acquire(within(t), &lockv1.AcquireRequest{})
	must(t, err)
	_, err = stream.Recv()
	same(t, "end", outcome(err), "FailedPrecondition LOCK_KIND_MISMATCH")
	same(t, "trailer", stream.Trailer().Get("sidekeeper-reason"), "[LOCK_KIND_MISMATCH]")
}

func TestEachCallIsOneLineInTheLogWithItsCauseAndWithoutItsIDs(t *testing.T) {
	t.Parallel()
	book := &logbook{}
	p := newProbe(t, func(o *server.Options) { o.Log = book.Logger() })
	p.get = func(context.Context) error { return fmt.Errorf("lock orders: %w", recipes.ErrSessionEnded) }
	_, err := lockv1.NewLockServiceClient(p.dial(p.address())).
		Get(metadata.AppendToOutgoingContext(within(t), "secret-header", "s3cr3t"), &lockv1.GetRequest{Name: "s3cr3t"})
	same(t, "answer", outcome(err), "Aborted LEASE_LOST")
	same(t, "a probe", probed(within(t), healthpb.NewHealthClient(p.dial(p.address())), ""), "SERVING")
	p.cancel()
	must(t, p.serve())

	var lines []string
	for line := range strings.Lines(book.Text()) {
		if strings.Contains(line, "finished call") && !strings.Contains(line, `"level":"debug"`) {
			lines = append(lines, line)
		}
	}
	same(t, "lines", len(lines), 1)
	for _, want := range []string{`"LEASE_LOST"`, `"Aborted"`, `lock orders`, `"caller":"uid:` + uid() + `"`, `"Get"`} {
		if !strings.Contains(lines[0], want) {
			t.Errorf("no %s in %s", want, lines[0])
		}
	}
	same(t, "secrets in the log", strings.Contains(book.Text(), "s3cr3t"), false)
}

func TestAPanicEndsItsCallAloneAndIsLogged(t *testing.T) {
	t.Parallel()
	book := &logbook{}
	p := newProbe(t, func(o *server.Options) { o.Log = book.Logger() })
	p.acquire = func(grpc.ServerStreamingServer[lockv1.AcquireResponse]) error { panic("what nobody thought of") }
	client := lockv1.NewLockServiceClient(p.dial(p.address()))
	stream, err := client.Acquire(within(t), &lockv1.AcquireRequest{})
	must(t, err)
	_, err = stream.Recv()
	same(t, "end", outcome(err), "Internal INTERNAL")
	same(t, "panic told", strings.Contains(err.Error(), "nobody thought of"), false)
	_, err = client.Get(within(t), &lockv1.GetRequest{})
	same(t, "next call", outcome(err), "OK")

	p.cancel()
	must(t, p.serve())
	for _, want := range []string{"what nobody thought of", "server_test.go"} {
		same(t, want+" in the log", strings.Contains(book.Text(), want), true)
	}
}

func TestBreakIsForOperators(t *testing.T) {
	t.Parallel()
	p := newProbe(t)
	for address, want := range map[string]string{p.address(): "PermissionDenied OPERATOR_ONLY", p.operators(): "OK"} {
		_, err := lockv1.NewLockServiceClient(p.dial(address)).Break(within(t), &lockv1.BreakRequest{})
		same(t, address, outcome(err), want)
	}
}

func TestLongLivedStreamsAreLimitedPerConnectionAndOtherCallsPass(t *testing.T) {
	t.Parallel()
	p := newProbe(t, func(o *server.Options) { o.MaxStreams = 3 })
	ended := make(chan caller.Caller, 5)
	p.acquire = func(stream grpc.ServerStreamingServer[lockv1.AcquireResponse]) error {
		if err := stream.Send(&lockv1.AcquireResponse{}); err != nil {
			return err
		}
		<-stream.Context().Done()
		caller.AfterStatus(stream.Context(), func() { ended <- caller.Of(stream.Context()) })
		return stream.Context().Err()
	}
	connection := p.dial(p.address())
	first, cancelFirst := context.WithCancel(within(t))
	p.begin(first, connection)
	p.begin(within(t), connection)
	p.begin(within(t), connection)

	stream, err := lockv1.NewLockServiceClient(connection).Acquire(within(t), &lockv1.AcquireRequest{})
	must(t, err)
	_, err = stream.Recv()
	same(t, "one too many", outcome(err), "ResourceExhausted STREAM_LIMIT")
	_, err = lockv1.NewLockServiceClient(connection).Get(within(t), &lockv1.GetRequest{})
	same(t, "another call", outcome(err), "OK")
	p.begin(within(t), p.dial(p.address())) // on another connection

	cancelFirst()
	receive(t, ended)
	p.begin(within(t), connection)
}

func TestOversizedRequestsAreRefused(t *testing.T) {
	t.Parallel()
	p := newProbe(t)
	client := lockv1.NewLockServiceClient(p.dial(p.address()))
	_, err := client.Get(within(t), &lockv1.GetRequest{Name: strings.Repeat("x", 1<<20)})
	same(t, "large message", status.Code(err), codes.ResourceExhausted)
	_, err = client.Get(metadata.AppendToOutgoingContext(within(t), "large", strings.Repeat("x", 32<<10)), &lockv1.GetRequest{})
	same(t, "large headers refused", err != nil, true)
}

func TestHealthTellsTheProcessFromTheEnsemble(t *testing.T) {
	t.Parallel()
	p := newProbe(t)
	client := healthpb.NewHealthClient(p.dial(p.address()))
	watch, err := client.Watch(within(t), &healthpb.HealthCheckRequest{Service: "sidekeeper.readiness"})
	must(t, err)
	for _, want := range []string{"SERVING", "NOT_SERVING", "SERVING"} {
		answer, err := watch.Recv()
		must(t, err)
		same(t, "readiness", answer.GetStatus(), want)
		process, err := client.Check(within(t), &healthpb.HealthCheckRequest{})
		must(t, err)
		same(t, "process", process.GetStatus(), "SERVING")
		p.setReachable(want == "NOT_SERVING")
	}
	answer, err := watch.Recv()
	must(t, err)
	same(t, "readiness", answer.GetStatus(), "NOT_SERVING")
	of, err := client.Check(within(t), &healthpb.HealthCheckRequest{Service: lockv1.LockService_ServiceDesc.ServiceName})
	must(t, err)
	same(t, "service", of.GetStatus(), "NOT_SERVING")
}

func TestStoppingSaysSoFirstAndDrainsBeforeItCloses(t *testing.T) {
	t.Parallel()
	p := newProbe(t, func(o *server.Options) { o.DrainTimeout, o.SilenceTimeout = 3*time.Second, 2*time.Second })
	client := healthpb.NewHealthClient(p.dial(p.address()))
	_, err := client.Check(within(t), &healthpb.HealthCheckRequest{})
	must(t, err)
	drained := make(chan string, 4)
	p.drain = func(ctx context.Context, timeout time.Duration) error {
		deadline, _ := ctx.Deadline()
		answer, err := client.Check(within(t), &healthpb.HealthCheckRequest{})
		drained <- fmt.Sprint(timeout, time.Until(deadline).Round(time.Second), answer.GetStatus(), err)
		return nil
	}
	p.cancel()
	must(t, p.serve())
	same(t, "health while draining, and how long it may take", receive(t, drained), "3s 5s NOT_SERVING <nil>")
	_, err = client.Check(within(t), &healthpb.HealthCheckRequest{})
	same(t, "afterwards", status.Code(err), codes.Unavailable)
	if _, err := os.Lstat(p.folder + "/callers"); !os.IsNotExist(err) {
		t.Errorf("the socket afterwards: %v", err)
	}
}

func TestStoppingCutsCallsThatDoNotEnd(t *testing.T) {
	t.Parallel()
	p := newProbe(t)
	ended := p.watchEnd()
	p.begin(within(t), p.dial(p.address()))
	p.cancel()
	must(t, p.serve())
	receive(t, ended)
}

func TestACallThatHangsDoesNotKeepTheSidecarFromStopping(t *testing.T) {
	t.Parallel()
	p := newProbe(t)
	p.hangs = true
	hang, began := make(chan struct{}), make(chan struct{})
	p.get = func(context.Context) error {
		close(began)
		<-hang
		return nil
	}
	answered := make(chan error, 1)
	go func() {
		_, err := lockv1.NewLockServiceClient(p.dial(p.address())).Get(within(t), &lockv1.GetRequest{})
		answered <- err
	}()
	receive(t, began)
	p.cancel()
	same(t, "stopped with", p.serve(), "a call does not end")
	same(t, "call", status.Code(receive(t, answered)), codes.Unavailable)
	close(hang)
}

func TestReflectionIsOffUnlessAskedFor(t *testing.T) {
	t.Parallel()
	for _, on := range []bool{false, true} {
		p := newProbe(t, func(o *server.Options) { o.Reflection = on })
		stream, err := reflectionpb.NewServerReflectionClient(p.dial(p.address())).ServerReflectionInfo(within(t))
		must(t, err)
		must(t, ignoreEOF(stream.Send(&reflectionpb.ServerReflectionRequest{
			MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{},
		})))
		_, err = stream.Recv()
		same(t, fmt.Sprintf("answered with reflection %v", on), err == nil, on)
		same(t, "code", status.Code(err) == codes.Unimplemented, !on)
	}
}

func ignoreEOF(err error) error {
	if err == io.EOF {
		return nil
	}
	return err
}

func TestScrapersSeeMetricsHealthAndReadinessAndProfilesAreElsewhere(t *testing.T) {
	t.Parallel()
	p := newProbe(t, func(o *server.Options) { o.MetricsListen, o.AdminListen = "127.0.0.1:0", "127.0.0.1:0" })
	p.metrics.WaitBegun("lock")
	p.metrics.WaitEnded("lock", "orders", true, time.Second)
	p.metrics.HoldBegun()
	p.metrics.HoldEnded("LEASE_LOST", time.Second)
	p.metrics.HeartbeatLate()
	p.metrics.EnsembleRestored()
	p.metrics.RequestDone(t.Context(), "create", time.Millisecond, false)
	_, err := lockv1.NewLockServiceClient(p.dial(p.address())).Get(within(t), &lockv1.GetRequest{})
	must(t, err)

	text := fetched(t, p.scraped()+"/metrics")
	for _, want := range []string{
		"sidekeeper_holds 0\n", `sidekeeper_waiters{kind="lock"} 0`, `sidekeeper_hold_losses_total{reason="LEASE_LOST"} 1`,
		"sidekeeper_heartbeats_late_total 1", "sidekeeper_ensemble_restores_total 1",
		`sidekeeper_zookeeper_request_seconds_count{operation="create"} 1`,
		`sidekeeper_wait_seconds_count{class="default",granted="yes",kind="lock"} 1`, `sidekeeper_schedule_running{class="default"} 2`,
		`sidekeeper_claims{state="ends_soon"} 2`, `sidekeeper_claims{state="held"} 0`,
		`sidekeeper_schedules{class="default",state="overdue"} 2`, `sidekeeper_schedules{class="default",state="on_time"} 0`,
		`grpc_method="Get",grpc_service="sidekeeper.lock.v1.LockService"`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in the metrics", want)
		}
	}
	same(t, "health", fetched(t, p.scraped()+"/healthz"), "ok\n")
	same(t, "profiles for scrapers", fetched(t, p.scraped()+"/debug/pprof/"), "404 page not found\n")
	same(t, "profiles", strings.Contains(fetched(t, p.page()+"/debug/pprof/"), "goroutine"), true)
}

func TestReadinessOverHTTPFollowsTheEnsemble(t *testing.T) {
	t.Parallel()
	p := newProbe(t, func(o *server.Options) { o.MetricsListen = "127.0.0.1:0" })
	watch, err := healthpb.NewHealthClient(p.dial(p.address())).Watch(within(t), &healthpb.HealthCheckRequest{Service: "sidekeeper.readiness"})
	must(t, err)
	answer, err := watch.Recv()
	must(t, err)
	for answer.GetStatus() != healthpb.HealthCheckResponse_SERVING {
		answer, err = watch.Recv()
		must(t, err)
	}
	same(t, "ready", fetched(t, p.scraped()+"/readyz"), "ok\n")
	p.setReachable(false)
	_, err = watch.Recv()
	must(t, err)
	same(t, "ready without the ensemble", fetched(t, p.scraped()+"/readyz"), "not ready\n")
	same(t, "alive without the ensemble", fetched(t, p.scraped()+"/healthz"), "ok\n")
}

func fetched(t *testing.T, url string) string {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	request, err := http.NewRequestWithContext(within(t), http.MethodGet, url, http.NoBody)
	must(t, err)
	response, err := client.Do(request)
	must(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	must(t, err)
	return string(body)
}
