package link

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"
)

// patience is how long a test waits for what must happen.
const patience = 10 * time.Second

// A backend is a server behind a link, whose connections the test holds.
type backend struct {
	listener net.Listener
	accepted chan net.Conn
}

func newBackend(t *testing.T) *backend {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &backend{listener: listener, accepted: make(chan net.Conn, 100)}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			conn.SetDeadline(time.Now().Add(patience))
			b.accepted <- conn
		}
	})
	t.Cleanup(func() {
		listener.Close()
		running.Wait()
		close(b.accepted)
		for conn := range b.accepted {
			conn.Close()
		}
	})
	return b
}

// next is the next connection the backend was made.
func (b *backend) next(t *testing.T) net.Conn {
	t.Helper()
	select {
	case conn := <-b.accepted:
		t.Cleanup(func() { conn.Close() })
		return conn
	case <-time.After(patience):
		t.Fatal("the server got no connection")
		return nil
	}
}

// open makes a link to a backend.
func open(t *testing.T, options Options) (*Link, *backend) {
	t.Helper()
	b := newBackend(t)
	options.Target = b.listener.Addr().String()
	l, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(l.Close)
	return l, b
}

func dial(t *testing.T, l *Link) *net.TCPConn {
	t.Helper()
	conn, err := net.Dial("tcp", l.Address())
	if err != nil {
		t.Fatal(err)
	}
	conn.SetDeadline(time.Now().Add(patience))
	t.Cleanup(func() { conn.Close() })
	return conn.(*net.TCPConn)
}

// join dials through the link and returns both ends, having exchanged a byte each way.
func join(t *testing.T, l *Link, b *backend) (ends [2]net.Conn) {
	t.Helper()
	client := dial(t, l)
	ends[ToServer] = client
	ends[ToClient] = b.next(t)
	send(t, ends[ToServer], ".")
	expect(t, ends[ToClient], ".")
	send(t, ends[ToClient], ".")
	expect(t, ends[ToServer], ".")
	return ends
}

// source and sink are the ends a direction leads from and to.
func source(ends [2]net.Conn, d Direction) net.Conn { return ends[d] }
func sink(ends [2]net.Conn, d Direction) net.Conn   { return ends[1-d] }

func send(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
}

func expect(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	got := make([]byte, len(text))
	if count, err := io.ReadFull(conn, got); err != nil || string(got) != text {
		t.Fatalf("read %q, %v; want %q", got[:count], err, text)
	}
}

func expectEnd(t *testing.T, conn net.Conn) {
	t.Helper()
	if rest, err := io.ReadAll(conn); err != nil || len(rest) > 0 {
		t.Fatalf("read %q, %v; want the end of the stream", rest, err)
	}
}

func expectReset(t *testing.T, conn net.Conn) {
	t.Helper()
	if rest, err := io.ReadAll(conn); !errors.Is(err, syscall.ECONNRESET) || len(rest) > 0 {
		t.Fatalf("read %q, %v; want a reset", rest, err)
	}
}

// expectRefused dials; the reset may come before or after the dial has returned.
func expectRefused(t *testing.T, l *Link) {
	t.Helper()
	conn, err := net.Dial("tcp", l.Address())
	if err == nil {
		defer conn.Close()
		_, err = io.ReadAll(conn)
	}
	if !errors.Is(err, syscall.ECONNRESET) {
		t.Fatalf("got %v; want a reset", err)
	}
}

func awaitHeld(t *testing.T, l *Link, d Direction, count int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := l.AwaitHeld(ctx, d, count); err != nil {
		t.Fatalf("%d bytes held: %v", l.Held(d), err)
	}
}

// awaitNone returns when the link has no connection.
func awaitNone(t *testing.T, l *Link) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := l.await(ctx, func() bool { return len(l.connections) == 0 }); err != nil {
		t.Fatalf("%d connections: %v", l.Connections(), err)
	}
}

// frame puts the length before a frame's content.
func frame(content []byte) string {
	return string(binary.BigEndian.AppendUint32(nil, uint32(len(content)))) + string(content)
}

// ask is a request with a path.
func ask(xid int32, opcode Opcode, path string) string {
	content := binary.BigEndian.AppendUint32(nil, uint32(xid))
	content = binary.BigEndian.AppendUint32(content, uint32(opcode))
	content = binary.BigEndian.AppendUint32(content, uint32(len(path)))
	return frame(append(content, path...))
}

// reply is the reply to a request.
func reply(xid int32) string {
	content := binary.BigEndian.AppendUint32(nil, uint32(xid))
	return frame(append(content, make([]byte, 12)...))
}

// hello is what opens a session, and what answers it: frames without a header.
var hello = frame(make([]byte, 44))

// greet joins a client and a server that have opened a session.
func greet(t *testing.T, l *Link, b *backend) (client, server net.Conn) {
	t.Helper()
	client = dial(t, l)
	send(t, client, hello)
	server = b.next(t)
	expect(t, server, hello)
	send(t, server, hello)
	expect(t, client, hello)
	return client, server
}
