// Package dev is a sidecar for development and tests: the same as in production, over an ensemble in memory that it
// carries with it. The sidecar talks to that ensemble through ZooKeeper's wire protocol, as to a real one.
//
// Nothing is kept, nobody is asked who he is, and nothing listens beyond this machine unless that is asked for.
package dev

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/sidekeeper/sidekeeper/internal/embedded"
	"github.com/sidekeeper/sidekeeper/internal/server"
	"github.com/sidekeeper/sidekeeper/internal/zookeeper"
	"github.com/sidekeeper/sidekeeper/service"
)

// The times of the ensemble in memory. With a tick of a second, leases may last from 2.2 to 20 s: all that callers ask for
// in tests, and the 15 s of production too. Unless a caller asks for another time a lease lasts 6 s, so that
// losing one can be watched within seconds: when the ensemble falls silent it is suspended after about one, and lost after
// about four, while a laptop that stumbles for two loses nothing. It beats faster than in production so that this is so.
const (
	Tick           = time.Second
	SessionTimeout = 6 * time.Second

	heartbeat = 500 * time.Millisecond
	syncLimit = 5 // of an ensemble of one it means nothing
	root      = "/sidekeeper"
)

// Options are how a Sidecar is. Zero values mean what stands behind them.
type Options struct {
	Listen         []string        // addresses for callers beside the Unix socket; none
	AnyAddress     bool            // whether Listen may have addresses that other machines reach, also without TLS
	TLSFolder      string          // where certificates are put, with which TCP addresses are then served; none, without TLS
	EnsemblePort   int             // where ZooKeeper clients of any kind may join, on 127.0.0.1; the system's choice
	SessionTimeout time.Duration   // of leases that ask for none; SessionTimeout
	DrainTimeout   time.Duration   // what holders get to let go when the sidecar stops; none
	Faults         Faults          // none
	ClockTolerance time.Duration   // as service.Options has it
	HTTPListen     string          // as server.Options has it, without a token, and with TLS if there is a TLSFolder; nowhere
	MetricsListen  string          // as server.Options has it; nowhere
	AdminListen    string          // as server.Options has it; nowhere
	Log            *zap.Logger     // nowhere
	Metrics        *server.Metrics // of its own
}

// A Sidecar is a sidecar with an ensemble of its own. Whoever made it must Serve it.
type Sidecar struct {
	faults    *faults
	directory string   // private; the Unix socket lies there
	living    *os.File // says that the directory is not a leftover
	memory    *embedded.Ensemble
	server    *embedded.Server
	metrics   *server.Metrics
	client    *zookeeper.Client
	sidecar   *server.Server
	log       *zap.Logger
}

// New starts the ensemble, opens the listeners and returns when the sidecar has reached the ensemble. Errors: ErrTaken,
// ErrNotLoopback.
func New(ctx context.Context, options Options) (*Sidecar, error) {
	options = options.orDefaults()
	s := &Sidecar{log: options.Log, memory: embedded.New(embedded.Options{Tick: Tick, Committed: committed}), metrics: options.Metrics}
	for _, step := range []func(Options) error{s.openEnsemble, s.connect, s.listen} {
		if err := step(options); err != nil {
			s.close()
			return nil, err
		}
	}
	if err := s.awaitEnsemble(ctx); err != nil {
		return nil, errors.Join(err, s.Abandon())
	}
	return s, nil
}

func (o Options) orDefaults() Options {
	if o.SessionTimeout == 0 {
		o.SessionTimeout = SessionTimeout
	}
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	if o.Metrics == nil {
		o.Metrics = server.NewMetrics()
	}
	return o
}

func (s *Sidecar) openEnsemble(options Options) (err error) {
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(options.EnsemblePort))
	s.server, err = embedded.Serve(s.memory, embedded.ServerOptions{Address: address})
	return taken(err, address)
}

func (s *Sidecar) connect(options Options) (err error) {
	s.faults = newFaults(s.memory, s.server, options.Faults)
	s.client, err = zookeeper.New(zookeeper.Config{
		Servers:        []string{s.server.Address()},
		SessionTimeout: options.SessionTimeout,
		TickTime:       Tick,
		SyncLimit:      syncLimit,
		Heartbeat:      heartbeat,
		Sleep:          true,
		Directories: []string{
			root, root + "/locks", root + "/sequences", root + "/groups", root + "/semaphores", root + "/queues", root + "/barriers",
			root + "/agreements", root + "/once", root + "/config",
		},
		Log:     options.Log,
		Observe: s.metrics.RequestDone,
		Late:    s.metrics.HeartbeatLate,
	})
	return err
}

func (s *Sidecar) listen(options Options) (err error) {
	clearLeftovers()
	if s.directory, err = os.MkdirTemp("", "sidekeeper-"); err != nil {
		return err
	}
	s.living = mark(s.directory)
	var files server.TLSFiles
	if options.TLSFolder != "" {
		if files, err = makeCertificates(options.TLSFolder); err != nil {
			return fmt.Errorf("make certificates: %w", err)
		}
	}
	ensemble := ensemble{Client: s.client, faults: s.faults}
	services := service.New(service.Options{
		SessionTimeout: options.SessionTimeout, TickTime: Tick, ClockTolerance: options.ClockTolerance, Log: options.Log, Events: s.metrics,
	}, ensemble)
	addresses := append([]string{"unix://" + filepath.Join(s.directory, "sidekeeper.sock")}, options.Listen...)
	private := []string{options.HTTPListen, options.MetricsListen, options.AdminListen}
	if !options.AnyAddress {
		private = append(private, addresses...)
	}
	for _, address := range private {
		if !onThisMachine(address) {
			return fmt.Errorf("%s: %w", address, ErrNotLoopback)
		}
	}
	s.sidecar, err = server.New(server.Options{
		Listen: addresses, AnyAddress: options.AnyAddress, TLS: files, SocketMode: 0o600, AllOperate: true, Reflection: true,
		KeepaliveTime: 10 * time.Second, KeepaliveTimeout: 5 * time.Second, MaxStreams: 1024,
		DrainTimeout: options.DrainTimeout, SilenceTimeout: options.SessionTimeout, Log: options.Log, Metrics: s.metrics,
		HTTPListen: options.HTTPListen, MetricsListen: options.MetricsListen, AdminListen: options.AdminListen,
	}, service.Dev{Services: services, Faults: s.faults}, ensemble)
	return taken(err, strings.Join(addresses[1:], " or "))
}

var (
	// ErrTaken means that another program listens on an address that was asked for.
	ErrTaken = errors.New("another program listens there, perhaps another sidecar")
	// ErrNotLoopback means that other machines could reach an address that was asked for.
	ErrNotLoopback = errors.New("a sidecar for development and tests listens on Unix sockets and loopback addresses only")
)

func taken(err error, address string) error {
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%s: %w", address, ErrTaken)
	}
	return err
}

func onThisMachine(address string) bool {
	if address == "" || strings.HasPrefix(address, "unix://") {
		return true
	}
	host, _, err := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return err != nil || host == "localhost" || ip != nil && ip.IsLoopback() // what is no address is refused as such
}

func (s *Sidecar) awaitEnsemble(ctx context.Context) error {
	for {
		reached, changed := s.client.Reachable()
		if reached {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Abandon ends a sidecar that shall not serve.
func (s *Sidecar) Abandon() error {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return s.Serve(ctx)
}

// Addresses are the client listen addresses: the Unix socket first, then those of Options.Listen.
func (s *Sidecar) Addresses() []string { return s.sidecar.Addresses() }

// HTTPAddress is where callers over HTTP are served; empty for none.
func (s *Sidecar) HTTPAddress() string { return s.sidecar.HTTPAddress() }

// MetricsAddress is where scrapers are served; empty for none.
func (s *Sidecar) MetricsAddress() string { return s.sidecar.MetricsAddress() }

// AdminAddress is where administrators are served; empty for none.
func (s *Sidecar) AdminAddress() string { return s.sidecar.AdminAddress() }

// EnsembleAddress is where ZooKeeper clients can join the ensemble, as host:port.
func (s *Sidecar) EnsembleAddress() string { return s.server.Address() }

// Serve serves until ctx ends, lets holders let go, and leaves nothing behind: no goroutine, no file.
func (s *Sidecar) Serve(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		s.faults.run(ctx)
		return nil
	})
	group.Go(func() error { return s.sidecar.Serve(ctx) })
	err := group.Wait()
	s.close()
	return err
}

// close ends what has begun, in the order in which one stands on the other.
func (s *Sidecar) close() {
	if s.client != nil {
		s.client.Close()
	}
	if s.server != nil {
		s.server.Close()
	}
	s.memory.Close()
	if s.directory != "" {
		if err := os.RemoveAll(s.directory); err != nil {
			s.log.Warn("directory of the socket not removed", zap.Error(err))
		}
		_ = s.living.Close()
	}
}

// Suspend has the ensemble answer nobody for that long; see service.Faults.
func (s *Sidecar) Suspend(duration time.Duration) { s.faults.Suspend(duration) }

// DelayGrants has locks granted that much later than their turn comes.
func (s *Sidecar) DelayGrants(delay time.Duration) { s.faults.DelayGrants(delay) }
