//go:build !windows

package supervise

import (
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sidekeeper/sidekeeper/internal/exit"
)

// A Task is a command to run, and what it is run under.
type Task struct {
	Argv, Environment []string
	Stdin             io.Reader
	Stdout, Stderr    io.Writer

	until      time.Duration // on bootTime: nothing of the command may be left then, unless the guardian hears of a later time; 0 for never
	connection *os.File      // what the command's claim hangs on, or nil: open for as long as anything of the command is left
}

// A Child is a command that a guardian runs for this process.
type Child struct {
	guardian *exec.Cmd
	Exited   chan struct{} // closed when nothing of the command is left that has to go
	farewell *os.File      // where the guardian says that nothing is left that has to go: without that, it was killed
	left     bool          // it has said so
	early    bool          // and that it has ended the command

	mu     sync.Mutex
	orders *net.UnixConn
	over   bool
	ended  bool            // for its claim
	passed [maxSignal]bool // signals that it was sent
	until  time.Duration   // the latest that the guardian was told
}

// forever is until there are no orders any more.
const forever = time.Duration(math.MaxInt64)

// outputTime is how long output is read on that a dead command's own children still write.
const outputTime = time.Second

// KillTime is how long a guardian may take to kill, where it is not told otherwise.
const KillTime = 125 * time.Millisecond

// Start starts a command in a process group of its own, with a guardian as its parent. The connection is closed here.
func Start(t Task) (*Child, error) {
	if t.connection != nil {
		defer t.connection.Close()
	}
	t.until = cmp.Or(t.until, forever)
	if _, err := exec.LookPath(t.Argv[0]); err != nil {
		return nil, err
	}
	reader, writer, err := socketPair()
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	farewell, said, err := os.Pipe()
	if err != nil {
		_ = writer.Close() // nobody reads it
		return nil, err
	}
	defer said.Close()
	foreground := terminalOf(t.Stdin)
	c := &Child{guardian: t.guardian(reader, said), orders: writer, farewell: farewell, Exited: make(chan struct{}), until: t.until}
	if err := startGuardian(c.guardian); err != nil {
		_, _, _ = writer.Close(), farewell.Close(), foreground.Close() // nobody is at the other ends
		return nil, err
	}
	c.order(order{Until: t.until, Foreground: foreground != nil})
	go c.wait(foreground)
	return c, nil
}

// socketPair is what orders go through, and connections with them: what is written to the second comes out of the first.
func socketPair() (reader *os.File, writer *net.UnixConn, err error) {
	syscall.ForkLock.RLock()
	pair, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(pair[0])
		syscall.CloseOnExec(pair[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, nil, err
	}
	reader, second := os.NewFile(uintptr(pair[0]), "orders"), os.NewFile(uintptr(pair[1]), "orders")
	defer second.Close()
	connection, err := net.FileConn(second)
	if err != nil {
		return nil, nil, errors.Join(err, reader.Close())
	}
	return reader, connection.(*net.UnixConn), nil //nolint:forcetypeassert // a pair of such sockets
}

// guardian is this program again, as the guardian of the task.
func (t Task) guardian(orders, farewell *os.File) *exec.Cmd {
	command := exec.Command(ownProgram()) //nolint:gosec,noctx // it is this program, and ends with the command
	command.Args = append([]string{os.Args[0], GuardianCommand, "--"}, t.Argv...)
	command.Env, command.Stdin, command.Stdout, command.Stderr = t.Environment, t.Stdin, t.Stdout, t.Stderr
	command.ExtraFiles = []*os.File{orders, farewell}
	if t.connection != nil {
		command.ExtraFiles = append(command.ExtraFiles, t.connection)
	}
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // what kills this process's group does not kill the guardian
	command.WaitDelay = outputTime
	return command
}

func (c *Child) wait(foreground *os.File) {
	defer close(c.Exited)
	_ = c.guardian.Wait() // ProcessState tells more
	// Its status does not: a Go program that panics or is aborted exits with 2.
	if c.left = c.heardFarewell(); c.left {
		allowOrphans(c.guardian)
	} else {
		endOrphans(c.guardian)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
	_ = c.orders.Close() // it may be closed
	takeTerminalBack(foreground)
}

// heardFarewell says whether the guardian, which has ended, was done.
func (c *Child) heardFarewell() bool {
	defer c.farewell.Close()
	said := make([]byte, 1)
	read, _ := c.farewell.Read(said)
	c.early = read == 1 && said[0] == saidEarly
	return read == 1
}

// order says whether there was a command to give the order for, and a guardian that reads its orders.
func (c *Child) order(o order) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	text, err := json.Marshal(o)
	return err == nil && !c.over && c.send(append(text, '\n'), nil) == nil
}

// send sends a message to the guardian without waiting for it: one that is frozen lets them pile up until there is no room. A message is so
// short that it is taken as a whole or not at all.
func (c *Child) send(message, rights []byte) error {
	raw, err := c.orders.SyscallConn()
	if err != nil {
		return err
	}
	closed := raw.Control(func(socket uintptr) {
		for err = unix.EINTR; errors.Is(err, unix.EINTR); {
			_, err = unix.SendmsgN(int(socket), message, rights, nil, unix.MSG_DONTWAIT)
		}
	})
	return errors.Join(closed, err)
}

// keep has the guardian keep a connection, too, until nothing of the command is left. It has it, read or not, when keep returns.
func (c *Child) keep(connection *os.File) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return nil
	}
	return c.send([]byte("{}\n"), unix.UnixRights(int(connection.Fd())))
}

// Signal sends a signal to the command's process group.
func (c *Child) Signal(number syscall.Signal) {
	if c.order(order{Signal: number}) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.passed[number] = true
	}
}

// Terminate sends SIGTERM because of the claim, and has all killed that the command leaves behind when its group has ended.
func (c *Child) Terminate() {
	if c.order(order{Signal: syscall.SIGTERM, Forced: true}) {
		c.note()
	}
}

// Kill kills the command and all that it has started. A guardian that has not done so in time is frozen, and is ended.
func (c *Child) Kill(inTime time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over || c.orders.Close() != nil {
		return
	}
	c.ended = true
	time.AfterFunc(inTime, func() { endGuardian(c.guardian.Process) })
}

func (c *Child) note() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
}

// wasEnded says whether Terminate or Kill has found a command to end.
func (c *Child) wasEnded() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended
}

// endedEarly says whether the command did not end by itself: it was ended for its claim or by its guardian, its guardian was killed, or it has
// died of a signal that Signal has sent. Only after Exited.
func (c *Child) endedEarly() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	number := c.ExitCode() - exit.Signal
	return c.ended || c.early || !c.left || number > 0 && number < maxSignal && c.passed[number]
}

// maxSignal is more than any signal's number.
const maxSignal = 65

// keepUntil lets the command live until then, on bootTime, if that is later than before.
func (c *Child) keepUntil(then time.Duration) {
	if then-c.until > worthTelling && c.order(order{Until: then}) {
		c.until = then
	}
}

// worthTelling keeps the guardian from being told the same again and again, since times are computed anew each time.
const worthTelling = 10 * time.Millisecond

// hasExited says whether Exited is closed.
func (c *Child) hasExited() bool {
	select {
	case <-c.Exited:
		return true
	default:
		return false
	}
}

// ExitCode is the command's, or 128 and the number of the signal that ended it, which is SIGKILL if its guardian ended first;
// exit.Lost if the guardian killed it. Only after Exited.
func (c *Child) ExitCode() int {
	if !c.left {
		return exit.Signal + int(syscall.SIGKILL)
	}
	return c.guardian.ProcessState.ExitCode()
}

func codeOf(status syscall.WaitStatus) int {
	if status.Signaled() {
		return exit.Signal + int(status.Signal())
	}
	return status.ExitStatus()
}

// terminalOf is the terminal in whose foreground this process is, or nil, also if its input has another source: some programs ask there
// for a password. What is not started by a person with an input has none. A command in a group of its own can only read a terminal if
// its group is made the foreground.
func terminalOf(stdin io.Reader) *os.File {
	if _, ok := stdin.(*os.File); !ok {
		return nil
	}
	terminal, err := os.Open(terminalFile)
	if err != nil {
		return nil
	}
	if foreground, err := foregroundGroup(int(terminal.Fd())); err != nil || foreground != syscall.Getpgrp() {
		_ = terminal.Close() // it was only looked at
		return nil
	}
	return terminal
}
