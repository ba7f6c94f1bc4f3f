package server_test

import (
	"context"
	"net"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/caller"
	"github.com/sidekeeper/sidekeeper/internal/server"
)

func cutUnix(address string) (string, bool) { return strings.CutPrefix(address, "unix://") }

// onEach runs a test against a Unix socket and against loopback TCP.
func onEach(t *testing.T, test func(t *testing.T, p *probe), change ...func(*server.Options)) {
	t.Run("unix", func(t *testing.T) { test(t, newProbe(t, change...)) })
	t.Run("tcp", func(t *testing.T) {
		test(t, newProbe(t, append(change, func(o *server.Options) { o.Listen = []string{"127.0.0.1:0"} })...))
	})
}

func TestACallerThatCancelsIsNotSilent(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p *probe) {
		ended := p.watchEnd()
		ctx, cancel := context.WithCancel(within(t))
		p.begin(ctx, p.dial(p.address()))
		cancel()
		same(t, "silent", receive(t, ended).FellSilent(), false)
	})
}

func TestACallersDeadlineIsNotSilence(t *testing.T) {
	t.Parallel()
	p := newProbe(t)
	ended := p.watchEnd()
	ctx, cancel := context.WithTimeout(within(t), 200*time.Millisecond)
	defer cancel()
	p.begin(ctx, p.dial(p.address()))
	same(t, "silent", receive(t, ended).FellSilent(), false)
}

func TestACallerThatClosesItsConnectionIsNotSilent(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p *probe) {
		ended := p.watchEnd()
		connection := p.dial(p.address())
		p.begin(within(t), connection)
		must(t, connection.Close())
		same(t, "silent", receive(t, ended).FellSilent(), false)
	})
}

// The socket is given to a process that knows nothing of it and is killed: what is left to speak is its kernel.
func TestAKilledCallerIsNotSilent(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p *probe) {
		ended := p.watchEnd()
		connection, freezer := p.dialFreezer(p.address())
		p.begin(within(t), connection)
		sleep, err := exec.LookPath("sleep")
		must(t, err)
		socket, err := freezer.Conn.(syscall.Conn).SyscallConn()
		must(t, err)
		process := 0
		must(t, socket.Control(func(descriptor uintptr) { // an os.File of it would have the socket block, and its close wait for a read
			process, err = syscall.ForkExec(sleep, []string{"sleep", "1000"}, &syscall.ProcAttr{Files: []uintptr{descriptor}})
		}))
		must(t, err)
		close(freezer.frozen)
		must(t, freezer.Conn.Close())
		same(t, "connection while the process lives", receive(t, alive(ended)), "open")

		must(t, syscall.Kill(process, syscall.SIGKILL))
		_, err = syscall.Wait4(process, nil, 0, nil)
		must(t, err)
		same(t, "silent", receive(t, ended).FellSilent(), false)
	})
}

// alive says whether nothing has ended yet; a frozen caller is noticed after two minutes at the earliest.
func alive(ended <-chan caller.Caller) <-chan string {
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
	t.Parallel()
	onEach(t, func(t *testing.T, p *probe) {
		ended := p.watchEnd()
		connection, freezer := p.dialFreezer(p.address())
		p.begin(within(t), connection)
		close(freezer.frozen)
		select {
		case end := <-ended:
			same(t, "silent", end.FellSilent(), true)
		case <-time.After(time.Minute):
			t.Fatal("nothing came, with a keepalive of one second and one to answer")
		}
	}, pinging)
}

func TestAResetOnThisMachineIsNotSilence(t *testing.T) {
	t.Parallel()
	p := newProbe(t, func(o *server.Options) { o.Listen = []string{"127.0.0.1:0"} })
	ended := p.watchEnd()
	connection, freezer := p.dialFreezer(p.address())
	p.begin(within(t), connection)
	close(freezer.frozen)
	must(t, freezer.Conn.(*net.TCPConn).SetLinger(0))
	must(t, freezer.Conn.Close())
	same(t, "silent", receive(t, ended).FellSilent(), false)
}

func TestACallersLastStreamsShareTheFinding(t *testing.T) {
	t.Parallel()
	p := newProbe(t, pinging)
	ended := p.watchEnd()
	connection, freezer := p.dialFreezer(p.address())
	ctx, cancel := context.WithCancel(within(t))
	p.begin(ctx, connection)
	cancel()
	same(t, "silent while the connection is open", receive(t, ended).FellSilent(), false)

	p.begin(within(t), connection)
	close(freezer.frozen)
	same(t, "silent", receive(t, ended).FellSilent(), true)
}
