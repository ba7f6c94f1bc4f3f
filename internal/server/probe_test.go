package server_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	"github.com/sidekeeper/sidekeeper/internal/caller"
	"github.com/sidekeeper/sidekeeper/internal/server"
	"github.com/sidekeeper/sidekeeper/service"
)

// A probe is a sidecar whose locks are answered by the test.
type probe struct {
	lockv1.UnimplementedLockServiceServer

	t       *testing.T
	folder  string
	server  *server.Server
	metrics *server.Metrics
	serve   func() error // waits for Serve
	cancel  context.CancelFunc

	acquire func(stream grpc.ServerStreamingServer[lockv1.AcquireResponse]) error
	watch   func(stream grpc.ServerStreamingServer[lockv1.WatchResponse]) error
	get     func(ctx context.Context) error
	drain   func(ctx context.Context, timeout time.Duration) error

	mu        sync.Mutex
	stock     service.State
	stocks    int
	reachable bool
	hangs     bool // whether a call that does not end is meant not to
	changed   chan struct{}
}

func (p *probe) Register(registrar grpc.ServiceRegistrar) {
	lockv1.RegisterLockServiceServer(registrar, p)
}

func (p *probe) Drain(ctx context.Context, timeout time.Duration) error {
	return p.drain(ctx, timeout)
}

func (p *probe) LeaseSummary() service.LeaseSummary { return service.LeaseSummary{} }

func (p *probe) Tend(context.Context) {}

func (p *probe) RunningTicks() []string { return []string{"shop/report", "backup"} }

func (p *probe) ScheduleStates() map[string]string {
	return map[string]string{"shop/report": "overdue", "backup": "unknown", "mail": "overdue"}
}

func (p *probe) ClaimStates() map[string]int { return map[string]int{"ends_soon": 2} }

// Snapshot counts how often somebody looks.
func (p *probe) Snapshot() service.State {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stocks++
	return p.stock
}

func (p *probe) setStock(stock service.State) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.stock = stock
}

func (p *probe) looks() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stocks
}

func (p *probe) Acquire(_ *lockv1.AcquireRequest, stream grpc.ServerStreamingServer[lockv1.AcquireResponse]) error {
	return p.acquire(stream)
}

func (p *probe) Watch(_ *lockv1.WatchRequest, stream grpc.ServerStreamingServer[lockv1.WatchResponse]) error {
	return p.watch(stream)
}

func (p *probe) Get(ctx context.Context, _ *lockv1.GetRequest) (*lockv1.GetResponse, error) {
	return &lockv1.GetResponse{}, p.get(ctx)
}

func (p *probe) Break(context.Context, *lockv1.BreakRequest) (*lockv1.BreakResponse, error) {
	return &lockv1.BreakResponse{}, nil
}

func (p *probe) Reachable() (bool, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.reachable, p.changed
}

func (p *probe) setReachable(reachable bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reachable = reachable
	close(p.changed)
	p.changed = make(chan struct{})
}

// pinging has a frozen caller be noticed soon, and a busy machine's test lose its connections.
func pinging(o *server.Options) { o.KeepaliveTime, o.KeepaliveTimeout = time.Second, time.Second }

// newProbe starts a sidecar on a Unix socket `callers` and one `operators` in a folder of its own, unless told otherwise.
func newProbe(t *testing.T, change ...func(*server.Options)) *probe {
	t.Helper()
	folder, err := os.MkdirTemp("", "probe")
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(folder) })
	p := &probe{
		t: t, folder: folder, metrics: server.NewMetrics(), reachable: true, changed: make(chan struct{}),
		acquire: func(stream grpc.ServerStreamingServer[lockv1.AcquireResponse]) error {
			<-stream.Context().Done()
			return stream.Context().Err()
		},
		get:   func(context.Context) error { return nil },
		drain: func(context.Context, time.Duration) error { return nil },
	}
	options := server.Options{
		Listen: []string{"unix://" + folder + "/callers"}, SocketMode: 0o660, OperatorListen: "unix://" + folder + "/operators",
		KeepaliveTime: time.Minute, KeepaliveTimeout: time.Minute, MaxStreams: 1024, Log: zap.NewNop(), Metrics: p.metrics,
	}
	for _, change := range change {
		change(&options)
	}
	p.server, err = server.New(options, p, p)
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- p.server.Serve(ctx) }()
	p.cancel = cancel
	p.serve = sync.OnceValue(func() error { return <-served })
	t.Cleanup(func() {
		cancel()
		if err := p.serve(); err != nil && !p.hangs {
			t.Errorf("the sidecar stopped with %v", err)
		}
	})
	return p
}

func (p *probe) address() string { return p.server.Addresses()[0] }

// page is the URL of the page for operators, scraped that of metrics.
func (p *probe) page() string    { return "http://" + p.server.AdminAddress() }
func (p *probe) scraped() string { return "http://" + p.server.MetricsAddress() }

func (p *probe) operators() string { return "unix://" + filepath.Join(p.folder, "operators") }

// dial makes a connection that is closed with the test.
func (p *probe) dial(address string, options ...grpc.DialOption) *grpc.ClientConn {
	p.t.Helper()
	connection, err := grpc.NewClient(address,
		append([]grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials())}, options...)...)
	must(p.t, err)
	p.t.Cleanup(func() { _ = connection.Close() })
	return connection
}

func withTransport(secure credentials.TransportCredentials) grpc.DialOption {
	return grpc.WithTransportCredentials(secure)
}

// acquiring opens an Acquire stream and returns once its handler runs, with what it reports.
func (p *probe) watchEnd() <-chan caller.Caller {
	ended := make(chan caller.Caller, 1)
	p.acquire = func(stream grpc.ServerStreamingServer[lockv1.AcquireResponse]) error {
		if err := stream.Send(&lockv1.AcquireResponse{}); err != nil {
			return err
		}
		<-stream.Context().Done()
		ended <- caller.Of(stream.Context())
		return stream.Context().Err()
	}
	return ended
}

// begin opens an Acquire stream over a connection and returns once its handler runs.
func (p *probe) begin(ctx context.Context, connection *grpc.ClientConn) {
	p.t.Helper()
	stream, err := lockv1.NewLockServiceClient(connection).Acquire(ctx, &lockv1.AcquireRequest{})
	must(p.t, err)
	_, err = stream.Recv()
	must(p.t, err)
}

// A freezer is a connection whose process can be stopped: from then on it neither reads nor writes, and only its kernel
// answers, until it is closed.
type freezer struct {
	net.Conn
	frozen, closed chan struct{}
	once           sync.Once
}

func (f *freezer) Close() error {
	f.once.Do(func() { close(f.closed) })
	return f.Conn.Close()
}

func (f *freezer) Read(buffer []byte) (int, error) {
	n, err := f.Conn.Read(buffer)
	if f.isFrozen() {
		<-f.closed
		return 0, net.ErrClosed
	}
	return n, err
}

func (f *freezer) Write(buffer []byte) (int, error) {
	if f.isFrozen() {
		return len(buffer), nil
	}
	return f.Conn.Write(buffer)
}

func (f *freezer) isFrozen() bool {
	select {
	case <-f.frozen:
		return true
	default:
		return false
	}
}

// dialFreezer makes a connection that can be frozen, over a socket that the test may play with.
func (p *probe) dialFreezer(address string, options ...grpc.DialOption) (*grpc.ClientConn, *freezer) {
	p.t.Helper()
	f := &freezer{frozen: make(chan struct{}), closed: make(chan struct{})}
	network, target := "tcp", address
	if path, ok := cutUnix(address); ok {
		network, target = "unix", path
	}
	socket, err := net.Dial(network, target)
	must(p.t, err)
	f.Conn = socket
	p.t.Cleanup(func() { _ = f.Close() })
	once := func(context.Context, string) (net.Conn, error) {
		if f.isFrozen() {
			return nil, net.ErrClosed
		}
		return f, nil
	}
	return p.dial("passthrough:///localhost", append(options, grpc.WithContextDialer(once))...), f
}
