package fence_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper/fence"
)

func marks(t *testing.T) fence.FileStore {
	t.Helper()
	return fence.FileStore{Path: filepath.Join(t.TempDir(), "marks")}
}

func with(ctx context.Context, lock string, token int64) context.Context {
	return sidekeeper.Ticket{Lock: lock, FencingToken: token}.Guard(ctx)
}

func TestOfRaisesAtOnceNoSmallerOnePassesAfterALargerOne(t *testing.T) {
	t.Parallel()
	path := marks(t).Path
	var all sync.WaitGroup
	var mu sync.Mutex
	var passed int64
	for token := range int64(40) {
		all.Go(func() {
			mu.Lock()
			before := passed // what has passed before this one begins
			mu.Unlock()
			largest, err := fence.FileStore{Path: path}.Raise(t.Context(), "orders", token+1)
			if err != nil || largest < before || largest < token+1 {
				t.Errorf("raising %d after %d: %d, %v", token+1, before, largest, err)
			}
			mu.Lock()
			passed = max(passed, largest)
			mu.Unlock()
		})
	}
	all.Wait()
	if text, err := os.ReadFile(path); string(text) != "orders=40\n" {
		t.Errorf("%s, %v", text, err)
	}
}

func TestMarksThatCannotBeKeptAreAnError(t *testing.T) {
	t.Parallel()
	store := marks(t)
	if _, err := (fence.FileStore{Path: store.Path + "/none/marks"}).Raise(t.Context(), "orders", 1); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("in no folder: %v", err)
	}
	if err := os.WriteFile(store.Path, []byte("orders=1\nrubbish\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Raise(t.Context(), "orders", 2); err == nil || !strings.Contains(err.Error(), `"rubbish\n" is not lock=token`) {
		t.Errorf("what cannot be read: %v", err)
	}
}

// health answers with what its context carries.
type health struct {
	grpc_health_v1.UnimplementedHealthServer
}

func (health) Check(ctx context.Context, _ *grpc_health_v1.HealthCheckRequest) (*grpc_health_v1.HealthCheckResponse, error) {
	return &grpc_health_v1.HealthCheckResponse{}, grpc.SetHeader(ctx, metadata.Pairs("carried", fence.Format(sidekeeper.Tickets(ctx))))
}

func (health) Watch(_ *grpc_health_v1.HealthCheckRequest, stream grpc.ServerStreamingServer[grpc_health_v1.HealthCheckResponse]) error {
	return stream.SetHeader(metadata.Pairs("carried", fence.Format(sidekeeper.Tickets(stream.Context()))))
}

func served(t *testing.T, gate *fence.Gate) grpc_health_v1.HealthClient {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.UnaryInterceptor(gate.UnaryServerInterceptor), grpc.StreamInterceptor(gate.StreamServerInterceptor))
	grpc_health_v1.RegisterHealthServer(server, health{})
	go server.Serve(listener)
	t.Cleanup(server.Stop)
	connection, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithUnaryInterceptor(fence.UnaryClientInterceptor), grpc.WithStreamInterceptor(fence.StreamClientInterceptor))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { connection.Close() })
	return grpc_health_v1.NewHealthClient(connection)
}

func stale(token, largest int64) string {
	return fmt.Sprintf("lock orders: fencing token %d is stale, since %d has been seen: the lock was granted to another holder", token, largest)
}

func TestCallsAndStreamsCarryTicketsAndAreRefused(t *testing.T) {
	t.Parallel()
	client := served(t, fence.NewGate(marks(t), fence.Options{}))
	call := func(ctx context.Context) string {
		var header metadata.MD
		_, err := client.Check(ctx, &grpc_health_v1.HealthCheckRequest{}, grpc.Header(&header))
		return strings.Join(append(header.Get("carried"), told(err)), "")
	}
	stream := func(ctx context.Context) string {
		opened, err := client.Watch(ctx, &grpc_health_v1.HealthCheckRequest{})
		if err != nil {
			return told(err)
		}
		header, err := opened.Header()
		if err == nil && len(header.Get("carried")) == 0 {
			_, err = opened.Recv()
		}
		return strings.Join(append(header.Get("carried"), told(err)), "")
	}
	for _, step := range []struct {
		ctx   context.Context
		do    func(context.Context) string
		wants string
	}{
		{with(with(t.Context(), "orders", 5), "stock", 7), call, "orders=5, stock=7"},
		{with(t.Context(), "orders", 6), stream, "orders=6"},
		{with(t.Context(), "orders", 5), call, "FailedPrecondition " + stale(5, 6)},
		{with(t.Context(), "orders", 5), stream, "FailedPrecondition " + stale(5, 6)},
		{t.Context(), call, "FailedPrecondition sidekeeper-fence: no ticket"},
		{sidekeeper.Unguarded(with(t.Context(), "orders", 6)), stream, "FailedPrecondition sidekeeper-fence: no ticket"},
		{metadata.AppendToOutgoingContext(t.Context(), fence.Header, "orders"), call, "InvalidArgument sidekeeper-fence: not lock=token"},
	} {
		if got := step.do(step.ctx); got != step.wants {
			t.Errorf("%s, want %s", got, step.wants)
		}
	}
}

func told(err error) string {
	if err == nil {
		return ""
	}
	return status.Code(err).String() + " " + status.Convert(err).Message()
}

func TestOnlyTheCallsThatAreNamedPassWithoutATicket(t *testing.T) {
	t.Parallel()
	isCheck := func(call string) bool { return call == "/grpc.health.v1.Health/Check" }
	client := served(t, fence.NewGate(marks(t), fence.Options{WithoutTicket: isCheck}))
	_, err := client.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{})
	stream, streamErr := client.Watch(t.Context(), &grpc_health_v1.HealthCheckRequest{})
	if streamErr == nil {
		_, streamErr = stream.Recv()
	}
	if err != nil || told(streamErr) != "FailedPrecondition sidekeeper-fence: no ticket" {
		t.Errorf("%v, %v", err, streamErr)
	}
}

func TestRequestsCarryTicketsAndAreRefused(t *testing.T) {
	t.Parallel()
	away := errors.New("the ensemble is away")
	asked := func(_ context.Context, ticket sidekeeper.Ticket) (bool, int64, error) {
		if ticket.Lock == "away" {
			return false, 0, away
		}
		return ticket.Lock != "stock", 0, nil
	}
	var logged strings.Builder
	gate := fence.NewGate(marks(t), fence.Options{
		Verify: asked, WithoutTicket: func(call string) bool { return call == "GET /orders" }, Logger: slog.New(slog.NewTextHandler(&logged, nil)),
	})
	server := httptest.NewServer(gate.Handler(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		w.Write([]byte("carried " + fence.Format(sidekeeper.Tickets(request.Context()))))
	})))
	t.Cleanup(server.Close)
	client := http.Client{Transport: fence.Transport{}}
	for _, step := range []struct {
		ctx          context.Context
		method, path string
		wants        string
	}{
		{with(t.Context(), "orders", 5), "PUT", "/orders", "200 carried orders=5"},
		{with(t.Context(), "orders", 4), "PUT", "/orders", "412 " + stale(4, 5) + "\n"},
		{with(t.Context(), "orders", 4), "GET", "/orders", "412 " + stale(4, 5) + "\n"},
		{with(t.Context(), "stock", 4), "PUT", "/orders", "412 lock stock is not held with fencing token 4, nor with any other\n"},
		{with(t.Context(), "away", 4), "PUT", "/orders", "503 whether the tickets of sidekeeper-fence are stale cannot be told at present\n"},
		{with(t.Context(), "or ders", 4), "PUT", "/orders", "400 sidekeeper-fence: not lock=token\n"},
		{t.Context(), "PUT", "/orders", "428 sidekeeper-fence: no ticket\n"},
		{t.Context(), "GET", "/orders", "200 carried "},
	} {
		request, err := http.NewRequestWithContext(step.ctx, step.method, server.URL+step.path, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		reply, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		_ = reply.Write(&text)
		reply.Body.Close()
		_, body, _ := strings.Cut(text.String(), "\r\n\r\n")
		if got := reply.Status[:4] + body; got != step.wants {
			t.Errorf("%q, want %q", got, step.wants)
		}
	}
	if !strings.Contains(logged.String(), "the ensemble is away") {
		t.Errorf("the log does not say why: %s", logged.String())
	}
}
