package server

import (
	"io"
	"net"
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
