package server_test

import (
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/server"
)

func TestConnectionsThatAskForNothingDoNotKeepAScraperOut(t *testing.T) {
	t.Parallel()
	p := newProbe(t, func(o *server.Options) { o.MetricsListen = "127.0.0.1:0" })
	var err error
	for range 10 { // on a machine so busy that the oldest might have ended for its silence, it is tried again
		if err = oldestEnds(t, p.server.MetricsAddress(), 64+1); err == nil {
			break
		}
	}
	must(t, err)
	same(t, "a probe", fetched(t, p.scraped()+"/healthz"), "ok\n")
}

// oldestEnds opens so many connections that say nothing. It returns an error unless the oldest ends sooner than for its silence: that takes
// 5 s.
func oldestEnds(t *testing.T, address string, count int) error {
	t.Helper()
	var oldest net.Conn
	for range count {
		conn, err := net.Dial("tcp", address)
		must(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		if oldest == nil {
			oldest = conn
			_ = conn.SetDeadline(time.Now().Add(4500 * time.Millisecond))
		}
	}
	_, err := oldest.Read(make([]byte, 1))
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
