package server

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

func TestConnectionsThatAskForNothingDoNotKeepAScraperOut(t *testing.T) {
	t.Parallel()
	p := newProbe(t, func(o *Options) { o.MetricsListen = "127.0.0.1:0" })
	var silent []net.Conn
	for range mostHTTP + 1 {
		conn, err := net.Dial("tcp", p.server.MetricsAddress())
		must(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		_ = conn.SetDeadline(time.Now().Add(handshakeTimeout / 2)) // it is not for its silence that one ends
		silent = append(silent, conn)
	}
	_, err := silent[0].Read(make([]byte, 1))
	same(t, "the oldest", err, io.EOF)
	same(t, "a probe", fetched(t, p.where(forMetrics)+"/healthz"), "ok\n")
}

func TestAConnectionThatIsBeingAnsweredStaysOpen(t *testing.T) {
	t.Parallel()
	conns := newHTTPConns(2)
	connect := func() net.Conn { conn, _ := net.Pipe(); return conn }
	first, second, third, fourth := connect(), connect(), connect(), connect()
	var ended []net.Conn
	tell := func(conn net.Conn, state http.ConnState) {
		if surplus := conns.note(conn, state); surplus != nil {
			ended = append(ended, surplus)
		}
	}
	tell(first, http.StateNew)
	tell(first, http.StateActive)
	tell(second, http.StateNew)
	tell(third, http.StateNew) // ends the second
	tell(third, http.StateActive)
	tell(fourth, http.StateNew) // ends itself
	tell(first, http.StateIdle)
	tell(second, http.StateNew) // ends the first
	same(t, "ended", fmt.Sprint(ended), fmt.Sprint([]net.Conn{second, fourth, first}))
	tell(third, http.StateClosed)
	same(t, "left", len(conns.order), 1)
}
