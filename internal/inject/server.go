package inject

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/sidekeeper/sidekeeper/internal/httpconns"
)

const (
	requestTimeout  = 10 * time.Second // no API server waits longer than 30 s, and ours wait for 5
	stopTimeout     = 5 * time.Second
	mostConnections = 256 // of one listener; then the one that has asked for nothing for the longest time ends
)

// Options is where an injector serves, and as whom. Either the two files of a certificate are named, or Secret, Webhook and Host.
type Options struct {
	Listen        string // host:port for API servers
	MetricsListen string // host:port for scrapers and probes; empty disables it

	Certificate, Key string // files

	Secret   string        // namespace/name
	Webhook  string        // name of the MutatingWebhookConfiguration
	Host     string        // by which API servers know this webhook
	Lifetime time.Duration // of certificates
	API      API

	ShutdownDelay time.Duration // for how long API servers are still answered when the injector is told to stop
	Log           *zap.Logger
}

// A source has the certificate to serve with, nil while there is none, and looks after it.
type source interface {
	certificate() *tls.Certificate
	run(ctx context.Context)
}

// A Server is an injector that listens.
type Server struct {
	options  Options
	source   source
	metrics  *metrics
	reviewer *reviewer
	listener net.Listener
	watched  net.Listener // nil for none
	client   *client      // nil for none
	stopping atomic.Bool
}

// NewServer opens the listeners. Serve closes them.
func NewServer(options Options, pattern *Pattern, check Check) (*Server, error) {
	s := &Server{options: options, metrics: newMetrics()}
	s.reviewer = newReviewer(pattern, check, options.Log, s.metrics)
	if err := s.openSource(); err != nil {
		return nil, err
	}
	var err error
	if s.listener, err = net.Listen("tcp", options.Listen); err != nil {
		return nil, fmt.Errorf("--listen %s: %w", options.Listen, err)
	}
	if options.MetricsListen == "" {
		return s, nil
	}
	if s.watched, err = net.Listen("tcp", options.MetricsListen); err != nil {
		s.listener.Close()
		return nil, fmt.Errorf("--metrics-listen %s: %w", options.MetricsListen, err)
	}
	return s, nil
}

func (s *Server) openSource() (err error) {
	o := s.options
	if o.Certificate != "" {
		if s.source, err = newKeyFile(o.Certificate, o.Key, o.Log, s.metrics); err != nil {
			return fmt.Errorf("--tls-cert %w", err)
		}
		return nil
	}
	if s.client, err = newClient(o.API, o.Secret, o.Webhook); err != nil {
		return err
	}
	s.source = &Keeper{
		schedule: schedule{host: o.Host, lifetime: o.Lifetime},
		cluster:  s.client, log: o.Log, metrics: s.metrics,
	}
	return nil
}

// Addresses are where the server listens, for API servers first.
func (s *Server) Addresses() []string {
	addresses := []string{s.listener.Addr().String()}
	if s.watched != nil {
		addresses = append(addresses, s.watched.Addr().String())
	}
	return addresses
}

// Serve serves until ctx ends, says then that it is not ready any more, and stops after ShutdownDelay.
func (s *Server) Serve(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	webhook, watched := s.webhookServer(), s.watchedServer()
	group.Go(func() error { return ended(webhook.ServeTLS(s.listener, "", "")) })
	if s.watched != nil {
		group.Go(func() error { return ended(watched.Serve(s.watched)) })
	}
	group.Go(func() error {
		s.source.run(ctx)
		return nil
	})
	group.Go(func() error {
		<-ctx.Done()
		return s.stop(context.WithoutCancel(ctx), webhook, watched)
	})
	return group.Wait()
}

func ended(err error) error {
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// stop is told of by the probe first: API servers go on calling until everybody knows of it.
func (s *Server) stop(ctx context.Context, servers ...*http.Server) error {
	s.options.Log.Info("stopping", zap.Duration("delay", s.options.ShutdownDelay))
	s.stopping.Store(true)
	<-time.After(s.options.ShutdownDelay)
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	var group errgroup.Group
	for _, server := range servers {
		group.Go(func() error { return httpconns.Stop(ctx, server) })
	}
	err := group.Wait()
	if s.client != nil {
		s.client.close()
	}
	return err
}

func (s *Server) webhookServer() *http.Server {
	mux := http.NewServeMux()
	mux.Handle("POST /inject", s.reviewer)
	return s.server(mux, &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			if certificate := s.source.certificate(); certificate != nil {
				return certificate, nil
			}
			return nil, errors.New("there is no certificate yet")
		},
	})
}

func (s *Server) watchedServer() *http.Server {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", s.metrics.handler())
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { answerProbe(w, "") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) { answerProbe(w, s.unready()) })
	return s.server(mux, nil)
}

func (s *Server) server(handler http.Handler, config *tls.Config) *http.Server {
	errorLog, err := zap.NewStdLogAt(s.options.Log, zap.DebugLevel) // callers that give up a handshake are nobody's trouble
	if err != nil {
		errorLog = nil
	}
	server := httpconns.NewServer(handler, mostConnections)
	server.TLSConfig, server.ErrorLog, server.WriteTimeout = config, errorLog, requestTimeout
	return server
}

// unready is why API servers should not call this injector; empty if they should.
func (s *Server) unready() string {
	switch {
	case s.stopping.Load():
		return "stopping"
	case s.source.certificate() == nil:
		return "no certificate yet"
	default:
		return ""
	}
}

func answerProbe(w http.ResponseWriter, trouble string) {
	if trouble != "" {
		http.Error(w, trouble, http.StatusServiceUnavailable)
		return
	}
	_, _ = w.Write([]byte("ok\n")) // who asked has gone if this fails
}
