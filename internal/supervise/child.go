package supervise

import (
	"cmp"
	"encoding/json"
	"io"
	"math"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

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

	mu     sync.Mutex
	orders *os.File
	over   bool
	ended  bool          // for its claim
	until  time.Duration // the latest that the guardian was told
}

// forever is until there are no orders any more.
const forever = time.Duration(math.MaxInt64)

// outputTime is how long output is read on that a dead command's own children still write.
const outputTime = time.Second

// Start starts a command in a process group of its own, with a guardian as its parent. The connection is closed here.
func Start(t Task) (*Child, error) {
	if t.connection != nil {
		defer t.connection.Close()
	}
	t.until = cmp.Or(t.until, forever)
	if _, err := exec.LookPath(t.Argv[0]); err != nil {
		return nil, err
	}
	reader, writer, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer reader.Close()
	foreground := terminalOf(t.Stdin)
	adoptOrphans()
	c := &Child{guardian: t.guardian(reader), orders: writer, Exited: make(chan struct{}), until: t.until}
	if err := c.guardian.Start(); err != nil {
		_ = writer.Close() // nobody reads it
		return nil, err
	}
	c.order(order{Until: t.until, Foreground: foreground >= 0})
	go c.wait(foreground)
	return c, nil
}

// guardian is this program again, as the guardian of the task.
func (t Task) guardian(orders *os.File) *exec.Cmd {
	command := exec.Command(ownProgram()) //nolint:gosec,noctx // it is this program, and ends with the command
	command.Args = append([]string{os.Args[0], GuardianCommand, "--"}, t.Argv...)
	command.Env, command.Stdin, command.Stdout, command.Stderr = t.Environment, t.Stdin, t.Stdout, t.Stderr
	command.ExtraFiles = []*os.File{orders}
	if t.connection != nil {
		command.ExtraFiles = append(command.ExtraFiles, t.connection)
	}
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // what kills this process's group does not kill the guardian
	command.WaitDelay = outputTime
	return command
}

func (c *Child) wait(foreground int) {
	defer close(c.Exited)
	_ = c.guardian.Wait() // ProcessState tells more
	if c.status().Signaled() {
		endOffspring()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
	_ = c.orders.Close() // it may be closed
	takeTerminalBack(foreground)
}

// order says whether there was a command to give the order for.
func (c *Child) order(o order) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.over && json.NewEncoder(c.orders).Encode(o) == nil
}

// Signal sends a signal to the command's process group.
func (c *Child) Signal(number syscall.Signal) { c.order(order{Signal: number}) }

// Terminate sends SIGTERM because of the claim, and has all killed that the command leaves behind when its group has ended.
func (c *Child) Terminate() {
	if c.order(order{Signal: syscall.SIGTERM, Forced: true}) {
		c.note()
	}
}

// Kill kills the command and all that it has started.
func (c *Child) Kill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	killed := !c.over && c.orders.Close() == nil
	c.ended = c.ended || killed
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

// keepUntil lets the command live until then, on bootTime, if that is later than before.
func (c *Child) keepUntil(then time.Duration) {
	if then-c.until > worthTelling {
		c.until = then
		c.order(order{Until: then})
	}
}

// worthTelling keeps the guardian from being told the same again and again, since times are computed anew each time.
const worthTelling = 10 * time.Millisecond

// ExitCode is the command's, or 128 and the number of the signal that ended it; exit.Lost if the guardian killed it. Only
// after exited.
func (c *Child) ExitCode() int { return codeOf(c.status()) }

func (c *Child) status() syscall.WaitStatus {
	return c.guardian.ProcessState.Sys().(syscall.WaitStatus) //nolint:forcetypeassert // on these systems it is one
}

func codeOf(status syscall.WaitStatus) int {
	if status.Signaled() {
		return exit.Signal + int(status.Signal())
	}
	return status.ExitStatus()
}

// terminalOf is the descriptor of the terminal that this process reads in the foreground, or −1. A command in a group
// of its own can only read a terminal if its group is made the foreground.
func terminalOf(stdin io.Reader) int {
	file, ok := stdin.(*os.File)
	if !ok {
		return -1
	}
	descriptor := int(file.Fd())
	if foreground, err := foregroundGroup(descriptor); err != nil || foreground != syscall.Getpgrp() {
		return -1
	}
	return descriptor
}
