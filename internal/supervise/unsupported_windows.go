package supervise

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/exit"
)

// Windows has neither process groups that a signal reaches, nor descriptors that a guardian inherits as they are: nothing here would end a
// command for certain before its claim does.
var errUnsupported = errors.New("commands are run under a claim on Linux and macOS only: on Windows, hold it with one of the client libraries")

// Forwarded are the signals that the command gets when sidekeeper gets them.
var Forwarded = []os.Signal{syscall.SIGINT, syscall.SIGTERM}

const (
	// GuardianCommand is what a sidekeeper is called with that is a guardian.
	GuardianCommand = "guard"
	// KillTime is how long a guardian may take to kill, where it is not told otherwise.
	KillTime = 125 * time.Millisecond

	outputTime = time.Second
)

// Guard is the guardian's process, of which there is none here.
func Guard([]string) int {
	fmt.Fprintln(os.Stderr, "sidekeeper: "+errUnsupported.Error())
	return exit.Usage
}

// A Dialer connects to the sidecar.
type Dialer struct{ net.Dialer }

// Dial is for sidekeeper.WithDialer.
func (d *Dialer) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	return d.DialContext(ctx, network, address)
}

type kept struct {
	of   syscall.Conn
	file *os.File
}

func (d *Dialer) first() (kept, error) { return kept{}, errUnsupported }

func (d *Dialer) giveTo(*Child, syscall.Conn) error { return errUnsupported }

// A Task is a command to run, and what it is run under.
type Task struct {
	Argv, Environment []string
	Stdin             io.Reader
	Stdout, Stderr    io.Writer

	until      time.Duration
	connection *os.File
}

// A Child is a command that runs, of which there is none here.
type Child struct{ Exited chan struct{} }

// Start fails.
func Start(Task) (*Child, error) { return nil, errUnsupported }

// Signal does nothing.
func (c *Child) Signal(syscall.Signal) {}

// Terminate does nothing.
func (c *Child) Terminate() {}

// Kill does nothing.
func (c *Child) Kill(time.Duration) {}

// ExitCode is that of a failure.
func (c *Child) ExitCode() int { return exit.Failed }

func (c *Child) wasEnded() bool { return false }

func (c *Child) endedEarly() bool { return false }

func (c *Child) keepUntil(time.Duration) {}

func adoptOrphans() {}

// ReapOrphans does nothing.
func ReapOrphans(context.Context) {}

func isTerminal(io.Writer) bool { return false }

func bootTime() time.Duration { return 0 }
