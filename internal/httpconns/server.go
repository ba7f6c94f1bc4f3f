package httpconns

import (
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

// lingers is for how long the rest of a body is read that nobody wants: a connection that ends before may lose the answer.
const lingers = 500 * time.Millisecond

// bodiless gives bodies little time to come: otherwise the rest of one is waited for when its request has been answered. Until a body has been
// read, its connection counts as one that has asked for nothing: it ends when another needs its place.
func bodiless(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 && r.ProtoMajor < 2 { // over HTTP/2 nobody waits for a body, and no time can be given to it later
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(lingers)) // a test's writer has no connection
			waits(r, true)
		}
		handler.ServeHTTP(w, r)
	})
}

// Bodies are the bodies of requests that are read at a time. One too many waits for a place, or takes that of the oldest, once that has had its
// time to come: who is silent takes a place for no longer.
type Bodies struct {
	Check func(r *http.Request, body []byte) error // what a body is refused for; may be nil
	Whose func(r *http.Request) string             // of whom one has three quarters of the places at most; nil or "" if that is not known

	most    int
	longest int64
	within  time.Duration

	mu      sync.Mutex
	reading []*reading    // the oldest first
	left    chan struct{} // told, by one place, of one that is free
}

// A reading is one body.
type reading struct {
	whose string
	out   *http.ResponseController
	since time.Time
	ended bool // for another, whatever has come of it
}

// yields is after how long a body that has not come as a whole makes room.
const yields = 500 * time.Millisecond

// NewBodies bounds them to so many, of so many bytes each, which have so long to come.
func NewBodies(most int, longest int64, within time.Duration) *Bodies {
	return &Bodies{most: most, longest: longest, within: within, left: make(chan struct{}, 1)}
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
	own := &reading{out: http.NewResponseController(w)}
	if b.Whose != nil {
		own.whose = b.Whose(r)
	}
	for wait := b.enter(own); wait > 0; wait = b.enter(own) {
		select {
		case <-time.After(wait):
		case <-b.left:
		case <-r.Context().Done():
			return false
		}
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, b.longest))
	b.leave(own, err == nil)
	if own.ended { // the time that it was given may count for what follows on its connection
		w.Header().Set("Connection", "close")
	}
	switch {
	case err != nil && own.ended:
		http.Error(w, "the request did not come while others waited", http.StatusServiceUnavailable)
		return false
	case err != nil:
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
	r.Body = &whole{rest: body}
	return true
}

// A whole body was read, and is forgotten as it is read again: who asks for a stream may be there for long.
type whole struct{ rest []byte }

func (w *whole) Read(into []byte) (n int, err error) {
	if n = copy(into, w.rest); n == len(w.rest) {
		w.rest, err = nil, io.EOF
	} else {
		w.rest = w.rest[n:]
	}
	return n, err
}

func (w *whole) Close() error {
	w.rest = nil
	return nil
}

// enter begins to read a body, or says how long the one that would make room has to come yet. A deadline is supported by every connection, and
// not by what tests write to.
func (b *Bodies) enter(own *reading) (wait time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	if oldest := b.inTheWay(own.whose); oldest != nil {
		if wait = yields - now.Sub(oldest.since); wait > 0 {
			return wait
		}
		oldest.ended = true
		_ = oldest.out.SetReadDeadline(now)
		b.remove(oldest)
	}
	own.since = now
	b.reading = append(b.reading, own)
	_ = own.out.SetReadDeadline(now.Add(b.within))
	return 0
}

// inTheWay is the body that has to make room for a further one: the oldest of who has three quarters of the places, or of all if there is no
// place. It is locked.
func (b *Bodies) inTheWay(whose string) *reading {
	own := slices.DeleteFunc(slices.Clone(b.reading), func(other *reading) bool { return other.whose != whose })
	switch {
	case whose != "" && len(own) >= b.most-b.most/4:
		return own[0]
	case len(b.reading) == b.most:
		return b.reading[0]
	}
	return nil
}

func (b *Bodies) remove(one *reading) {
	b.reading = slices.DeleteFunc(b.reading, func(other *reading) bool { return other == one })
}

// leave gives the rest of a body that did not come little time: the server waits for it when it answers.
func (b *Bodies) leave(own *reading, came bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.remove(own)
	select {
	case b.left <- struct{}{}:
	default:
	}
	if came {
		_ = own.out.SetReadDeadline(time.Time{})
	} else {
		_ = own.out.SetReadDeadline(time.Now().Add(lingers))
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
