package k8s

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

// ErrNotLeading is the error of a request that a Gate has not let pass.
var ErrNotLeading = errors.New("this process does not lead")

// connectTime is how long a connection to the API server may take, as long as client-go gives it.
const connectTime = 30 * time.Second

// A Gate lets requests that write pass only while a term lasts whose Options name it, to the margin before the end of its validity. What only
// reads passes at all times. Once the term is as good as over, nothing at all leaves through its connections: so also what was on its way
// through the process when that was frozen. The zero Gate lets no write pass until a term begins.
type Gate struct {
	mu   sync.Mutex
	term *term // the newest
}

// Guard is a copy of a configuration, for clients of the API server whose writes are only the leader's. What others write too, such as
// events, takes another one.
func (g *Gate) Guard(config *rest.Config) *rest.Config {
	guarded := rest.CopyConfig(config)
	dial := guarded.Dial
	if dial == nil {
		dial = (&net.Dialer{Timeout: connectTime, KeepAlive: connectTime}).DialContext
	}
	guarded.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		connection, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &gatedConn{connection, g}, nil
	}
	guarded.Wrap(func(next http.RoundTripper) http.RoundTripper { return &gatedTransport{next, g} })
	return guarded
}

// open lets writes pass for a term. A nil Gate is none.
func (g *Gate) open(t *term) {
	if g == nil {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.term = t
}

// acting is the newest term, unless nothing acts for it; then nil.
func (g *Gate) acting() *term {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.term == nil || g.term.isOver() {
		return nil
	}
	return g.term
}

// expired says whether the term is as good as over.
func (t *term) expired() bool { return t.left() <= t.margin }

type gatedTransport struct {
	next http.RoundTripper
	gate *Gate
}

func (t *gatedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	switch request.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return t.next.RoundTrip(request)
	}
	if acting := t.gate.acting(); acting == nil || acting.expired() {
		if request.Body != nil {
			_ = request.Body.Close() // as a RoundTripper must
		}
		return nil, ErrNotLeading
	}
	return t.next.RoundTrip(request)
}

// A gatedConn looks at the term as late as this process can.
type gatedConn struct {
	net.Conn
	gate *Gate
}

func (c *gatedConn) Write(data []byte) (int, error) {
	if acting := c.gate.acting(); acting != nil && acting.expired() {
		_ = c.Close() // what it carries is of no use without this
		return 0, ErrNotLeading
	}
	return c.Conn.Write(data)
}
