// Package sidekeeper is the Go client of a Sidekeeper sidecar: leases and locks that end in time.
//
// A lock is a stream: while the stream is open the lock is yours, and while its sidecar runs it ends before any other caller can be
// granted the lock. A frozen sidecar cannot end a stream, so the client keeps the deadline itself: it asks the sidecar regularly for
// how long what it holds is certainly still its own (Check), counts the answer from when the question was sent, on a
// clock that keeps running while the machine is suspended, and treats as lost what was not confirmed in time, even if
// the stream says nothing.
//
// No client can protect a program that is paused between checking the lock and acting on it. Pass the fencing token to the resource that
// the lock protects, and have it refuse smaller ones.
package sidekeeper

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"

	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
)

// A Client talks to one sidecar. It is safe for use by many goroutines at once; its holder must Close it.
type Client struct {
	clock       clock
	connection  *grpc.ClientConn
	locks       lockv1.LockServiceClient
	leases      leasev1.LeaseServiceClient
	health      healthv1.HealthClient
	holdKeeper  *keeper
	leaseKeeper *keeper  // of leases
	multiplexes sync.Map // the streams of open leases, by the leases' ids
	endings     acknowledger

	following sync.WaitGroup // one for each hold and each membership, two for each lease
	keeping   sync.WaitGroup // the keepers
	stop      context.CancelFunc
	noRetries bool
	absent    func(error) // told while the sidecar or the ensemble is away; may be nil
	resumes   bool        // over a Unix socket, what stands on a lease may outlive the sidecar's process; elsewhere not, whatever the sidecar says

	log *slog.Logger // of WithLogger; nil without it
}

// An Option changes how Dial reaches the sidecar.
type Option func(*settings)

type settings struct {
	tls       *tls.Config
	clock     clock
	noRetries bool
	absent    func(error) // told while the sidecar or the ensemble is away; may be nil
	log       *slog.Logger
	dial      func(ctx context.Context, network, address string) (net.Conn, error)
	grpc      []grpc.DialOption
}

// WithTLS encrypts the connection. Addresses that are neither a Unix socket nor loopback need it.
func WithTLS(config *tls.Config) Option {
	return func(s *settings) { s.tls = config }
}

// WithLogger has the client say on the logger what it does in the background: why it could not ask the sidecar for how long something
// is valid, and why a handler of Share has failed. Without it, the client says only the latter, on slog's default logger.
func WithLogger(log *slog.Logger) Option {
	return func(s *settings) { s.log = log }
}

// WithDialer has dial make the connections, as a net.Dialer's DialContext does.
func WithDialer(dial func(ctx context.Context, network, address string) (net.Conn, error)) Option {
	return func(s *settings) { s.dial = dial }
}

// WithDialOptions hands options to gRPC, behind this package's own: interceptors, which see each attempt of a call that is repeated, a
// stats handler, limits of messages. WithTLS and WithDialer are better for what they are for.
func WithDialOptions(options ...grpc.DialOption) Option {
	return func(s *settings) { s.grpc = append(s.grpc, options...) }
}

// Dial makes a client of the sidecar at target: `unix:///path`, a path, or `host:port`; empty, what SIDEKEEPER_ADDRESS
// says, and without that DefaultAddress. It does not wait for a connection; the first call does.
func Dial(target string, options ...Option) (*Client, error) {
	chosen := settings{clock: systemClock{read: systemTime}}
	for _, option := range options {
		option(&chosen)
	}
	resolved, local, err := resolve(target)
	if err != nil {
		return nil, err
	}
	transport, err := chosen.credentials(resolved, local)
	if err != nil {
		return nil, err
	}
	dialing := append(dialing(resolved), grpc.WithTransportCredentials(transport), chosen.unary(), chosen.dialer())
	connection, err := grpc.NewClient(resolved, append(dialing, chosen.grpc...)...)
	if err != nil {
		return nil, fmt.Errorf("sidecar %s: %w", resolved, err)
	}
	c := newClient(connection, chosen)
	c.resumes = isSocket(resolved)
	return c, nil
}

// unary is what calls with one answer go through.
func (s settings) unary() grpc.DialOption {
	if s.noRetries {
		return grpc.WithChainUnaryInterceptor(bounded)
	}
	return grpc.WithChainUnaryInterceptor(bounded, repeated)
}

// dialer has connections made as the caller wants it. gRPC asks for unix:///path, unix:path or host:port.
func (s settings) dialer() grpc.DialOption {
	if s.dial == nil {
		return grpc.EmptyDialOption{}
	}
	return grpc.WithContextDialer(func(ctx context.Context, target string) (net.Conn, error) {
		if path, is := strings.CutPrefix(target, "unix:"); is {
			return s.dial(ctx, "unix", strings.TrimPrefix(path, "//"))
		}
		return s.dial(ctx, "tcp", target)
	})
}

func (s settings) credentials(target string, local bool) (credentials.TransportCredentials, error) {
	if s.tls != nil {
		return credentials.NewTLS(s.tls), nil
	}
	if !local {
		return nil, fmt.Errorf("sidecar %s: an address that is neither a Unix socket nor loopback needs TLS", target)
	}
	return insecure.NewCredentials(), nil
}

// window is how many bytes of one answer are on their way before the client has read some.
const window = 1 << 20

// dialing is what every connection to a sidecar has. gRPC's own defaults would repeat calls that must not be repeated,
// notice a dropped network after hours, and wait two minutes for a sidecar that was restarted. A Unix socket drops nothing: it breaks with the
// sidecar's process, and only then may a lease be resumed, so that it must not be given up here. With windows that change gRPC would ask the
// sidecar for a PING with each answer, which costs both more than a small answer itself.
func dialing(target string) []grpc.DialOption {
	options := []grpc.DialOption{
		grpc.WithDisableRetry(),
		grpc.WithDisableServiceConfig(),
		grpc.WithNoProxy(),
		grpc.WithStaticStreamWindowSize(window),
		grpc.WithStaticConnWindowSize(window),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: backoff.Config{
				BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 3 * time.Second,
			},
			MinConnectTimeout: 5 * time.Second,
		}),
	}
	if isSocket(target) {
		return options
	}
	return append(options, grpc.WithKeepaliveParams(keepalive.ClientParameters{
		Time: 10 * time.Second, Timeout: 5 * time.Second, PermitWithoutStream: true,
	}))
}

func newClient(connection *grpc.ClientConn, chosen settings) *Client {
	ctx, stop := context.WithCancel(context.Background()) // until Close
	c := &Client{
		clock:      chosen.clock,
		connection: connection,
		locks:      lockv1.NewLockServiceClient(connection),
		leases:     leasev1.NewLeaseServiceClient(connection),
		health:     healthv1.NewHealthClient(connection),
		stop:       stop,
		noRetries:  chosen.noRetries,
		absent:     chosen.absent,
		log:        chosen.log,
	}
	c.endings.locks = c.locks
	c.holdKeeper = newKeeper(chosen, c.checkHolds)
	c.leaseKeeper = newKeeper(chosen, c.checkLeases)
	for _, k := range []*keeper{c.holdKeeper, c.leaseKeeper} {
		c.keeping.Go(func() { k.askRegularly(ctx) })
		c.keeping.Go(func() { k.endExpired(ctx) })
	}
	return c
}

// Close gives up everything that this client holds and waits for, and returns when its goroutines have ended. That may take two
// seconds when a lock was lost just before and the sidecar does not answer.
func (c *Client) Close() error {
	c.endings.close()
	c.holdKeeper.close() // before the sidecar learns of it
	c.leaseKeeper.close()
	c.endings.wait()
	err := c.connection.Close()
	c.following.Wait()
	c.stop()
	c.keeping.Wait()
	return err
}
