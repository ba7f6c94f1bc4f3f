// Package console serves one page about all that lies below a sidecar's root, on this machine, to whoever has its token. What the page
// shows and does, it asks the sidecar through the gateway of HTTP and JSON, as whoever has started the console.
package console

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/sidekeeper/sidekeeper/internal/fields"
	"github.com/sidekeeper/sidekeeper/internal/gateway"
	"github.com/sidekeeper/sidekeeper/internal/httpconns"
	"github.com/sidekeeper/sidekeeper/internal/ownpages"
	"github.com/sidekeeper/sidekeeper/internal/show"
)

// page stands on nothing else.
//
//go:embed page
var page embed.FS

// Limits of the listener.
const (
	mostConnections = 64
	longestRequest  = 1 << 20 // bytes
	requestTime     = 10 * time.Second
	stopTimeout     = time.Second
)

// Options say of which sidecar to serve the page, and where.
type Options struct {
	Listen     string // a loopback host:port
	Address    string // of the sidecar, as it is shown
	Version    string // of this program
	Connection grpc.ClientConnInterface

	State func(ctx context.Context, to io.Writer) error // writes what the sidecar's admin listener says of it
}

// A Console is a page that is served.
type Console struct {
	url      string
	listener net.Listener
	server   *http.Server
	watcher  *watcher
}

// New opens the listener. Serve closes it.
func New(options Options) (*Console, error) {
	host, _, err := net.SplitHostPort(options.Listen)
	if err != nil || !ownpages.IsLoopback(host) {
		return nil, fmt.Errorf("%q is not a loopback host:port: the page is for this machine only", options.Listen)
	}
	listener, err := net.Listen("tcp", options.Listen)
	if err != nil {
		return nil, err
	}
	token, watcher := rand.Text(), newWatcher(options)
	handler, err := options.handler(token, watcher)
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return &Console{
		url: "http://" + listener.Addr().String() + "/#token=" + token, listener: listener,
		server: httpconns.NewServer(handler, mostConnections), watcher: watcher,
	}, nil
}

// handler serves the page to this machine's browsers, and all else to whoever shows the token too.
func (o Options) handler(token string, looks *watcher) (http.Handler, error) {
	files, err := fs.Sub(page, "page")
	if err != nil {
		return nil, err
	}
	digest := sha256.Sum256([]byte(token))
	guarded := func(handler http.Handler) http.Handler {
		return ownpages.WithToken(handler, func() [sha256.Size]byte { return digest })
	}
	calls := gateway.New(services(), func(context.Context) (grpc.ClientConnInterface, error) {
		return connection{o.Connection, looks.away}, nil
	})
	mux := http.NewServeMux()
	mux.Handle("GET /", http.FileServerFS(files))
	bodies := httpconns.NewBodies(mostConnections, longestRequest, requestTime)
	bodies.Check = fields.Few
	mux.Handle("POST /api/", guarded(http.StripPrefix("/api", bodies.Given(calls))))
	mux.Handle("POST /about", guarded(bodies.Given(http.HandlerFunc(o.about))))
	mux.Handle("POST /overview", guarded(bodies.Given(serve(looks.overview))))
	mux.Handle("POST /waits", guarded(bodies.Given(serve(looks.waits))))
	mux.Handle("POST /who", guarded(bodies.Given(http.HandlerFunc(o.who))))
	mux.Handle("POST /state", guarded(bodies.Given(http.HandlerFunc(o.state))))
	return ownpages.Only(mux, false), nil
}

func (o Options) about(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_ = show.JSON(w, map[string]string{"address": o.Address, "version": o.Version}) // who asked has gone if this fails
}

func (o Options) state(w http.ResponseWriter, r *http.Request) {
	var text bytes.Buffer
	if err := o.State(r.Context(), &text); err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = text.WriteTo(w) // who asked has gone if this fails
}

// URL is where the page is, with the token.
func (c *Console) URL() string { return c.url }

// Serve serves the page, and looks at what it begins with, until ctx ends.
func (c *Console) Serve(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	var looks sync.WaitGroup
	defer looks.Wait()
	defer stop()
	looks.Go(func() { c.watcher.watchContact(ctx) })
	looks.Go(func() { c.watcher.watchLocks(ctx) })
	served := make(chan error, 1)
	go func() { served <- c.server.Serve(c.listener) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer cancel()
	err := httpconns.Stop(bounded, c.server) // what watches does not end by itself
	if ended := <-served; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return err
}
