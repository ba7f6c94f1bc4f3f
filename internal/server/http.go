package server

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/sidekeeper/sidekeeper/internal/budget"
	"github.com/sidekeeper/sidekeeper/internal/caller"
	"github.com/sidekeeper/sidekeeper/internal/fields"
	"github.com/sidekeeper/sidekeeper/internal/gateway"
	"github.com/sidekeeper/sidekeeper/internal/httpconns"
	"github.com/sidekeeper/sidekeeper/internal/ownpages"
	"github.com/sidekeeper/sidekeeper/internal/policy"
	"github.com/sidekeeper/sidekeeper/internal/reload"
)

// Limits of the listener for HTTP.
const (
	mostCallersHTTP = 256     // connections
	mostStreamsHTTP = 100     // of one connection of HTTP/2
	windowHTTP      = 8 << 10 // bytes of each
	httpWrite       = 30 * time.Second
	longestAnswer   = 64 << 20 // bytes, as clients over gRPC take them
	shortestToken   = 16       // bytes
)

// An httpListener serves callers who speak HTTP. Each of their connections goes on over one of gRPC inside of the process, with the same
// identity: so nothing that stands around a call over gRPC is missing around theirs.
type httpListener struct {
	grpc    *grpc.Server
	inside  *inside
	conns   *httpconns.Conns
	bodies  *httpconns.Bodies
	refused func(policy.Limit)
	links   sync.Map // of net.Conn to *link, while it is open
}

func (s *Server) openHTTP() error {
	address := s.options.HTTPListen
	if address == "" {
		return nil
	}
	secure := s.secure != nil && s.options.HTTPTokenFile == ""
	if !secure && s.options.HTTPTokenFile == "" && !s.options.AllOperate {
		return fmt.Errorf("--%s %s: needs --http-token-file on loopback, or --tls-cert, --tls-key and --tls-client-ca", forHTTP, address)
	}
	listener, err := listen(address, s.options.SocketMode, secure || s.options.AnyAddress)
	if err == nil && listener.Addr().Network() != "tcp" {
		err = errors.Join(errors.New("callers over HTTP are served over TCP only: host:port"), listener.Close())
	}
	if err != nil {
		return fmt.Errorf("--%s %s: %w", forHTTP, address, err)
	}
	serve, err := s.httpServing(secure)
	return s.add(forHTTP, address, listener, err, serve)
}

// httpServing is how the listener is served.
func (s *Server) httpServing(secure bool) (func(net.Listener) error, error) {
	h := &httpListener{
		inside: newInside(), refused: s.options.Metrics.limitReached, conns: httpconns.New(mostCallersHTTP),
		bodies: httpconns.NewBodies(budget.MostLong(s.options.MaxMemory), budget.LongestMessage,
			cmp.Or(s.options.completeWithin, budget.LongestRequest)),
	}
	h.grpc = s.newGRPC(caller.Handshake{Trusting: s.options.AllOperate, Admit: s.budget.Admit})
	handler := h.handler()
	if s.options.HTTPTokenFile != "" {
		token, err := openToken(s.options.HTTPTokenFile, s.options.Log)
		if err != nil {
			return nil, fmt.Errorf("--http-token-file: %w", err)
		}
		handler = ownpages.WithToken(handler, token.Newest)
	}
	server := h.conns.Server(timely(ownpages.Only(handler, secure || s.options.AnyAddress)))
	server.Protocols.SetHTTP2(true)
	server.HTTP2 = &http.HTTP2Config{ // streams whose bodies wait for their turn leave room for those that are read
		MaxConcurrentStreams: mostStreamsHTTP, MaxReceiveBufferPerStream: windowHTTP, MaxReceiveBufferPerConnection: mostStreamsHTTP * windowHTTP,
	}
	s.http = append(s.http, server)
	var err error
	if server.ErrorLog, err = zap.NewStdLogAt(s.options.Log, zap.DebugLevel); err != nil { // handshakes that fail are no errors of ours
		return nil, err
	}
	h.follow(server)
	if !secure {
		return h.serving(func(listener net.Listener) error { return server.Serve(s.budget.Slowed(listener)) }), nil
	}
	server.TLSConfig = alsoHTTP1(s.secure)
	return h.serving(func(listener net.Listener) error { return server.ServeTLS(s.budget.Slowed(listener), "", "") }), nil
}

// serving serves the listener, and what goes on inside of the process.
func (h *httpListener) serving(serve func(net.Listener) error) func(net.Listener) error {
	return func(listener net.Listener) error {
		var group errgroup.Group
		group.Go(func() error { return h.grpc.Serve(h.inside) })
		group.Go(func() error {
			defer h.inside.Close() // so that the other one ends too
			return serve(listener)
		})
		return group.Wait()
	}
}

// openToken reads the token's digest from a file, again when it has changed.
func openToken(name string, log *zap.Logger) (*reload.Files[[sha256.Size]byte], error) {
	parse := func(contents [][]byte) (digest [sha256.Size]byte, err error) {
		token := bytes.TrimSpace(contents[0])
		if len(token) < shortestToken {
			return digest, fmt.Errorf("%s: a token has at least %d characters", name, shortestToken)
		}
		return sha256.Sum256(token), nil
	}
	return reload.Open(parse, func(_ [sha256.Size]byte, trouble error) {
		if trouble != nil {
			log.Error("the token for HTTP is not reloaded; the last valid one is used", zap.Error(trouble))
		}
	}, name)
}

// alsoHTTP1 is what a listener for gRPC needs, for HTTP of both versions.
func alsoHTTP1(of *tls.Config) *tls.Config {
	offered := []string{"h2", "http/1.1"}
	return &tls.Config{
		MinVersion: of.MinVersion, NextProtos: offered,
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			config, err := of.GetConfigForClient(hello)
			if err != nil {
				return nil, err
			}
			config = config.Clone()
			config.NextProtos = offered
			return config, nil
		},
	}
}

// handler answers calls. What its requests and answers may take of memory and time is bounded.
func (h *httpListener) handler() http.Handler {
	services := []string{}
	for name := range h.grpc.GetServiceInfo() {
		services = append(services, name)
	}
	slices.Sort(services)
	h.bodies.Check, h.bodies.Whose = fields.Few, func(r *http.Request) string {
		return r.Context().Value(linkKey{}).(*link).identity
	}
	return h.bodies.Given(gateway.New(services, h.connection))
}

// timely gives up readers that do not read.
func timely(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler.ServeHTTP(timelyWriter{w, http.NewResponseController(w)}, r)
	})
}

// A timelyWriter has a time for each part of an answer.
type timelyWriter struct {
	http.ResponseWriter

	out *http.ResponseController
}

func (w timelyWriter) Write(part []byte) (int, error) {
	_ = w.out.SetWriteDeadline(time.Now().Add(httpWrite))
	return w.ResponseWriter.Write(part)
}

// Unwrap is for http.ResponseController.
func (w timelyWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Flush implements http.Flusher. What comes next may come at any time.
func (w timelyWriter) Flush() {
	_ = w.out.Flush() // who does not read is found by the next Write
	_ = w.out.SetWriteDeadline(time.Time{})
}

// linkKey is of the link in the context of what came over a connection.
type linkKey struct{}

// follow has each connection of the server carry a link, which ends with it.
func (h *httpListener) follow(server *http.Server) {
	placed, bounded := server.ConnContext, server.ConnState
	server.ConnContext = func(ctx context.Context, conn net.Conn) context.Context {
		made := &link{conn: conn}
		h.links.Store(conn, made)
		return context.WithValue(placed(ctx, conn), linkKey{}, made)
	}
	server.ConnState = func(conn net.Conn, state http.ConnState) {
		bounded(conn, state)
		known, ok := h.links.Load(conn)
		if !ok {
			return
		}
		of := known.(*link)
		switch state {
		case http.StateActive: // its caller has shown by now who it is
			if !of.judged && !h.admits(of) {
				h.refused(policy.Connections)
				of.close()
				_ = conn.Close()
			}
			of.judged = true
		case http.StateClosed:
			h.links.Delete(conn)
			of.close()
		}
	}
}

// admits counts a connection among those of its caller, which has three quarters of them at most. Without TLS all are of one.
func (h *httpListener) admits(of *link) bool {
	if _, secure := of.conn.(*tls.Conn); !secure {
		return true
	}
	identity, err := identityOver(of.conn)
	of.identity = identity
	return err == nil && h.conns.Own(of.conn, identity, shareOf(mostCallersHTTP))
}

// connection is the gateway's, of the link of the connection that a call came over.
func (h *httpListener) connection(ctx context.Context) (grpc.ClientConnInterface, error) {
	return ctx.Value(linkKey{}).(*link).open(h.inside)
}

// A link is what goes on over gRPC for one connection of HTTP, from its first call.
type link struct {
	conn     net.Conn
	identity string // of the caller, once it is known, which only the server's hook notes
	judged   bool

	mu     sync.Mutex
	onward *grpc.ClientConn
	closed bool
}

var errClosed = errors.New("the connection has ended")

func (l *link) open(to *inside) (*grpc.ClientConn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.onward != nil || l.closed {
		return l.onward, map[bool]error{true: errClosed}[l.closed]
	}
	identity, err := identityOver(l.conn)
	if err != nil {
		return nil, err
	}
	l.onward, err = grpc.NewClient("passthrough:inside",
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDisableRetry(), grpc.WithDisableServiceConfig(),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(longestAnswer)),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return to.dial(ctx, identity) }))
	return l.onward, err
}

func (l *link) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.onward != nil {
		_ = l.onward.Close() // nobody is there who could do anything about it
	}
}

// identityOver is who has made a connection, by the certificate if it is one of TLS.
func identityOver(conn net.Conn) (string, error) {
	secure, ok := conn.(*tls.Conn)
	if !ok {
		return policy.Loopback, nil
	}
	return caller.IdentityOf(secure.ConnectionState().PeerCertificates[0])
}

// An inside is a listener for connections from within the process.
type inside struct {
	arrivals chan net.Conn
	closed   chan struct{}
	close    func()
}

func newInside() *inside {
	closed := make(chan struct{})
	return &inside{make(chan net.Conn), closed, sync.OnceFunc(func() { close(closed) })}
}

func (i *inside) dial(ctx context.Context, identity string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case i.arrivals <- caller.Identified{Conn: theirs, Identity: identity}:
		return ours, nil
	case <-i.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept implements net.Listener.
func (i *inside) Accept() (net.Conn, error) {
	select {
	case conn := <-i.arrivals:
		return conn, nil
	case <-i.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (i *inside) Close() error {
	i.close()
	return nil
}

// Addr implements net.Listener.
func (*inside) Addr() net.Addr { return &net.UnixAddr{Name: "inside", Net: "pipe"} }
