package caller

import (
	"errors"
	"io"
	"net"
	"os"
	"syscall"
	"testing"
	"time"
)

// A roomy slot takes everybody.
type roomy struct{}

func (roomy) Identify(string) error { return nil }
func (roomy) Pace()                 {}
func (roomy) Leave()                {}

type timeout struct{}

func (timeout) Error() string   { return "i/o timeout" }
func (timeout) Timeout() bool   { return true }
func (timeout) Temporary() bool { return true }

func TestWhatASocketsErrorSaysAboutThePeer(t *testing.T) {
	const open, closed, silent = "open", "closed", "silent"
	for _, test := range []struct {
		err           error
		local, remote string
	}{
		{nil, open, open},
		{timeout{}, open, open},
		{os.ErrDeadlineExceeded, open, open},
		{io.EOF, closed, silent},
		{syscall.ECONNRESET, closed, silent},
		{&net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)}, closed, silent},
		{&net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ETIMEDOUT)}, silent, silent},
		{syscall.EHOSTUNREACH, silent, silent},
		{net.ErrClosed, silent, silent},
		{errors.New("anything else"), silent, silent},
	} {
		for isLocal, want := range map[bool]string{true: test.local, false: test.remote} {
			conn := &rawConn{ending: newEnding(), local: isLocal}
			conn.classify(test.err)
			got := map[int32]string{connectionOpen: open, connectionClosed: closed, connectionLost: silent}[conn.ending.state.Load()]
			if got != want {
				t.Errorf("%v, local %v: %s, want %s", test.err, isLocal, got, want)
			}
		}
	}
}

// notified is a TLS connection that has read a close_notify.
type notified struct{ net.Conn }

func (notified) Read([]byte) (int, error) { return 0, io.EOF }

func TestTheFirstFindingStands(t *testing.T) {
	client, socket := connected(t)
	must(t, client.Close())
	conn := &rawConn{Conn: socket, ending: newEnding(), slot: roomy{}, local: true}
	conn.ending.lose()
	_, err := conn.Read(make([]byte, 1))
	same(t, "read", err, io.EOF)
	same(t, "silent after an end of file that follows the loss", conn.ending.silent(), true)
}

// Whoever says that it closes a connection may not be the last who has it.
func TestACloseNotifyIsNotTheEndOfTheSocket(t *testing.T) {
	for silent, end := range map[bool]func(client, socket *net.TCPConn) error{
		true:  func(_, socket *net.TCPConn) error { return socket.SetReadDeadline(time.Now()) },
		false: func(client, _ *net.TCPConn) error { return client.Close() },
	} {
		client, socket := connected(t)
		conn := &rawConn{Conn: socket, ending: newEnding(), slot: roomy{}, local: true}
		must(t, end(client, socket))
		_, err := (&tlsConn{notified{}, conn}).Read(nil)
		same(t, "read", err, io.EOF)
		must(t, conn.Close())
		same(t, "silent", conn.ending.silent(), silent)
	}
}

// A TCP connection whose error a Write has been told already shows its reader an end of file.
func TestAnEndOfFileWithoutAFinIsSilence(t *testing.T) {
	client, socket := connected(t)
	must(t, client.SetLinger(0))
	must(t, client.Close())

	conn := &rawConn{Conn: socket, ending: newEnding(), slot: roomy{}, local: true}
	_, err := socket.Read(make([]byte, 1)) // takes the socket's error away
	if !errors.Is(err, syscall.ECONNRESET) {
		t.Fatalf("read: %v", err)
	}
	_, err = conn.Read(make([]byte, 1))
	same(t, "read after that", err, io.EOF)
	same(t, "silent", conn.ending.silent(), true)
}

// A library for HTTP, or a proxy, closes its connection while its caller counts on what it was told.
func TestACallerOverHTTPHasNotLeftWhoeverEndsItsConnection(t *testing.T) {
	for _, end := range []func(ours, theirs net.Conn) error{
		func(ours, _ net.Conn) error { return ours.Close() },
		func(_, theirs net.Conn) error { return theirs.Close() },
	} {
		ours, theirs := net.Pipe()
		handshake := Handshake{Admit: func(io.Closer) (Slot, error) { return roomy{}, nil }}
		conn, info, err := handshake.ServerHandshake(Identified{Conn: ours, Identity: "dns:app.test"})
		must(t, err)
		must(t, end(conn, theirs))
		_, err = conn.Read(make([]byte, 1))
		same(t, "ended", err != nil, true)
		select {
		case <-info.(Caller).Left():
			t.Error("the caller counts as one that has left")
		default:
		}
	}
}

// connected are both ends of a TCP connection, which are closed with the test.
func connected(t *testing.T) (client, socket *net.TCPConn) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer listener.Close()
	dialled, err := net.Dial("tcp", listener.Addr().String())
	must(t, err)
	t.Cleanup(func() { _ = dialled.Close() })
	accepted, err := listener.Accept()
	must(t, err)
	t.Cleanup(func() { _ = accepted.Close() })
	return dialled.(*net.TCPConn), accepted.(*net.TCPConn)
}
