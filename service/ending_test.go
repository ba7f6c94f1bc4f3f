package service

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

func cutUnix(address string) (string, bool) { return strings.CutPrefix(address, unixScheme) }

// onEach runs a test against a Unix socket and against loopback TCP.
func onEach(t *testing.T, test func(t *testing.T, p *probe)) {
	t.Run("unix", func(t *testing.T) { test(t, newProbe(t)) })
	t.Run("tcp", func(t *testing.T) {
		test(t, newProbe(t, func(o *ServerOptions) { o.Listen = []string{"127.0.0.1:0"} }))
	})
}

func TestACallerThatCancelsIsNotSilent(t *testing.T) {
	onEach(t, func(t *testing.T, p *probe) {
		ended := p.watchEnd()
		ctx, cancel := context.WithCancel(within(t))
		p.begin(ctx, p.dial(p.address()))
		cancel()
		same(t, "silent", receive(t, ended).fellSilent(), false)
	})
}

func TestACallersDeadlineIsNotSilence(t *testing.T) {
	p := newProbe(t)
	ended := p.watchEnd()
	ctx, cancel := context.WithTimeout(within(t), 200*time.Millisecond)
	defer cancel()
	p.begin(ctx, p.dial(p.address()))
	same(t, "silent", receive(t, ended).fellSilent(), false)
}

func TestACallerThatClosesItsConnectionIsNotSilent(t *testing.T) {
	onEach(t, func(t *testing.T, p *probe) {
		ended := p.watchEnd()
		connection := p.dial(p.address())
		p.begin(within(t), connection)
		must(t, connection.Close())
		same(t, "silent", receive(t, ended).fellSilent(), false)
	})
}

// The socket is given to a process that knows nothing of it and is killed: what is left to speak is its kernel.
func TestAKilledCallerIsNotSilent(t *testing.T) {
	onEach(t, func(t *testing.T, p *probe) {
		ended := p.watchEnd()
		connection, freezer := p.dialFreezer(p.address())
		p.begin(within(t), connection)
		held, err := freezer.Conn.(interface{ File() (*os.File, error) }).File()
		must(t, err)
		process := exec.Command("sleep", "1000")
		process.ExtraFiles = []*os.File{held}
		must(t, process.Start())
		must(t, held.Close())
		close(freezer.frozen)
		must(t, freezer.Conn.Close())
		same(t, "connection while the process lives", receive(t, alive(ended)), "open")

		must(t, process.Process.Signal(syscall.SIGKILL))
		_ = process.Wait()
		same(t, "silent", receive(t, ended).fellSilent(), false)
	})
}

// alive says whether nothing has ended yet; a frozen caller is noticed after two seconds at the earliest.
func alive(ended <-chan caller) <-chan string {
	state := make(chan string, 1)
	select {
	case <-ended:
		state <- "ended"
	default:
		state <- "open"
	}
	return state
}

func TestAFrozenCallerIsSilent(t *testing.T) {
	onEach(t, func(t *testing.T, p *probe) {
		ended := p.watchEnd()
		connection, freezer := p.dialFreezer(p.address())
		p.begin(within(t), connection)
		began := time.Now()
		close(freezer.frozen)
		same(t, "silent", receive(t, ended).fellSilent(), true)
		if noticed := time.Since(began); noticed > 4*time.Second {
			t.Errorf("noticed after %v, with a keepalive of one second and one to answer", noticed)
		}
	})
}

func TestAResetOnThisMachineIsNotSilence(t *testing.T) {
	p := newProbe(t, func(o *ServerOptions) { o.Listen = []string{"127.0.0.1:0"} })
	ended := p.watchEnd()
	connection, freezer := p.dialFreezer(p.address())
	p.begin(within(t), connection)
	close(freezer.frozen)
	must(t, freezer.Conn.(*net.TCPConn).SetLinger(0))
	must(t, freezer.Conn.Close())
	same(t, "silent", receive(t, ended).fellSilent(), false)
}

func TestACallersLastStreamsShareTheVerdict(t *testing.T) {
	p := newProbe(t)
	ended := p.watchEnd()
	connection, freezer := p.dialFreezer(p.address())
	ctx, cancel := context.WithCancel(within(t))
	p.begin(ctx, connection)
	cancel()
	same(t, "silent while the connection is open", receive(t, ended).fellSilent(), false)

	p.begin(within(t), connection)
	close(freezer.frozen)
	same(t, "silent", receive(t, ended).fellSilent(), true)
}

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
		{syscall.ECONNRESET, closed, silent},
		{&net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)}, closed, silent},
		{&net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ETIMEDOUT)}, silent, silent},
		{syscall.EHOSTUNREACH, silent, silent},
		{net.ErrClosed, silent, silent},
		{errors.New("anything else"), silent, silent},
	} {
		for isLocal, want := range map[bool]string{true: test.local, false: test.remote} {
			conn := &rawConn{ending: newEnding(), local: isLocal}
			conn.judge(test.err)
			got := map[int32]string{connectionOpen: open, connectionClosed: closed, connectionLost: silent}[conn.ending.verdict.Load()]
			if got != want {
				t.Errorf("%v, local %v: %s, want %s", test.err, isLocal, got, want)
			}
		}
	}
}

// failingReader is a TLS connection without the socket below it.
type failingReader struct{ net.Conn }

func (failingReader) Read([]byte) (int, error) { return 0, io.EOF }

func TestTheFirstVerdictStands(t *testing.T) {
	lost := newEnding()
	lost.lose()
	_, _ = (&tlsConn{failingReader{}, lost}).Read(nil)
	same(t, "silent after an end of file that follows the loss", lost.silent(), true)

	closed := newEnding()
	_, _ = (&tlsConn{failingReader{}, closed}).Read(nil)
	closed.lose()
	same(t, "silent after a close_notify", closed.silent(), false)
}

// A TCP connection whose error a Write has been told already shows its reader an end of file.
func TestAnEndOfFileWithoutAFinIsSilence(t *testing.T) {
	client, socket := connected(t)
	must(t, client.SetLinger(0))
	must(t, client.Close())

	conn := &rawConn{Conn: socket, ending: newEnding()}
	_, err := socket.Read(make([]byte, 1)) // takes the socket's error away
	if !errors.Is(err, syscall.ECONNRESET) {
		t.Fatalf("read: %v", err)
	}
	_, err = conn.Read(make([]byte, 1))
	same(t, "read after that", err, io.EOF)
	same(t, "silent", conn.ending.silent(), true)
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
