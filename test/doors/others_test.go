package doors

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	"github.com/sidekeeper/sidekeeper/test/support/expect"
)

// A call is what another caller does again and again.
type call struct {
	name string
	do   func(ctx context.Context) error
}

// dial is for calls to a target.
func (s *stage) dial(to target) *grpc.ClientConn {
	s.t.Helper()
	secure := insecure.NewCredentials()
	if to.tls != nil {
		secure = credentials.NewTLS(to.tls)
	}
	connection, err := grpc.NewClient(to.address, grpc.WithTransportCredentials(secure), grpc.WithDisableRetry())
	expect.Must(s.t, err)
	s.t.Cleanup(func() { connection.Close() })
	return connection
}

// callers are the other callers of a sidecar.
func (s *stage) callers() []call {
	s.t.Helper()
	good := s.dial(s.good)
	locks := lockv1.NewLockServiceClient(good)
	calls := []call{
		{"a lock read", func(ctx context.Context) error {
			_, err := locks.Get(ctx, &lockv1.GetRequest{Name: "good/held"})
			return err
		}},
		{"a lock taken and released", func(ctx context.Context) error { return takeAndRelease(ctx, locks) }},
		{"a probe over gRPC", func(ctx context.Context) error { return probe(ctx, s.good) }},
		s.page("a scrape", at("metrics-listen"), "/metrics"),
		s.page("a probe over HTTP", at("metrics-listen"), "/healthz"),
		{"a probe of the metrics' listener over gRPC", func(ctx context.Context) error { return probe(ctx, overGRPC("metrics-listen")(s)[0]) }},
		s.page("the status page", at("admin-listen"), "/"),
	}
	if s.secure {
		over := at("listen")(s)[0]
		over.tls = s.clientTLS(s.sign("good"))
		calls = append(calls, call{"a probe over TLS", func(ctx context.Context) error { return probe(ctx, over) }})
	}
	to := at("http-listen")(s)[0]
	if to.tls != nil {
		to.tls = s.clientTLS(s.sign("good"))
	}
	return append(calls, s.overHTTP(to))
}

func takeAndRelease(ctx context.Context, locks lockv1.LockServiceClient) error {
	stream, id, err := take(ctx, locks, "good/taken")
	if err != nil {
		return err
	}
	if _, err = locks.Release(ctx, &lockv1.ReleaseRequest{HoldId: id}); err != nil {
		return err
	}
	for err == nil {
		_, err = stream.Recv()
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// take returns when a lock is held, on the stream.
func take(
	ctx context.Context, locks lockv1.LockServiceClient, name string,
) (stream grpc.ServerStreamingClient[lockv1.AcquireResponse], id string, err error) {
	stream, err = locks.Acquire(ctx, &lockv1.AcquireRequest{Name: name})
	for err == nil {
		var event *lockv1.AcquireResponse
		if event, err = stream.Recv(); err == nil && event.GetGranted() != nil {
			return stream, event.GetGranted().GetHoldId(), nil
		}
	}
	return nil, "", err
}

// probe asks for the health over a new connection, as a kubelet does.
func probe(ctx context.Context, to target) error {
	secure := insecure.NewCredentials()
	if to.tls != nil {
		secure = credentials.NewTLS(to.tls)
	}
	connection, err := grpc.NewClient(to.address, grpc.WithTransportCredentials(secure), grpc.WithDisableRetry())
	if err != nil {
		return err
	}
	defer connection.Close()
	_, err = healthv1.NewHealthClient(connection).Check(ctx, &healthv1.HealthCheckRequest{})
	return err
}

// page is a page over HTTP, each time over a new connection.
func (s *stage) page(name string, of func(*stage) []target, path string) call {
	to := of(s)[0]
	return call{name, func(ctx context.Context) error { return ask(ctx, to, http.MethodGet, path, "", nil) }}
}

// overHTTP is a call with JSON.
func (s *stage) overHTTP(to target) call {
	return call{"a lock read over HTTP", func(ctx context.Context) error {
		return ask(ctx, to, http.MethodPost, lockv1.LockService_Get_FullMethodName, "application/json", []byte(`{"name":"good/held"}`))
	}}
}

// review is what an API server asks an injector.
func (s *stage) review() call {
	const pod = `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"1","namespace":"default","operation":"CREATE",` +
		`"kind":{"group":"","version":"v1","kind":"Pod"},"object":{"metadata":{"annotations":{"sidekeeper.io/inject":"true"}},` +
		`"spec":{"containers":[{"name":"app"}]}}}}`
	to := at("webhook")(s)[0]
	return call{"a pod's review", func(ctx context.Context) error {
		return ask(ctx, to, http.MethodPost, "/inject", "application/json", []byte(pod))
	}}
}

// ask asks once, over a connection of its own.
func ask(ctx context.Context, to target, method, path, contentType string, body []byte) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, to.url(path), bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Close = true
	request.Header.Set("Content-Type", contentType)
	request.Header.Set("Authorization", "Bearer "+to.bearer)
	answer, err := to.client(ctx).Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %.200s", answer.Status, text)
	}
	return err
}

// A tally is what has become of the others' calls.
type tally struct {
	mu    sync.Mutex
	times []time.Duration
	wrong []string // calls that ended otherwise than with their answer, or not at all
}

func (y *tally) note(name string, took time.Duration, err error) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.times = append(y.times, took)
	if err != nil {
		y.wrong = append(y.wrong, fmt.Sprintf("%s, after %v: %v", name, took.Round(time.Millisecond), err))
	}
}

// at is how long so much of a hundred calls took at most, in milliseconds.
func (y *tally) at(percent int) string {
	slices.Sort(y.times)
	return fmt.Sprintf("%.1f", float64(y.times[(len(y.times)-1)*percent/100].Microseconds())/1000)
}

// callAll has the others call until an attack has been played, each of them some times at least, and until one of them is answered that may not
// fail.
func (s *stage) callAll(ctx context.Context, played <-chan struct{}, mayFail func(call) bool) *tally {
	const (
		least  = 3
		breath = 20 * time.Millisecond
	)
	var workers sync.WaitGroup
	result, began := &tally{}, time.Now()
	isOver := func(count, answered int) bool {
		select {
		case <-played:
			return count >= least && (answered > 0 || time.Since(began) > patient) && (!*figures || time.Since(began) > 5*time.Second)
		case <-s.attacked.Exited():
			return true
		default:
			return false
		}
	}
	for _, each := range s.others {
		workers.Go(func() {
			answered := 0
			if mayFail(each) {
				answered++
			}
			for count := 0; !isOver(count, answered); count++ {
				ctx, cancel := context.WithTimeout(ctx, patient)
				asked := time.Now()
				err := each.do(ctx)
				cancel()
				result.note(each.name, time.Since(asked), err)
				if err == nil {
					answered++
				}
				<-time.After(breath)
			}
			if answered == 0 && s.attacked.Running() {
				result.note("never", 0, fmt.Errorf("%s is answered", each.name))
			}
		})
	}
	workers.Wait()
	return result
}

// A hold is a lock that another caller holds meanwhile.
type hold struct {
	locks lockv1.LockServiceClient
	id    string
	ended chan error // of its stream
}

// holdLock takes one; nil where there is no sidecar.
func (s *stage) holdLock(ctx context.Context, t *testing.T) *hold {
	t.Helper()
	if s.sidecar == nil {
		return nil
	}
	h := &hold{locks: lockv1.NewLockServiceClient(s.dial(s.good)), ended: make(chan error, 1)}
	stream, id, err := take(ctx, h.locks, "good/held")
	expect.Must(t, err)
	h.id = id
	go func() {
		for err == nil {
			_, err = stream.Recv()
		}
		h.ended <- err
	}()
	return h
}

// isHeld says why it is not.
func (h *hold) isHeld(ctx context.Context) error {
	if h == nil {
		return nil
	}
	select {
	case err := <-h.ended:
		return fmt.Errorf("the lock is held no longer: %w", err)
	default:
	}
	answer, err := h.locks.Check(ctx, &lockv1.CheckRequest{HoldIds: []string{h.id}})
	if err != nil {
		return err
	}
	if hold := answer.GetHolds()[0]; hold.GetReason() != "" || hold.GetValidFor().AsDuration() <= 0 {
		return errors.New("the lock is held no longer: " + strings.TrimSpace(hold.String()))
	}
	return nil
}
