package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	sidekeeper "github.com/sidekeeper/sidekeeper/clients/go"
)

// forwarded are the signals that the command gets when sidekeeper gets them.
var forwarded = []os.Signal{
	syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2,
	syscall.SIGWINCH,
}

// ending are those of them that end a program which waits.
var ending = []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT}

// killMargin is how long before the end of the validity a command gets SIGKILL, at most.
const killMargin = 500 * time.Millisecond

// betweenExtensions is how often the guardian may hear that the lock is valid for longer.
const betweenExtensions = 100 * time.Millisecond

// sayAside tells people something in a line of its own, whoever reads stderr: if nobody does any more, or for now, this process
// goes on all the same. finish returns when all is told, or after a while.
func sayAside(stderr io.Writer) (say func(string, ...any), finish func()) {
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // not ignored: the command would inherit that
	lines, told := make(chan string, 100), make(chan struct{})
	go func() {
		defer close(told)
		for line := <-lines; line != ""; line = <-lines {
			_, _ = io.WriteString(stderr, line)
		}
	}()
	say = func(format string, words ...any) {
		select {
		case lines <- fmt.Sprintf("sidekeeper: "+format+"\n", words...):
		default: // nobody has read for long
		}
	}
	finish = func() {
		late := time.After(outputTime)
		select {
		case lines <- "":
		case <-late:
			return
		}
		select {
		case <-told:
		case <-late:
		}
	}
	return say, finish
}

// A supervisor sees to it that a command does not outlive its lock.
type supervisor struct {
	lock      *sidekeeper.Lock
	child     *child
	grace     time.Duration // less than this left: SIGTERM
	margin    time.Duration // less than this left: SIGKILL; less than half of it: the guardian kills by itself
	terminate bool          // when somebody asks for the lock
	say       func(string, ...any)
	endedIt   atomic.Bool
}

// newSupervisor takes the validity told last for the usual one, unless a grace is set.
func newSupervisor(lock *sidekeeper.Lock, r *lockRun, say func(string, ...any)) *supervisor {
	grace := r.killGrace
	if grace == 0 {
		grace = lock.ValidFor() / 3
	}
	return &supervisor{
		lock: lock, grace: grace, margin: min(grace/5, killMargin),
		terminate: r.onRevoke.String() == "term", say: say,
	}
}

// start starts the command, with a guardian that knows of the lock and keeps the connection on which it hangs.
func (s *supervisor) start(t task, over *line) (err error) {
	if t.connection, err = over.hold(); err != nil {
		return err
	}
	t.until = s.until()
	adoptOrphans() // of a guardian that is killed
	s.child, err = startChild(t)
	return err
}

// run returns when the command has ended.
func (s *supervisor) run(ctx context.Context, signals <-chan os.Signal) {
	guarding, stop := context.WithCancel(context.WithoutCancel(ctx))
	var guards sync.WaitGroup
	defer guards.Wait()
	defer stop()
	guards.Go(func() { s.guard(guarding) })

	cancelled := ctx.Done()
	extending := time.NewTicker(betweenExtensions)
	defer extending.Stop()
	var deadline <-chan time.Time
	for {
		select {
		case got := <-signals:
			s.child.signal(got.(syscall.Signal)) //nolint:forcetypeassert // every signal of this system is one
		case <-cancelled:
			cancelled = nil
			s.child.signal(syscall.SIGTERM)
		case revocation := <-s.lock.Revocation():
			deadline = s.revoked(revocation)
		case <-deadline:
			s.kill()
			s.say("the grace is over")
		case <-extending.C:
			s.child.keepUntil(s.until())
		case <-s.child.exited:
			return
		}
	}
}

// guard ends the command before its lock ends.
func (s *supervisor) guard(ctx context.Context) {
	if s.lock.AwaitRisk(ctx, s.grace) != nil {
		return
	}
	if s.lock.Valid() { // else the release will say why not
		s.say("the lock is at risk: safe for %v", s.lock.ValidFor().Round(time.Millisecond))
	}
	if s.child.force(syscall.SIGTERM) {
		s.endedIt.Store(true)
	}
	if s.lock.AwaitRisk(ctx, s.margin) == nil {
		s.kill()
	}
}

// kill ends the command, with all that it has started, because of the lock.
func (s *supervisor) kill() {
	if s.child.kill(s.margin / 4) { // which leaves the rest of the margin for what has to be done without the guardian
		s.endedIt.Store(true)
	}
}

// until is by when the guardian has to kill on its own account, by what is known of the lock's validity now.
func (s *supervisor) until() time.Duration {
	return bootTime() + s.lock.ValidFor() - s.margin/2 // in this order: time may pass between the two
}

// ended says whether the command got a signal because of the lock.
func (s *supervisor) ended() bool { return s.endedIt.Load() }

// revoked returns when to kill the command, if ever: the hold ends with the grace. A command that lets go in time when
// it is asked has lost nothing.
func (s *supervisor) revoked(r sidekeeper.Revocation) <-chan time.Time {
	s.say("%s asks for the lock: %s", printable(r.RequestedBy), printable(r.Reason))
	if s.terminate {
		s.child.signal(syscall.SIGTERM)
	}
	if r.Deadline.IsZero() {
		return nil
	}
	return time.After(time.Until(r.Deadline) - s.margin)
}
