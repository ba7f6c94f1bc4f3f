// Package supervise runs a command under a claim such as a lock, so that nothing of the command is left when the claim is over.
package supervise

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	"github.com/sidekeeper/sidekeeper/internal/exit"
	"github.com/sidekeeper/sidekeeper/internal/show"
	"github.com/sidekeeper/sidekeeper/internal/sink"
)

// ending are those of them that end a program which waits.
var ending = []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT}

// releaseTime is for how long a claim is given up at least, after a command that was ended for it.
const releaseTime = 500 * time.Millisecond

// betweenExtensions is how often the guardian may hear that the claim is valid for longer.
const betweenExtensions = 100 * time.Millisecond

// A Claim is what a command runs under.
type Claim interface {
	// take waits for the claim.
	take(ctx context.Context, r *Runner) error
	// environment is what the command is told of it.
	environment() []string
	// guarded says whether the command must not outlive the claim.
	guarded() bool
	// left is how long the guardian lets the command live from now if it hears nothing more, and valid whether the claim still stands.
	left() (left time.Duration, valid bool)
	// watch ends the command when it must, until ctx ends, which it does when the command has ended.
	watch(ctx context.Context, child *Child)
	// release gives the claim up. ErrLost is that it was over before the command was.
	release(ctx context.Context) error
	// ended says that the command was ended because of the claim.
	ended() error
}

// A Runner runs one command under a claim.
type Runner struct {
	Command        []string
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Client         *sidekeeper.Client
	Dialer         *Dialer         // of the client
	Away           *Away           // is told when the client waits for its sidecar; may be nil
	Address        string          // of the sidecar, for messages
	Timeout        time.Duration   // of what ends the claim
	Environment    []string        // of the command; nil for that of this process
	Deaf           bool            // signals of this process are not for the command
	Notes          io.Writer       // of what is said about the claim; nil for Stderr
	Killed         <-chan struct{} // has the command killed when it is closed; may be nil

	say func(string, ...any)
}

// Run waits for the claim, runs the command and gives the claim up. The error has the command's exit code; see package exit.
func (r *Runner) Run(ctx context.Context, claim Claim) error {
	if errUnsupported != nil {
		return exit.UsageError(errUnsupported)
	}
	if _, err := exec.LookPath(r.Command[0]); err != nil {
		return exit.NotStarted(err)
	}
	signals := make(chan os.Signal, 16)
	if !r.Deaf {
		signal.Notify(signals, slices.DeleteFunc(slices.Clone(Forwarded), signal.Ignored)...)
		defer signal.Stop(signals)
	}
	say, finish := sayAside(cmp.Or(r.Notes, r.Stderr))
	defer finish()
	r.say = say
	r.Away.Tell(say, r.Address)
	defer r.Away.Tell(nil, "")

	if err := r.take(ctx, claim, signals); err != nil {
		return err
	}
	child, err := r.start(claim)
	if err != nil {
		return errors.Join(exit.NotStarted(err), r.release(claim, r.Timeout))
	}
	r.attend(ctx, claim, child, signals)
	if of, is := claim.(interface{ ran(child *Child) }); is {
		of.ran(child)
	}
	timeout := r.Timeout
	if child.wasEnded() { // to wait for longer than the claim is safe would be in vain
		left, _ := claim.left()
		timeout = min(timeout, max(left, releaseTime))
	}
	return r.outcome(claim, child, r.release(claim, timeout))
}

// sayAside tells people something in a line of its own. This process goes on while stderr's reader stands still, and after it has left.
func sayAside(stderr io.Writer) (say func(string, ...any), finish func()) {
	outliveReaders()
	lines := sink.New(stderr)
	return show.Notes(lines.Log(sink.Options{})), func() { lines.Close() }
}

// outliveReaders has SIGPIPE end nothing. It is not ignored: the command would inherit that.
var outliveReaders = sync.OnceFunc(func() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) })

// take waits for the claim, and gives it up for a signal that ends programs.
func (r *Runner) take(ctx context.Context, claim Claim, signals <-chan os.Signal) error {
	waiting, cancel := context.WithCancelCause(ctx)
	var listening sync.WaitGroup
	defer listening.Wait()
	defer cancel(nil)
	listening.Go(func() { cancelOnSignal(waiting, signals, cancel) })
	return claim.take(waiting, r)
}

func cancelOnSignal(ctx context.Context, signals <-chan os.Signal, cancel context.CancelCauseFunc) {
	for {
		select {
		case got := <-signals:
			if number, _ := got.(syscall.Signal); slices.Contains(ending, got) {
				cancel(exit.With(exit.Signal+int(number), errors.New("given up: "+got.String())))
			}
		case <-ctx.Done():
			return
		}
	}
}

// start starts the command. If it must not outlive its claim, the guardian knows of that and keeps the connection on which it hangs.
func (r *Runner) start(claim Claim) (*Child, error) {
	environment := r.Environment
	if environment == nil {
		environment = os.Environ()
	}
	task := Task{
		Argv: r.Command, Environment: slices.Concat(environment, claim.environment()), Stdin: r.Stdin, Stdout: r.Stdout, Stderr: r.Stderr,
	}
	adoptOrphans() // of a guardian that is killed
	if !claim.guarded() {
		return Start(task)
	}
	connection, err := r.Dialer.first()
	if err != nil {
		return nil, err
	}
	task.connection = connection.file
	task.until, _ = deadline(claim)
	child, err := Start(task)
	if err == nil && r.Dialer.giveTo(child, connection.of) != nil {
		child.Kill(0)
	}
	return child, err
}

// deadline is by when, on bootTime, the guardian has to kill on its own account, by what is known of the claim now.
func deadline(claim Claim) (at time.Duration, valid bool) {
	now := bootTime() // first, since time may pass between the two
	left, valid := claim.left()
	return now + left, valid
}

// attend returns when the command has ended.
func (r *Runner) attend(ctx context.Context, claim Claim, child *Child, signals <-chan os.Signal) {
	watching, stop := context.WithCancel(context.WithoutCancel(ctx))
	var watchers sync.WaitGroup
	defer watchers.Wait()
	defer stop()
	watchers.Go(func() { claim.watch(watching, child) })

	var extending <-chan time.Time
	if claim.guarded() {
		ticker := time.NewTicker(betweenExtensions)
		defer ticker.Stop()
		extending = ticker.C
	}
	cancelled, killed := ctx.Done(), r.Killed
	for {
		select {
		case got := <-signals:
			child.Signal(got.(syscall.Signal)) //nolint:forcetypeassert // every signal of this system is one
		case <-cancelled:
			cancelled = nil
			child.Signal(syscall.SIGTERM)
		case <-killed:
			killed = nil
			child.Kill(KillTime)
		case <-extending:
			if at, valid := deadline(claim); valid {
				child.keepUntil(at)
			}
		case <-child.Exited:
			return
		}
	}
}

// release takes no context: the command is over, whoever has gone away meanwhile.
func (r *Runner) release(claim Claim, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	return claim.release(ctx)
}

// outcome is what the command came to. A release that was not confirmed is no failure of the command.
func (r *Runner) outcome(claim Claim, child *Child, released error) error {
	unrecorded, is := errors.AsType[*unrecorded](released)
	switch {
	case is:
		return exit.With(exit.Lost, fmt.Errorf("the command has succeeded, and that is not recorded: %w", unrecorded))
	case errors.Is(released, sidekeeper.ErrLost):
		return exit.With(exit.Lost, released)
	case child.wasEnded():
		return exit.With(exit.Lost, claim.ended())
	case released != nil:
		r.say("%s", exit.Explain(released, r.Address))
	}
	if code := child.ExitCode(); code != 0 {
		return exit.With(code, nil)
	}
	return nil
}

// DefaultOwner tells people where to look.
func DefaultOwner() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%.100s/%d", host, os.Getpid())
}
