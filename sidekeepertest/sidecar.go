// Package sidekeepertest starts sidecars for tests of applications that use Sidekeeper. Each has an ensemble of its own in
// memory, so that tests need no ZooKeeper and do not meet each other, and can be made to fail as sidecars and ensembles
// do in production: suspended, with expired leases, with late grants.
//
//	func TestWorkerStopsWhenItsLockIsLost(t *testing.T) {
//		sidecar := sidekeepertest.Start(t, sidekeepertest.Options{})
//		worker := startWorker(sidecar.Client())
//		…
//		if err := sidecar.ExpireLock(t.Context(), "orders"); err != nil {
//			t.Fatal(err)
//		}
//		…
//	}
//
// The clients for Python, TypeScript and Java have kits that do the same; programs in other languages are tested with
// `sidekeeper dev` and its sidekeeper.dev.v1.DevService.
package sidekeepertest

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	devv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/dev/v1"
	"github.com/sidekeeper/sidekeeper/internal/dev"
)

// startTime is how long a sidecar may take to start; it takes milliseconds.
const startTime = 30 * time.Second

// Options are how a Sidecar is. The zero value is good.
type Options struct {
	// SessionTimeout is how long a lease survives without the ensemble unless its caller asks for another time: from
	// 2.2 s to 20 s. The default is 6 s: a lease is suspended about a second after the ensemble has fallen silent, and lost
	// after about four.
	SessionTimeout time.Duration
	// DrainTimeout is what holders get to let go when the sidecar is closed. The default is none.
	DrainTimeout time.Duration
	// GrantDelay is how much later than its turn each lock is granted; see DelayGrants.
	GrantDelay time.Duration
}

// A Sidecar is a running sidecar on a Unix socket. Its methods may be called by many goroutines.
type Sidecar struct {
	sidecar    *dev.Sidecar
	client     *sidekeeper.Client
	connection *grpc.ClientConn
	faults     devv1.DevServiceClient
	stop       func() error
}

// Start starts a sidecar that is closed when the test ends. A sidecar that does not start or stop fails the test.
func Start(t testing.TB, options Options) *Sidecar {
	t.Helper()
	s, err := New(options)
	if err != nil {
		t.Fatalf("start a sidecar: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("stop the sidecar: %v", err)
		}
	})
	return s
}

// New starts a sidecar where there is no test to end it, as in TestMain. It returns when the sidecar serves; the caller must
// Close it.
func New(options Options) (*Sidecar, error) {
	ctx, cancel := context.WithTimeout(context.Background(), startTime)
	defer cancel()
	sidecar, err := dev.New(ctx, dev.Options{
		SessionTimeout: options.SessionTimeout, DrainTimeout: options.DrainTimeout,
		Faults: dev.Faults{GrantDelay: options.GrantDelay},
	})
	if err != nil {
		return nil, err
	}
	s := &Sidecar{sidecar: sidecar, stop: serve(sidecar)}
	if err := s.dial(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// serve runs the sidecar until the function that it returns is called, which waits for the end.
func serve(sidecar *dev.Sidecar) (stop func() error) {
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- sidecar.Serve(ctx) }()
	return sync.OnceValue(func() error {
		cancel()
		return <-served
	})
}

func (s *Sidecar) dial() (err error) {
	if s.client, err = sidekeeper.Dial(s.Address()); err != nil {
		return err
	}
	s.connection, err = grpc.NewClient(s.Address(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err == nil {
		s.faults = devv1.NewDevServiceClient(s.connection)
	}
	return err
}

// Close stops the sidecar as SIGTERM does, closes Client and returns when no goroutine of either is left. Locks that are
// still held are lost. Closing again is harmless.
func (s *Sidecar) Close() error {
	err := s.stop()
	if s.connection != nil {
		_ = s.connection.Close() // says so if it was closed before
	}
	if s.client != nil {
		_ = s.client.Close()
	}
	return err
}

// Address is where the sidecar listens: `unix:///…`, as Dial and gRPC in other languages understand it.
func (s *Sidecar) Address() string { return s.sidecar.Addresses()[0] }

// EnsembleAddress is where ZooKeeper clients can join the ensemble, as host:port: so a test can look at the nodes, or
// contend for the same locks with another client.
func (s *Sidecar) EnsembleAddress() string { return s.sidecar.EnsembleAddress() }

// Client is a client of the sidecar. It is closed with it.
func (s *Sidecar) Client() *sidekeeper.Client { return s.client }

// Suspend has the ensemble answer nobody for that long, as if the network to it had been cut. What is held is
// suspended, and lost if the silence outlasts its validity. The newest call counts; 0 ends a silence at once.
func (s *Sidecar) Suspend(duration time.Duration) { s.sidecar.Suspend(duration) }

// DelayGrants has each lock granted that much later than its turn comes, from now on. Meanwhile its caller waits at the
// head of the queue.
func (s *Sidecar) DelayGrants(delay time.Duration) { s.sidecar.DelayGrants(delay) }

// ExpireLock expires the leases that hold a lock, as the ensemble does with those that it has not heard of for too long. It
// returns when their callers have been told and the lock is free. It is an error if nobody holds it.
func (s *Sidecar) ExpireLock(ctx context.Context, name string) error {
	_, err := s.expire(ctx, &devv1.ExpireLeaseRequest{Leases: &devv1.ExpireLeaseRequest_Lock{Lock: name}})
	return err
}

// ExpireLease expires a lease of this process by its id, as ExpireLock does.
func (s *Sidecar) ExpireLease(ctx context.Context, id string) error {
	_, err := s.expire(ctx, &devv1.ExpireLeaseRequest{Leases: &devv1.ExpireLeaseRequest_LeaseId{LeaseId: id}})
	return err
}

// ExpireAll expires every lease of the sidecar, as ExpireLock does, and says how many there were.
func (s *Sidecar) ExpireAll(ctx context.Context) (expired int, err error) {
	return s.expire(ctx, &devv1.ExpireLeaseRequest{Leases: &devv1.ExpireLeaseRequest_All{All: true}})
}

func (s *Sidecar) expire(ctx context.Context, request *devv1.ExpireLeaseRequest) (int, error) {
	response, err := s.faults.ExpireLease(ctx, request)
	return int(response.GetExpired()), err
}
