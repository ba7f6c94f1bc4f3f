package httpconns

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Limits of every listener.
const (
	headerTime     = 5 * time.Second
	idleTime       = time.Minute
	longestHeaders = 16 << 10 // bytes
)

// NewServer makes the server of a listener with so many connections. No body is read: a request whose body does not come is answered at
// once, and its connection ends. A handler that takes bodies reads them through Bodies.
func NewServer(handler http.Handler, most int) *http.Server {
	conns := New(most)
	return &http.Server{
		Handler: bodiless(handler), ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: longestHeaders,
		ConnState: conns.Follow,
		ConnContext: func(ctx context.Context, conn net.Conn) context.Context {
			return context.WithValue(ctx, placeKey{}, place{conns, conn})
		},
	}
}

// A place is a connection among those of its listener.
type place struct {
	conns *Conns
	conn  net.Conn
}

type placeKey struct{}

// bodiless gives bodies no time to come: otherwise the rest of one is waited for when its request has been answered. Until a body has been read,
// its connection counts as one that has asked for nothing: it ends when another needs its place.
func bodiless(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 && r.ProtoMajor < 2 { // over HTTP/2 nobody waits for a body, and no time can be given to it later
			_ = http.NewResponseController(w).SetReadDeadline(time.Now()) // a test's writer has no connection
			waits(r, true)
		}
		handler.ServeHTTP(w, r)
	})
}

// Bodies are the bodies of requests that are read at a time. One too many ends the oldest, since one that is sent at once takes no time.
type Bodies struct {
	Check func(r *http.Request, body []byte) error // what a body is refused for; may be nil

	most    int
	longest int64
	within  time.Duration

	mu      sync.Mutex
	reading []*http.ResponseController // the oldest first
}

// NewBodies bounds them to so many, of so many bytes each, which have so long to come.
func NewBodies(most int, longest int64, within time.Duration) *Bodies {
	return &Bodies{most: most, longest: longest, within: within}
}

// Given has a handler given whole bodies.
func (b *Bodies) Given(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if b.Read(w, r) {
			handler.ServeHTTP(w, r)
		}
	})
}

// Read takes in the whole body of a request, or answers that it is too long or did not come in time.
func (b *Bodies) Read(w http.ResponseWriter, r *http.Request) bool {
	out := http.NewResponseController(w)
	b.enter(out)
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, b.longest))
	b.leave(out, err == nil)
	if err != nil {
		http.Error(w, "the request is too long, or did not come in time", http.StatusRequestEntityTooLarge)
		return false
	}
	waits(r, false)
	if b.Check != nil {
		if err := b.Check(r, body); err != nil {
			http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
			return false
		}
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	return true
}

// A deadline is supported by every connection, and not by what tests write to.
func (b *Bodies) enter(out *http.ResponseController) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.reading) == b.most {
		_ = b.reading[0].SetReadDeadline(time.Now())
		b.reading = b.reading[1:]
	}
	b.reading = append(b.reading, out)
	_ = out.SetReadDeadline(time.Now().Add(b.within))
}

// leave gives the rest of a body that did not come no more time: the server would wait for it when it answers.
func (b *Bodies) leave(out *http.ResponseController, came bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.reading = slices.DeleteFunc(b.reading, func(other *http.ResponseController) bool { return other == out })
	if came {
		_ = out.SetReadDeadline(time.Time{})
	} else {
		_ = out.SetReadDeadline(time.Now())
	}
}

// waits notes whether a request is still on its way.
func waits(r *http.Request, whether bool) {
	from, counted := r.Context().Value(placeKey{}).(place)
	if !counted || r.ProtoMajor > 1 { // over HTTP/2 others may be answered over its connection
		return
	}
	h, conn := from.conns, from.conn
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, known := h.serve[conn]; known {
		h.serve[conn] = !whether
	}
}
