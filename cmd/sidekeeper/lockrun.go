package main

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
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	sidekeeper "github.com/sidekeeper/sidekeeper/clients/go"
)

// A lockRun runs one command while holding a lock.
type lockRun struct {
	reach     *reach
	name      string
	command   []string
	mode      choice
	wait      time.Duration
	try       bool
	owner     string
	killGrace time.Duration
	onRevoke  choice
}

func newLockRunCommand(reach *reach) *cobra.Command {
	r := &lockRun{
		reach:    reach,
		mode:     choice{values: []string{"exclusive", "read", "write"}},
		onRevoke: choice{values: []string{"term", "ignore"}},
	}
	command := &cobra.Command{
		Use:   "run NAME [flags] -- COMMAND [ARGUMENT...]",
		Short: "Run a command while holding a lock",
		Args:  r.takeArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			return r.run(command.Context(), command.InOrStdin(), command.OutOrStdout(), command.ErrOrStderr())
		},
	}
	flags := command.Flags()
	flags.Var(&r.mode, "mode", "how to hold the lock: alone, or as one of the readers or the writer of a read/write lock")
	flags.DurationVar(&r.wait, "wait", 0, "how long to wait for the lock at most (default: for ever)")
	flags.BoolVar(&r.try, "try", false, "do not wait")
	flags.StringVar(&r.owner, "owner", "", "who holds the lock, for people (default: this host's name and the process's number)")
	flags.DurationVar(&r.killGrace, "kill-grace", 0,
		"how long before the lock may be another's the command gets SIGTERM (default: a third of its validity)")
	flags.Var(&r.onRevoke, "on-revoke", "what the command gets when somebody asks for the lock: SIGTERM or nothing")
	return command
}

// defaultOwner tells people where to look.
func defaultOwner() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%.100s/%d", host, os.Getpid())
}

func (r *lockRun) takeArguments(command *cobra.Command, args []string) error {
	if command.ArgsLenAtDash() != 1 || len(args) < 2 {
		return errors.New("say it like this: sidekeeper lock run NAME -- COMMAND [ARGUMENT...]")
	}
	if r.try && command.Flags().Changed("wait") {
		return errors.New("--try does not wait: leave --wait away")
	}
	if r.wait < 0 || r.killGrace < 0 {
		return errors.New("a time cannot be negative")
	}
	r.name, r.command = args[0], args[1:]
	return nil
}

func (r *lockRun) run(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer) error {
	if _, err := exec.LookPath(r.command[0]); err != nil {
		return exitError{exitNoCommand, err}
	}
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, slices.DeleteFunc(slices.Clone(forwarded), signal.Ignored)...)
	defer signal.Stop(signals)

	say, finish := sayAside(stderr)
	defer finish()
	client, err := r.reach.dial(r.reach.address) //nolint:contextcheck // it lives until Close
	if err != nil {
		return err
	}
	defer client.Close()
	lock, err := r.acquire(ctx, client, signals, say)
	if err != nil {
		return err
	}
	supervisor := newSupervisor(lock, r, say)
	err = supervisor.start(task{
		argv: r.command, environment: environment(lock, r.name), stdin: stdin, stdout: stdout, stderr: stderr,
	}, &r.reach.line)
	if err != nil {
		return errors.Join(exitError{exitNoCommand, err}, r.release(lock)) //nolint:contextcheck // see release
	}
	supervisor.run(ctx, signals)
	if supervisor.ended() { // to wait for longer than the lock is safe would be in vain
		r.reach.timeout = min(r.reach.timeout, max(lock.ValidFor(), killMargin))
	}
	return r.outcome(supervisor, r.release(lock), say) //nolint:contextcheck // see release
}

func environment(lock *sidekeeper.Lock, name string) []string {
	return append(os.Environ(),
		"SIDEKEEPER_FENCING_TOKEN="+strconv.FormatInt(lock.FencingToken(), 10), "SIDEKEEPER_LOCK_NAME="+name)
}

// acquire waits for the lock or for a signal that ends programs, and gives the place up then.
func (r *lockRun) acquire(
	ctx context.Context, client *sidekeeper.Client, signals <-chan os.Signal, say func(string, ...any),
) (*sidekeeper.Lock, error) {
	waiting, cancel := context.WithCancelCause(ctx)
	var listening sync.WaitGroup
	defer listening.Wait()
	defer cancel(nil)
	listening.Go(func() { cancelOnSignal(waiting, signals, cancel) })
	return client.Acquire(waiting, r.name, r.options(say))
}

func cancelOnSignal(ctx context.Context, signals <-chan os.Signal, cancel context.CancelCauseFunc) {
	for {
		select {
		case got := <-signals:
			if number, _ := got.(syscall.Signal); slices.Contains(ending, got) {
				cancel(exitError{exitSignal + int(number), errors.New("given up: " + got.String())})
			}
		case <-ctx.Done():
			return
		}
	}
}

func (r *lockRun) options(say func(string, ...any)) sidekeeper.LockOptions {
	options := sidekeeper.LockOptions{
		Mode: modes[r.mode.String()], Owner: cmp.Or(r.owner, defaultOwner()),
		OnSuspended: func(remaining time.Duration) {
			say("no contact with the ensemble: lock %s is safe for %v", r.name, remaining.Round(100*time.Millisecond))
		},
		OnResumed:            func() { say("contact with the ensemble is back") },
		AcknowledgeOnRelease: true, // when the command is dead
	}
	switch {
	case r.try:
		options.Wait = new(time.Duration)
	case r.wait > 0:
		options.Wait = &r.wait
	}
	return options
}

var modes = map[string]sidekeeper.Mode{
	"exclusive": sidekeeper.Exclusive, "read": sidekeeper.Read, "write": sidekeeper.Write,
}

// release takes no context: the command is over, whoever has gone away meanwhile.
func (r *lockRun) release(lock *sidekeeper.Lock) error {
	ctx, cancel := context.WithTimeout(context.Background(), r.reach.timeout)
	defer cancel()
	return lock.Release(ctx)
}

// outcome is what the command came to. A release that was not confirmed is no failure of the command.
func (r *lockRun) outcome(s *supervisor, released error, say func(string, ...any)) error {
	switch {
	case errors.Is(released, sidekeeper.ErrLost):
		return exitError{exitLost, released}
	case s.ended():
		return exitError{exitLost, fmt.Errorf("lock %s was at risk, and the command ended for it", r.name)}
	case released != nil:
		say("%s", explain(released, r.reach.last))
	}
	if code := s.child.exitCode(); code != 0 {
		return exitError{code: code}
	}
	return nil
}
