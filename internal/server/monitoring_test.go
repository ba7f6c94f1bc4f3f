package server_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	"github.com/sidekeeper/sidekeeper/internal/server"
)

// probed is what a probe of a service over gRPC is told, as a status if it is none of the health.
func probed(ctx context.Context, client healthpb.HealthClient, service string) string {
	answer, err := client.Check(ctx, &healthpb.HealthCheckRequest{Service: service})
	if err != nil {
		return status.Code(err).String()
	}
	return answer.GetStatus().String()
}

func TestProbesOverGRPCAreToldWhatThoseOverHTTPAre(t *testing.T) {
	t.Parallel()
	p := newProbe(t, func(o *server.Options) { o.MetricsListen = "127.0.0.1:0" })
	ctx := within(t)
	client := healthpb.NewHealthClient(p.dial(p.server.MetricsAddress()))
	own := healthpb.NewHealthClient(p.dial(p.address()))
	follows := func(want string) {
		t.Helper()
		watch, err := own.Watch(ctx, &healthpb.HealthCheckRequest{Service: "sidekeeper.readiness"})
		must(t, err)
		for got := ""; got != want; {
			answer, err := watch.Recv()
			must(t, err)
			got = answer.GetStatus().String()
		}
		same(t, "ready", probed(ctx, client, "sidekeeper.readiness"), want)
		same(t, "locks", probed(ctx, client, "sidekeeper.lock.v1.LockService"), want)
		same(t, "alive", probed(ctx, client, ""), "SERVING")
	}
	follows("SERVING")
	p.setReachable(false)
	follows("NOT_SERVING")
	same(t, "unknown", probed(ctx, client, "nothing"), "NotFound")
}

func TestASidecarThatDrainsIsAliveToProbesOverGRPC(t *testing.T) {
	t.Parallel()
	draining, drained := make(chan struct{}), make(chan struct{})
	p := newProbe(t, func(o *server.Options) { o.MetricsListen = "127.0.0.1:0" })
	p.drain = func(context.Context, time.Duration) error {
		close(draining)
		<-drained
		return nil
	}
	client := healthpb.NewHealthClient(p.dial(p.server.MetricsAddress()))
	p.cancel()
	<-draining
	same(t, "alive", probed(within(t), client, ""), "SERVING")
	same(t, "ready", probed(within(t), client, "sidekeeper.readiness"), "NOT_SERVING")
	close(drained)
	must(t, p.serve())
}

func TestScrapersListenerServesNothingElseOverHTTP2(t *testing.T) {
	t.Parallel()
	p := newProbe(t, func(o *server.Options) { o.MetricsListen = "127.0.0.1:0" })
	connection := p.dial(p.server.MetricsAddress())
	client := healthpb.NewHealthClient(connection)
	watch, err := client.Watch(within(t), &healthpb.HealthCheckRequest{})
	must(t, err)
	_, err = watch.Recv()
	same(t, "Watch", status.Code(err), codes.Unimplemented)
	_, err = client.List(within(t), &healthpb.HealthListRequest{})
	same(t, "List", status.Code(err), codes.Unimplemented)
	_, err = lockv1.NewLockServiceClient(connection).Get(within(t), &lockv1.GetRequest{})
	same(t, "a lock", status.Code(err), codes.Unimplemented)
	same(t, "a long probe", probed(within(t), client, string(make([]byte, 513))), "ResourceExhausted")

	plain := overHTTP2()
	defer plain.CloseIdleConnections()
	request, err := http.NewRequestWithContext(within(t), http.MethodGet, p.scraped()+"/metrics", http.NoBody)
	must(t, err)
	response, err := plain.Do(request)
	must(t, err)
	must(t, response.Body.Close())
	same(t, "metrics", response.StatusCode, http.StatusHTTPVersionNotSupported)
}

// overHTTP2 is a client that speaks nothing else, without TLS.
func overHTTP2() *http.Client {
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetUnencryptedHTTP2(true)
	return &http.Client{Transport: transport}
}

// asks begins a probe over gRPC whose message does not come, and says when its headers have gone. It returns when the probe was answered or its
// connection has ended.
func asks(ctx context.Context, client *http.Client, url string, begun func()) error {
	silent, end := io.Pipe()
	defer end.Close()
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: begun})
	body := io.MultiReader(bytes.NewReader(make([]byte, 4)), silent)
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url+healthpb.Health_Check_FullMethodName, body)
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/grpc")
	request.Header.Set("TE", "trailers")
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	defer end.Close()
	defer context.AfterFunc(ctx, func() { response.Body.Close() })() // a read has outlived its context for twenty minutes
	_, err = io.Copy(io.Discard, response.Body)
	return err
}

func TestAProbeOverGRPCWhoseMessageDoesNotComeEnds(t *testing.T) {
	t.Parallel()
	p := newProbe(t, func(o *server.Options) { o.MetricsListen = "127.0.0.1:0" })
	client := overHTTP2()
	defer client.CloseIdleConnections()
	must(t, asks(within(t), client, p.scraped(), func() {}))
}

// Each of these connections has a probe of which the message does not come: it counts as one that asks for nothing.
func TestProbesOverGRPCThatDoNotComeKeepNoProbeOut(t *testing.T) {
	t.Parallel()
	p := newProbe(t, func(o *server.Options) { o.MetricsListen = "127.0.0.1:0" })
	const most = 64
	ctx, stop := context.WithCancel(within(t))
	var all sync.WaitGroup
	defer all.Wait()
	defer stop()
	for range 3 * most {
		begun := make(chan struct{})
		begin := sync.OnceFunc(func() { close(begun) })
		all.Go(func() {
			defer begin() // its connection may have made room for another before
			client := overHTTP2()
			defer client.CloseIdleConnections()
			_ = asks(ctx, client, p.scraped(), begin) // it ends in any way
		})
		<-begun
	}
	for range 8 {
		same(t, "a probe over HTTP", fetched(t, p.scraped()+"/healthz"), "ok\n")
		connection := p.dial(p.server.MetricsAddress())
		same(t, "a probe over gRPC", probed(ctx, healthpb.NewHealthClient(connection), ""), "SERVING")
		must(t, connection.Close())
	}
}

func TestASidecarStopsWithoutAnErrorBesideAScraperThatAsksForNothing(t *testing.T) {
	t.Parallel()
	p := newProbe(t, func(o *server.Options) { o.MetricsListen = "127.0.0.1:0" })
	conn, err := net.Dial("tcp", p.server.MetricsAddress())
	must(t, err)
	defer conn.Close()
	same(t, "a probe", fetched(t, p.scraped()+"/healthz"), "ok\n") // the sidecar has taken the connection before it
	p.cancel()
	must(t, p.serve())
	_, err = io.Copy(io.Discard, conn)
	must(t, err) // the sidecar has ended it
}

func TestConnectionsOfHTTP2ThatAskForNothingDoNotKeepAScraperOut(t *testing.T) {
	t.Parallel()
	p := newProbe(t, func(o *server.Options) { o.MetricsListen = "127.0.0.1:0" })
	const most = 64
	closed := make(chan bool, most+1)
	for range most + 1 {
		conn, err := net.Dial("tcp", p.server.MetricsAddress())
		must(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		_, err = io.WriteString(conn, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")
		must(t, err)
		must(t, conn.SetDeadline(time.Now().Add(30*time.Second))) // sooner than for its silence, which takes a minute
		go func() {
			_, err := io.Copy(io.Discard, conn)
			closed <- !errors.Is(err, os.ErrDeadlineExceeded)
		}()
	}
	same(t, "one connection makes room", receive(t, closed), true)
	same(t, "a probe", fetched(t, p.scraped()+"/healthz"), "ok\n")
}

func TestScrapersMayAskForOpenMetrics(t *testing.T) {
	t.Parallel()
	p := newProbe(t, func(o *server.Options) { o.MetricsListen = "127.0.0.1:0" })
	for asked, want := range map[string]struct{ format, end string }{
		"": {"text/plain", "\n"},
		"application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5": {"application/openmetrics-text", "\n# EOF\n"},
	} {
		request, err := http.NewRequestWithContext(within(t), http.MethodGet, p.scraped()+"/metrics", http.NoBody)
		must(t, err)
		request.Header.Set("Accept", asked)
		response, err := http.DefaultClient.Do(request)
		must(t, err)
		text, err := io.ReadAll(response.Body)
		must(t, err)
		must(t, response.Body.Close())
		format, _, _ := strings.Cut(response.Header.Get("Content-Type"), ";")
		same(t, "the format for "+asked, format, want.format)
		same(t, "the end for "+asked, strings.HasSuffix(string(text), want.end), true)
		same(t, "the version for "+asked, strings.Contains(string(text), `sidekeeper_build_info{go_version="`+runtime.Version()+`"`), true)
	}
	http.DefaultClient.CloseIdleConnections()
}

func TestTheFirstPageOfTheScrapersListenerSaysWhatIsThere(t *testing.T) {
	t.Parallel()
	p := newProbe(t, func(o *server.Options) { o.MetricsListen = "127.0.0.1:0" })
	page := fetched(t, p.scraped()+"/")
	paths := regexp.MustCompile(`(?m)^/\w+`).FindAllString(page, -1)
	same(t, "paths", strings.Join(paths, " "), "/metrics /healthz /readyz")
	for _, path := range paths {
		same(t, path, fetched(t, p.scraped()+path) != "404 page not found\n", true)
	}
}
