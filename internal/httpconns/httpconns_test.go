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
		if state == http.StateNew {
			conns.enter(conn, func() {})
		}
		if surplus := conns.note(conn, state); surplus != nil {
			ended = append(ended, surplus.Conn)
		}
	}
	tell(first, http.StateNew)
	tell(first, http.StateActive)
	tell(second, http.StateNew)
	tell(third, http.StateNew) // ends the second
	tell(third, http.StateActive)
	tell(fourth, http.StateNew) // ends itself
	tell(first, http.StateIdle)
	tell(second, http.StateNew) // ends the first, whose turn it was to ask
	if got, want := fmt.Sprint(ended), fmt.Sprint([]net.Conn{second, fourth, first}); got != want {
		t.Errorf("ended: got %v, want %v", got, want)
	}
	tell(third, http.StateClosed)
	if got, want := conns.order.Len(), 1; got != want {
		t.Errorf("left: got %v, want %v", got, want)
	}
}

func TestACallersOwnIdleConnectionMakesRoomForItsNext(t *testing.T) {
	t.Parallel()
	const most = 2
	conns := New(10)
	var ended []int
	connect := func(number int, whose string) bool {
		conn, _ := net.Pipe()
		conns.enter(conn, func() { ended = append(ended, number) })
		conns.Follow(conn, http.StateNew)
		conns.Follow(conn, http.StateActive)
		owned := conns.Own(conn, whose, most)
		if number%2 == 0 {
			conns.Follow(conn, http.StateIdle)
		}
		return owned
	}
	got := fmt.Sprint(connect(0, "b"), connect(1, "a"), connect(2, "a"), connect(3, "a"), connect(5, "a"), ended)
	if want := "true true true true false [2]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
