// Package server is what stands around the services: listeners and TLS, who is let in and what it may do, interceptors, metrics, health
// and the admin page.
package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/stats"

	"github.com/sidekeeper/sidekeeper/internal/budget"
	"github.com/sidekeeper/sidekeeper/internal/caller"
	"github.com/sidekeeper/sidekeeper/internal/httpconns"
	"github.com/sidekeeper/sidekeeper/internal/ownpages"
	"github.com/sidekeeper/sidekeeper/service"
)

// Options is where and how a Server serves. Addresses are `unix:///path` or `host:port`; an empty one is none.
type Options struct {
	Inside         net.Listener // for callers within the process; for tests
	Listen         []string     // for callers; a Unix socket may have an identity of its own: `unix:///path?identity=app`
	SocketMode     fs.FileMode  // of their Unix sockets
	OperatorListen string       // for operators; a Unix socket
	HTTPListen     string       // for callers who speak HTTP and JSON, for all but held streams; TCP
	HTTPTokenFile  string       // of HTTPListen on loopback, whose callers show this token; otherwise they show certificates
	MetricsListen  string       // for scrapers and probes, over HTTP
	AdminListen    string       // for the page of what there is, and pprof, over HTTP; loopback or a Unix socket only
	TLS            TLSFiles     // of every TCP address in Listen; without them these are loopback only
	TrustDomains   []string     // SPIFFE trust domains with authorities of their own, each DOMAIN=FILE

	KeepaliveTime    time.Duration // without a word from a caller until it is pinged
	KeepaliveTimeout time.Duration // until an unanswered ping ends the connection
	MaxStreams       int           // long-lived streams of one connection
	MaxConnections   int           // of callers, of which one caller gets three quarters; 0 for no limit
	MaxMemory        int           // bytes in use beyond which no large answers are given; 0 for no limit
	DrainTimeout     time.Duration // what holders get to let go when the sidecar stops
	SilenceTimeout   time.Duration // what sessions of callers that fell silent get on top of that
	HandedOver       func()        // ends the process when all is drained that is not handed over to the next one; nil if nothing is
	Reflection       bool          // whether clients may ask for the services' descriptions
	Policy           string        // file with who may do what; empty for everybody everything that is not for operators
	AnyAddress       bool          // whether TCP without TLS is served beyond loopback; for development and tests only
	AllOperate       bool          // whether every caller is an operator; for development and tests only

	Limits *caller.Limits // of one caller; those of NewLimits, but for leases and watched nodes, if nil

	completeWithin time.Duration // budget.LongestRequest if 0; for tests

	Log     *zap.Logger
	Audit   *zap.Logger // for what docs/audit.md tells; nil for nowhere
	Metrics *Metrics
	Traces  stats.Handler // makes a span for each call; nil for none
}

// callerAddresses are all where callers are served that are no operators by that.
func (o Options) callerAddresses() []string {
	if o.HTTPListen == "" {
		return o.Listen
	}
	return append(slices.Clip(o.Listen), o.HTTPListen)
}

// Handlers are what a Server serves; see Services.
type Handlers interface {
	Register(registrar grpc.ServiceRegistrar)
	Drain(ctx context.Context, timeout time.Duration) error
	LeaseSummary() service.LeaseSummary
	Tend(ctx context.Context)
	RunningTicks() []string
	ScheduleStates() map[string]string
	ClaimStates() map[string]int
	Snapshot() service.State
}

// A Server is one sidecar's listeners and what answers on them.
type Server struct {
	options   Options
	handlers  Handlers
	ensemble  service.Reachability
	health    *health.Server
	policy    *policyFile
	secure    *tls.Config // of TCP listeners for callers; nil without TLS
	streams   openStreams
	budget    *budget.Budget
	admin     *administration // nil without a listener
	listeners []listener
	calls     atomic.Uint64
	answering answering
	grpc      []*grpc.Server
	http      []*http.Server
}

// A listener is one listener and who serves it.
type listener struct {
	purpose  string
	listener net.Listener
	serve    func(net.Listener) error
}

// New opens every listener, so that an address that is refused or taken is known before anything is served. Serve
// closes them.
func New(options Options, handlers Handlers, ensemble service.Reachability) (*Server, error) {
	if runtime.GOOS == "windows" {
		return nil, errors.New("a sidecar runs on Linux, and on macOS for development: Windows does not say who connects to a Unix socket")
	}
	if options.Audit == nil {
		options.Audit = zap.NewNop()
	}
	s := &Server{
		options: options, handlers: handlers, ensemble: ensemble, health: health.NewServer(),
	}
	if s.options.Limits == nil {
		s.options.Limits = NewLimits(options, 0, 0, 0)
	}
	registry := options.Metrics.registry
	if err := errors.Join(registry.Register(gauges{s}), registry.Register(scheduleGauges{s}), s.open()); err != nil {
		for _, listener := range s.listeners {
			err = errors.Join(err, listener.listener.Close())
		}
		return nil, err
	}
	return s, nil
}

// Addresses are those of Listen, with the ports that were chosen.
func (s *Server) Addresses() []string { return s.addressesOf(forCallers) }

// MetricsAddress is that of MetricsListen, with the port that was chosen; empty for none.
func (s *Server) MetricsAddress() string { return strings.Join(s.addressesOf(forMetrics), "") }

// HTTPAddress is that of HTTPListen, with the port that was chosen; empty for none.
func (s *Server) HTTPAddress() string { return strings.Join(s.addressesOf(forHTTP), "") }

// AdminAddress is that of AdminListen, with the port that was chosen; empty for none.
func (s *Server) AdminAddress() string { return strings.Join(s.addressesOf(forAdmin), "") }

func (s *Server) addressesOf(purpose string) []string {
	var addresses []string
	for _, listener := range s.listeners {
		if listener.purpose == purpose {
			addresses = append(addresses, addressOf(listener.listener))
		}
	}
	return addresses
}

// The purposes of listeners, as the flags are called.
const (
	forCallers   = "listen"
	forHTTP      = "http-listen"
	forOperators = "operator-listen"
	forMetrics   = "metrics-listen"
	forAdmin     = "admin-listen"
)

func (s *Server) open() (err error) {
	applied := func() { s.streams.judge(s.judges()) }
	if s.policy, err = openPolicy(s.options.Policy, s.options.Log, s.options.Audit, s.options.Metrics.policyRefused, applied); err != nil {
		return fmt.Errorf("--policy: %w", err)
	}
	if s.secure, err = s.options.openTLS(); err != nil {
		return err
	}
	s.options.follow(s.policy)
	s.budget = s.options.budgetOf(s.judges())
	return errors.Join(s.openCallers(), s.openHTTP(), s.openOperators(), s.openMetrics(), s.openAdmin())
}

func (s *Server) judges() authorizer { return authorizer{s.policy, &s.streams} }

func (s *Server) admits() *admissions {
	return &admissions{s.options.MaxStreams, s.judges(), denials{s.options.Audit}, s.options.Metrics, callLog{s.options.Log}}
}

func (s *Server) openCallers() error {
	hands := caller.Handshake{Trusting: s.options.AllOperate, Admit: s.budget.Admit, Misled: misled(s.options.Log)}
	if s.secure != nil {
		hands.Secure = credentials.NewTLS(s.secure)
	}
	if inside := s.options.Inside; inside != nil {
		s.listeners = append(s.listeners, listener{forCallers, inside, s.newGRPC(hands).Serve})
	}
	servers := map[string]*grpc.Server{} // by the identity of all their callers, if they have one
	for _, address := range s.options.Listen {
		at, err := parsePlace(address)
		if err != nil {
			return fmt.Errorf("--%s %s: %w", forCallers, address, err)
		}
		hands.Socket = at.identity
		if servers[hands.Socket] == nil {
			servers[hands.Socket] = s.newGRPC(hands)
		}
		serve := func(listener net.Listener) error { return servers[at.identity].Serve(s.budget.Slowed(listener)) }
		listener, err := listen(at.address, s.options.SocketMode, s.secure != nil || s.options.AnyAddress)
		if err := s.add(forCallers, address, listener, err, serve); err != nil {
			return err
		}
	}
	return nil
}

func (s *Server) openOperators() error {
	address := s.options.OperatorListen
	if address == "" {
		return nil
	}
	listener, err := listenOperators(address)
	anyNumber := (*budget.Budget)(nil)
	hands := caller.Handshake{Operators: true, Refused: denials{s.options.Audit}.connected, Admit: anyNumber.Admit}
	return s.add(forOperators, address, listener, err, s.newGRPC(hands).Serve)
}

func (s *Server) openMetrics() error {
	address := s.options.MetricsListen
	if address == "" {
		return nil
	}
	// Scrapers come from elsewhere, and learn nothing here that is not in every metric of a process.
	listener, err := listen(address, s.options.SocketMode, true)
	handler := monitoring(s.options.Metrics, s.health)
	if host, _, err := net.SplitHostPort(address); err == nil && ownpages.IsLoopback(host) {
		handler = ownpages.Only(handler, false)
	}
	server := s.newHTTP(handler, mostHTTP)
	server.WriteTimeout = scrapeWrite
	alsoProbes(server)
	return s.add(forMetrics, address, listener, err, server.Serve)
}

func (s *Server) openAdmin() error {
	address := s.options.AdminListen
	if address == "" {
		return nil
	}
	listener, err := listenLoopback(address)
	s.admin = newAdministration(s)
	server := s.newHTTP(s.admin.handler(address), mostHTTP)
	server.RegisterOnShutdown(func() { close(s.admin.stopping) })
	return s.add(forAdmin, address, listener, err, server.Serve)
}

func (s *Server) add(purpose, address string, opened net.Listener, err error, serve func(net.Listener) error) error {
	if err != nil {
		return fmt.Errorf("--%s %s: %w", purpose, address, err)
	}
	s.listeners = append(s.listeners, listener{purpose, opened, serve})
	return nil
}

func (s *Server) newGRPC(hands caller.Handshake) *grpc.Server {
	options := slices.Concat(limitsOf(s.options), []grpc.ServerOption{grpc.ChainUnaryInterceptor(s.answering.unary)},
		interceptorsOf(s.admits(), s.budget),
		[]grpc.ServerOption{
			grpc.Creds(hands), grpc.StatsHandler(caller.StatsHandler{Calls: &s.calls}), grpc.InTapHandle(s.budget.Begin), grpc.StatsHandler(s.budget),
		})
	if s.options.Traces != nil {
		options = append(options, grpc.StatsHandler(s.options.Traces))
	}
	server := grpc.NewServer(options...)
	registrar := s.budget.Registrar(server)
	s.handlers.Register(registrar)
	healthpb.RegisterHealthServer(registrar, healthService{s.health})
	if s.options.Reflection {
		reflection.Register(server)
	}
	s.budget.Learn(server)
	s.grpc = append(s.grpc, server)
	return server
}

func (s *Server) newHTTP(handler http.Handler, most int) *http.Server {
	server := httpconns.NewServer(handler, most)
	s.http = append(s.http, server)
	return server
}

// Serve serves until ctx ends or a listener fails, then stops in order: health says so, the handlers drain, the servers
// close. It returns nil if everything ended as it should: every session closed, so that all locks are free.
func (s *Server) Serve(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	reachable, _ := s.ensemble.Reachable()
	announce(s.health, reachable, s.services()) // so that nobody's first answer is older than the first look
	for _, listener := range s.listeners {
		s.options.Log.Info("listening", zap.String("for", listener.purpose), zap.String("address", addressOf(listener.listener)))
		group.Go(func() error { return s.serveListener(listener) })
	}
	group.Go(func() error {
		follow(ctx, s.health, s.ensemble, s.services())
		return nil
	})
	group.Go(func() error {
		s.handlers.Tend(ctx)
		return nil
	})
	if s.policy != nil {
		group.Go(func() error {
			s.policy.Follow(ctx, policyPause)
			return nil
		})
	}
	group.Go(func() error {
		<-ctx.Done()
		return s.stop(context.WithoutCancel(ctx))
	})
	return group.Wait()
}

func (s *Server) serveListener(listener listener) error {
	err := listener.serve(listener.listener)
	if err == nil || errors.Is(err, http.ErrServerClosed) || errors.Is(err, grpc.ErrServerStopped) {
		return nil
	}
	return fmt.Errorf("--%s %s: %w", listener.purpose, addressOf(listener.listener), err)
}

// services are the names whose health is the ensemble's.
func (s *Server) services() []string {
	names := []string{readiness}
	if len(s.grpc) > 0 {
		names = slices.AppendSeq(names, maps.Keys(s.grpc[0].GetServiceInfo()))
	}
	return names
}
