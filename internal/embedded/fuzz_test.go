package embedded

import (
	"io"
	"net"
	"testing"
	"time"
)

// Whatever bytes follow a good handshake, the server neither panics nor stops to serve others.
func FuzzRequests(f *testing.F) {
	for op := range served {
		f.Add(int32(op), []byte{0, 0, 0, 2, '/', 'a', 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 1})
	}
	multi := &encoder{}
	multi.done(opCreate)
	multi.string("/m")
	multi.bytes([]byte("x"))
	multi.acl(open)
	multi.int32(1)
	multi.done(opCheck)
	multi.string("/m")
	multi.int32(0)
	multi.endOfMulti()
	f.Add(int32(opMulti), multi.buffer)
	f.Add(int32(opMultiRead), multi.buffer)
	f.Add(int32(opAuth), []byte{0, 0, 0, 0, 0, 0, 0, 2, 'i', 'p', 0, 0, 0, 0})

	e := New(Options{})
	f.Fuzz(func(t *testing.T, op int32, body []byte) {
		c := fuzzed(e)
		before := e.zxid
		out := &encoder{}
		out.int32(1)
		out.int32(op)
		c.handle(append(out.buffer, body...))
		if e.zxid > before+2 {
			t.Errorf("one request made %d transactions", e.zxid-before)
		}
		if alive := e.sessions[c.session.id]; alive != nil {
			e.mu.Lock()
			e.endSession(alive, causeClosed)
			e.mu.Unlock()
		}
		if len(e.tree.nodes) > 2000 {
			e.tree = newTree()
		}
	})
}

// fuzzed is a connection without a network, whose replies nobody reads.
func fuzzed(e *Ensemble) *connection {
	s := &Server{ensemble: e, connections: map[*connection]struct{}{}}
	c := newConnection(s, deaf{})
	e.mu.Lock()
	defer e.mu.Unlock()
	c.session = e.openSession(10*time.Second, c)
	return c
}

// A deaf connection has nobody at its other end.
type deaf struct{ net.Conn }

func (deaf) RemoteAddr() net.Addr        { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }
func (deaf) SetDeadline(time.Time) error { return nil }
func (deaf) Read([]byte) (int, error)    { return 0, io.EOF }
