package server_test

import (
	"io"
	"net"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/server"
)

func TestConnectionsThatAskForNothingDoNotKeepAScraperOut(t *testing.T) {
	t.Parallel()
	p := newProbe(t, func(o *server.Options) { o.MetricsListen = "127.0.0.1:0" })
	var silent []net.Conn
	for range 64 + 1 {
		conn, err := net.Dial("tcp", p.server.MetricsAddress())
		must(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		_ = conn.SetDeadline(time.Now().Add(4500 * time.Millisecond)) // it is not for its silence that one ends: that takes 5 s
		silent = append(silent, conn)
	}
	_, err := silent[0].Read(make([]byte, 1))
	same(t, "the oldest", err, io.EOF)
	same(t, "a probe", fetched(t, p.scraped()+"/healthz"), "ok\n")
}
