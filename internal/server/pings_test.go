package server_test

import (
	"io"
	"net"
	"testing"
	"time"

	"golang.org/x/net/http2"
)

// gRPC of other languages than Go pings as often as it is told to.
func TestTheFourthOfPingsThatComeTooSoonEndsTheConnection(t *testing.T) {
	t.Parallel()
	p := newProbe(t)
	path, _ := cutUnix(p.address())
	connection, err := net.Dial("unix", path)
	must(t, err)
	defer connection.Close()
	must(t, connection.SetDeadline(time.Now().Add(patient)))
	_, err = io.WriteString(connection, http2.ClientPreface)
	must(t, err)
	framer := http2.NewFramer(connection, connection)
	must(t, framer.WriteSettings())
	for pings := 1; pings <= 4; pings++ {
		must(t, framer.WritePing(false, [8]byte{}))
		same(t, "answer", nextOf[*http2.PingFrame](t, framer).IsAck(), true)
	}
	gone := nextOf[*http2.GoAwayFrame](t, framer)
	same(t, "end", gone.ErrCode.String()+" "+string(gone.DebugData()), "ENHANCE_YOUR_CALM too_many_pings")
}

// nextOf is the next frame of a kind. That the sidecar goes away is never passed over.
func nextOf[F http2.Frame](t *testing.T, framer *http2.Framer) F {
	t.Helper()
	for {
		frame, err := framer.ReadFrame()
		must(t, err)
		if found, is := frame.(F); is {
			return found
		}
		if _, away := frame.(*http2.GoAwayFrame); away {
			t.Fatal("the connection ends too early")
		}
	}
}
