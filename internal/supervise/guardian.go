//go:build !windows

package supervise

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"syscall"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/exit"
)

// A guardian is a process of its own, between sidekeeper and the command that it runs under a claim. It outlives a sidekeeper
// that is killed, and goes on beside one that is frozen. It kills the command with all that it has started when nobody gives it orders any
// more, and when the time that it was told last is over; only then it lets go of the connection that the claim hangs on, so
// that the sidecar gives nothing to others before. When the guardian is killed alone, or frozen when it has to kill, sidekeeper
// does that, on Linux; when both are killed, one after the other, the kernel kills the command and nobody what that has started.
type guardian struct {
	orders <-chan order // closed when nobody gives any
	deaths chan os.Signal

	group  int                 // the command's
	status *syscall.WaitStatus // the command's, once it has ended
	alone  bool                // this process has no child any more

	stopped bool          // and waits to be told to go on
	resumed time.Duration // on bootTime: when it was told so last, if ever

	until  time.Duration // on bootTime: kill then
	told   bool          // the command was told to end: it has when its group has
	forced bool          // and nothing else may be left of it either
	kills  int           // how often it was tried
	early  bool          // the command did not end by itself, or never began
}

// An order tells a guardian what to do. Its zero fields change nothing.
type order struct {
	Until      time.Duration  `json:"until,omitempty"`      // see guardian
	Signal     syscall.Signal `json:"signal,omitempty"`     // to pass on
	Forced     bool           `json:"forced,omitempty"`     // see guardian
	Foreground bool           `json:"foreground,omitempty"` // the command gets the terminal; only the first order says so
}

// Forwarded are the signals that the command gets when sidekeeper gets them.
var Forwarded = []os.Signal{
	syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2,
	syscall.SIGWINCH,
}

// errUnsupported is why no command can be run on this system.
var errUnsupported error

const (
	// GuardianCommand is what a sidekeeper is called with that is a guardian.
	GuardianCommand = "guard"
	// ordersDescriptor, where to say farewell, and the connection behind them are what a guardian inherits besides the usual three.
	ordersDescriptor     = 3
	farewellDescriptor   = 4
	connectionDescriptor = 5

	// mostConnections is how many connections are taken in at once: one comes with an order.
	mostConnections = 8

	// longestLook lies between two looks at the clock: timers stand still while the machine is suspended.
	longestLook = 200 * time.Millisecond
	// betweenResumes lies between two times that a command is told to go on, which may stop again at once.
	betweenResumes = time.Second
	// shortestLook lies between two attempts to kill what is left, at first.
	shortestLook = 2 * time.Millisecond
)

// What a guardian says last: its exit code does not tell one from the other, since it may be the command's.
const (
	saidEnded = iota
	saidEarly
)

// Guard is the guardian's process. It returns the code to exit with.
func Guard(argv []string) int {
	syscall.CloseOnExec(ordersDescriptor)
	syscall.CloseOnExec(farewellDescriptor)
	syscall.CloseOnExec(connectionDescriptor)
	orders := json.NewDecoder(newInbox(ordersDescriptor))
	var first order
	if err := orders.Decode(&first); err != nil || len(argv) < 2 { // sidekeeper was killed just now, or is not there at all
		fmt.Fprintln(os.Stderr, "sidekeeper: a guardian is started only by sidekeeper itself")
		return exit.Usage
	}
	runtime.LockOSThread() // see childAttributes
	g := &guardian{deaths: make(chan os.Signal, 1), until: first.Until}
	g.listen(orders)
	code := g.run(argv[1:], first.Foreground)
	farewell := byte(saidEnded)
	if g.early {
		farewell = saidEarly
	}
	_, _ = syscall.Write(farewellDescriptor, []byte{farewell}) // not deferred: a guardian that panics has not done its work
	return code
}

// An inbox reads orders. The connections that come with them stay open for as long as this process lives, which does nothing else with them.
type inbox struct{ net.Conn }

func newInbox(descriptor uintptr) inbox {
	file := os.NewFile(descriptor, "orders")
	defer file.Close()
	from, _ := net.FileConn(file) // nil reads nothing
	return inbox{from}
}

func (i inbox) Read(into []byte) (read int, err error) {
	from, is := i.Conn.(*net.UnixConn)
	if !is {
		return 0, io.ErrUnexpectedEOF
	}
	read, _, _, _, err = from.ReadMsgUnix(into, make([]byte, syscall.CmsgSpace(mostConnections*4))) //nolint:dogsled // as it is
	return read, err
}

// run runs the command. It returns when nothing of it is left that has to go.
func (g *guardian) run(argv []string, foreground bool) int {
	adoptOrphans()
	if g.expired() {
		g.early = true
		return exit.Lost
	}
	if err := g.start(argv, foreground); err != nil {
		fmt.Fprintln(os.Stderr, "sidekeeper: "+err.Error())
		return exit.Code(exit.NotStarted(err))
	}
	return g.watch()
}

// listen has signals pass this process by, which come as orders, and reads these. Nobody has to read what it says.
func (g *guardian) listen(from *json.Decoder) {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	signal.Notify(make(chan os.Signal, 1), slices.DeleteFunc(slices.Clone(Forwarded), signal.Ignored)...)
	signal.Notify(g.deaths, syscall.SIGCHLD)
	orders := make(chan order)
	g.orders = orders
	go func() {
		defer close(orders)
		for o := (order{}); from.Decode(&o) == nil; o = (order{}) {
			orders <- o
		}
	}()
}

func (g *guardian) start(argv []string, foreground bool) error {
	command := exec.Command(argv[0], argv[1:]...) //nolint:gosec,noctx // what the user wants run; ended by watch
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	command.SysProcAttr = childAttributes()
	if terminal, err := os.Open(terminalFile); err == nil {
		defer terminal.Close()
		command.SysProcAttr.Foreground, command.SysProcAttr.Ctty = foreground, int(terminal.Fd())
	}
	if err := command.Start(); err != nil {
		return err
	}
	g.group = command.Process.Pid
	return nil
}

// watch returns when nothing of the command is left that has to go.
func (g *guardian) watch() int {
	for !g.over() {
		select {
		case o, more := <-g.orders:
			g.take(o, more)
		case <-g.deaths:
		case <-time.After(g.pause()):
		}
		g.reap()
		g.resume()
	}
	if g.kills == 0 {
		return codeOf(*g.status)
	}
	g.early = true
	if g.until > 0 {
		select {
		case <-say("the command was killed: its claim was not confirmed in time"):
		case <-time.After(outputTime):
		}
	}
	return exit.Lost
}

// say tells people something. What it returns is closed when somebody can read that.
func say(words string) <-chan struct{} {
	told := make(chan struct{})
	signal.Ignore(syscall.SIGTTOU) // which whoever writes to a terminal from the background may get
	go func() {
		defer close(told)
		fmt.Fprintln(os.Stderr, "sidekeeper: "+words)
	}()
	return told
}

func (g *guardian) take(o order, more bool) {
	if !more {
		g.until, g.orders = 0, nil
		return
	}
	if o.Until > 0 {
		g.until = o.Until
	}
	g.told = g.told || slices.Contains(ending, os.Signal(o.Signal))
	g.forced = g.forced || o.Forced
	if o.Signal != 0 {
		_ = syscall.Kill(-g.group, o.Signal) // it may have ended
	}
}

// reap takes note of what has ended.
func (g *guardian) reap() {
	for {
		var status syscall.WaitStatus
		number, err := syscall.Wait4(-1, &status, syscall.WNOHANG|syscall.WUNTRACED, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil: // there is none
			g.alone = true
			return
		case number == 0:
			return
		case status.Stopped():
			g.stopped = g.stopped || number == g.group && slices.Contains(suspending, status.StopSignal())
		case number == g.group:
			g.status = &status
		}
	}
}

// suspending are the signals by which a terminal stops those that use it. SIGSTOP is none: it comes from whoever wants to stop this
// very command.
var suspending = []syscall.Signal{syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU}

// resume has a command go on that was stopped from the terminal: it would keep its claim for as long as it stands still, and the
// terminal, for whose shell it is not stopped.
func (g *guardian) resume() {
	if !g.stopped || g.resumed != 0 && bootTime() < g.resumed+betweenResumes {
		return
	}
	_ = syscall.Kill(-g.group, syscall.SIGCONT) // it may have ended
	if g.resumed == 0 {
		say("the command cannot be suspended, and goes on")
	}
	g.stopped, g.resumed = false, bootTime()
}

// over says whether nothing of the command is left that has to go, and kills it if it is time.
func (g *guardian) over() bool {
	switch {
	case g.expired():
		return g.killed()
	case g.status == nil || g.told && g.groupLives():
		return false
	case g.forced:
		g.until = 0
		return g.killed()
	default:
		return true
	}
}

func (g *guardian) expired() bool { return g.kills > 0 || bootTime() >= g.until }

// killed says whether nothing of the command is left, and kills what is. What it may not kill, such as a program that has become
// another user's, it waits for.
func (g *guardian) killed() bool {
	if g.alone && !g.groupLives() {
		return true
	}
	g.kills++
	g.killAll()
	return false
}

// pause is how long to wait for news until the next look.
func (g *guardian) pause() time.Duration {
	if g.kills > 0 {
		return min(shortestLook*time.Duration(g.kills), longestLook)
	}
	return min(g.until-bootTime(), longestLook)
}

// groupLives says whether anything is left of the command's process group.
func (g *guardian) groupLives() bool { return !errors.Is(syscall.Kill(-g.group, 0), syscall.ESRCH) }
