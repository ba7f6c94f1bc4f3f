package httpconns

import (
	"fmt"
	"net"
	"net/http"
	"testing"
)

func TestAConnectionThatIsBeingAnsweredStaysOpen(t *testing.T) {
	t.Parallel()
	conns := New(2)
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
	if got, want := fmt.Sprint(ended), fmt.Sprint([]net.Conn{second, fourth, first}); got != want {
		t.Errorf("ended: got %v, want %v", got, want)
	}
	tell(third, http.StateClosed)
	if got, want := len(conns.order), 1; got != want {
		t.Errorf("left: got %v, want %v", got, want)
	}
}
