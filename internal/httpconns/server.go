package httpconns

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"
)

// Limits of every listener.
const (
	headerTime     = 5 * time.Second
	idleTime       = time.Minute
	longestHeaders = 16 << 10 // bytes
)

// NewServer is the Server of so many connections.
func NewServer(handler http.Handler, most int) *http.Server { return New(most).Server(handler) }

// Server makes the server of a listener with these connections. No body is waited for: a request whose body does not come is answered at once,
// and its connection ends. A handler that takes bodies reads them through Bodies. The server speaks HTTP/1 unless it is told otherwise: over
// HTTP/2 a connection is kept whose bodies do not come, since others may be answered over it.
func (h *Conns) Server(handler http.Handler) *http.Server {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	return &http.Server{
		Handler: bodiless(handler), ReadHeaderTimeout: headerTime, IdleTimeout: idleTime, MaxHeaderBytes: longestHeaders,
		ConnState: h.Follow, Protocols: protocols,
		ConnContext: func(ctx context.Context, conn net.Conn) context.Context {
			ctx, end := context.WithCancel(ctx)
			h.enter(conn, end)
			return context.WithValue(ctx, placeKey{}, place{h, conn})
		},
	}
}

// Stop lets requests under way end, and cuts the connections of those that have not ended when ctx does. A client that is slow, or that has
// connected and asks for nothing, is no failure.
func Stop(ctx context.Context, server *http.Server) error {
	err := server.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = nil
	}
	return errors.Join(err, server.Close())
}

// A place is a connection among those of its listener.
type place struct {
	conns *Conns
	conn  net.Conn
}

type placeKey struct{}

// GivesWay has the connection of a request end when another needs its place, even while the request is answered.
func GivesWay(r *http.Request) {
	if from, counted := r.Context().Value(placeKey{}).(place); counted {
		from.conns.answers(from.conn, false)
	}
}

// lingers is for how long the rest of a body is read that is not wanted: a connection that ends before may lose the answer.
const lingers = 500 * time.Millisecond

// bodiless gives bodies little time to come: otherwise the rest of one is waited for when its request has been answered. Until a body has been
// read, its connection counts as one that has asked for nothing: it ends when another needs its place.
func bodiless(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength != 0 && r.ProtoMajor == 1 { // over HTTP/2 no time can be given to a body later
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(lingers)) // a test's writer has no connection
			waits(r, true)
		}
		handler.ServeHTTP(w, r)
	})
}

// waits notes whether a request is still on its way.
func waits(r *http.Request, whether bool) {
	if from, counted := r.Context().Value(placeKey{}).(place); counted && r.ProtoMajor == 1 {
		from.conns.answers(from.conn, !whether)
	}
}
