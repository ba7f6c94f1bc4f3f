package goclient

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"go.yaml.in/yaml/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper/fence"
	devv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/dev/v1"
	"github.com/sidekeeper/sidekeeper/test/support/full"
)

// fenceTable is clients/conformance/fence.yaml, which says what its parts mean.
type fenceTable struct {
	Headers []struct {
		Values, Tickets []string
		Malformed       string
	}
	Written []struct {
		Tickets []string
		Value   string
	}
	Gates []fenceGate
}

type fenceGate struct {
	Name    string
	Locks   []string
	Without bool
	Held    map[string]int64
	Steps   []struct{ Do, Of, Refused, Says string }
}

func readFenceTable(t *testing.T) (table fenceTable) {
	t.Helper()
	text, err := os.ReadFile("../../clients/conformance/fence.yaml")
	must(t, err)
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	must(t, decoder.Decode(&table))
	if len(table.Headers) < 30 || len(table.Gates) < 11 {
		t.Fatalf("%d headers, %d gates", len(table.Headers), len(table.Gates))
	}
	return table
}

func TestTicketsAreReadAndWrittenAsInEachLanguage(t *testing.T) {
	t.Parallel()
	table := readFenceTable(t)
	for _, of := range table.Headers {
		tickets, err := fence.Parse(of.Values)
		if got := written(tickets); !slices.Equal(got, of.Tickets) && len(got)+len(of.Tickets) > 0 {
			t.Errorf("%q is read as %q", of.Values, got)
		}
		if refusal := refusalOf(err); refusal.Error() != of.Malformed || of.Malformed != "" && refusal.Reason != fence.Malformed {
			t.Errorf("%q: %v", of.Values, err)
		}
	}
	for _, of := range table.Written {
		tickets, err := fence.Parse(of.Tickets)
		must(t, err)
		if got := fence.Format(tickets); got != of.Value {
			t.Errorf("%q is written as %q", of.Tickets, got)
		}
	}
}

func written(tickets []sidekeeper.Ticket) (each []string) {
	for _, ticket := range tickets {
		each = append(each, fmt.Sprintf("%s=%d", ticket.Lock, ticket.FencingToken))
	}
	return each
}

func refusalOf(err error) *fence.Refusal {
	var refusal *fence.Refusal
	if !errors.As(err, &refusal) {
		return &fence.Refusal{}
	}
	return refusal
}

var errAway = errors.New("away")

func TestGatesLetPassWhatTheyDoInEachLanguage(t *testing.T) {
	t.Parallel()
	for _, of := range readFenceTable(t).Gates {
		t.Run(of.Name, func(t *testing.T) {
			t.Parallel()
			store, options := fence.FileStore{Path: filepath.Join(t.TempDir(), "marks")}, fence.Options{Locks: of.Locks}
			if of.Without {
				options.WithoutTicket = func(string) bool { return true }
			}
			if of.Held != nil {
				options.Verify = func(_ context.Context, ticket sidekeeper.Ticket) (bool, int64, error) {
					return of.Held[ticket.Lock] == ticket.FencingToken, of.Held[ticket.Lock], nil
				}
			}
			gate := fence.NewGate(store, options)
			for i, step := range of.Steps {
				switch step.Do {
				case "restart":
					gate = fence.NewGate(store, options)
				case "fail":
					must(t, os.WriteFile(store.Path, []byte("orders"), 0o600))
				case "silence":
					options.Verify = func(context.Context, sidekeeper.Ticket) (bool, int64, error) { return false, 0, errAway }
					gate = fence.NewGate(store, options)
				default:
					_, err := gate.Admit(t.Context(), "/shop.v1.Orders/Put", []string{step.Of})
					refusal := refusalOf(err)
					if string(refusal.Reason) != step.Refused || step.Says != "" && refusal.Error() != step.Says || err != nil && refusal.Reason == "" {
						t.Errorf("step %d: %v", i, err)
					}
				}
			}
		})
	}
}

// A shop is a service that orders guard: it counts those that have been put.
type shop struct {
	grpc_health_v1.UnimplementedHealthServer
	put []string
}

func (s *shop) Check(ctx context.Context, request *grpc_health_v1.HealthCheckRequest) (*grpc_health_v1.HealthCheckResponse, error) {
	s.put = append(s.put, request.GetService()+" with "+fence.Format(sidekeeper.Tickets(ctx)))
	return &grpc_health_v1.HealthCheckResponse{}, nil
}

// openShop serves a shop, with a gate or without, and returns how to put an order.
func openShop(t *testing.T, s *stage, served *shop, gate *fence.Gate) func(ctx context.Context, order string) error {
	t.Helper()
	var guarded []grpc.ServerOption
	if gate != nil {
		guarded = append(guarded, grpc.UnaryInterceptor(gate.UnaryServerInterceptor))
	}
	server := grpc.NewServer(guarded...)
	grpc_health_v1.RegisterHealthServer(server, served)
	path := filepath.Join(s.folder, fmt.Sprintf("shop-%p", served))
	serveOn(t, server, path)
	connection, err := grpc.NewClient("unix://"+path,
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithUnaryInterceptor(fence.UnaryClientInterceptor))
	must(t, err)
	t.Cleanup(func() { connection.Close() })
	return func(ctx context.Context, order string) error {
		_, err := grpc_health_v1.NewHealthClient(connection).Check(ctx, &grpc_health_v1.HealthCheckRequest{Service: order})
		return err
	}
}

// A holder that goes on after another one has been granted its lock is what it looks like from outside when it was frozen.
func TestTheLateCallOfAHolderThatWasFrozenIsRefusedByAGateAndNotWithoutOne(t *testing.T) {
	full.Needs(t, "the sidecar's program, built anew")
	program, nursery := buildSidecar(t)
	s := newStage(t, program, nursery)
	var guarded, naive shop
	gate := fence.NewGate(fence.FileStore{Path: filepath.Join(s.folder, "marks")}, fence.Options{Locks: []string{"orders"}})
	put, putNaively := openShop(t, s, &guarded, gate), openShop(t, s, &naive, nil)

	frozen, goOn, late := make(chan int64), make(chan struct{}), make(chan error, 1)
	go func() {
		_ = s.client(step{Client: "one"}).WithLock(t.Context(), "orders", sidekeeper.LockOptions{},
			func(ctx context.Context, lock *sidekeeper.Lock) error {
				must(t, put(ctx, "early"))
				frozen <- lock.FencingToken()
				<-goOn
				ctx = context.WithoutCancel(ctx) // it has not noticed yet
				must(t, putNaively(ctx, "late"))
				late <- put(ctx, "late")
				return nil
			})
	}()
	first := receive(t, frozen)
	_, err := s.dev.ExpireLease(t.Context(), &devv1.ExpireLeaseRequest{Leases: &devv1.ExpireLeaseRequest_Lock{Lock: "orders"}})
	must(t, err)
	other, err := sidekeeper.Dial(s.address)
	must(t, err)
	defer other.Close()
	var second int64
	must(t, other.WithLock(t.Context(), "orders", sidekeeper.LockOptions{}, func(ctx context.Context, lock *sidekeeper.Lock) error {
		second = lock.FencingToken()
		return errors.Join(put(ctx, "of the next"), putNaively(ctx, "of the next"))
	}))
	close(goOn)

	refused := fmt.Sprintf("FailedPrecondition lock orders: fencing token %d is stale, since %d has been seen: "+
		"the lock was granted to another holder", first, second)
	if answer := status.Convert(receive(t, late)); answer.Code().String()+" "+answer.Message() != refused {
		t.Errorf("%v, want %s", answer, refused)
	}
	want := []string{fmt.Sprintf("early with orders=%d", first), fmt.Sprintf("of the next with orders=%d", second)}
	if !slices.Equal(guarded.put, want) {
		t.Errorf("%q, want %q", guarded.put, want)
	}
	if len(naive.put) != 2 || naive.put[1] != "late with " {
		t.Errorf("without a gate: %q", naive.put)
	}
}
