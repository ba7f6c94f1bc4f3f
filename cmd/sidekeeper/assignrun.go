package main

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	"github.com/sidekeeper/sidekeeper/internal/exit"
	"github.com/sidekeeper/sidekeeper/internal/show"
	"github.com/sidekeeper/sidekeeper/internal/sink"
	"github.com/sidekeeper/sidekeeper/internal/supervise"
	"github.com/sidekeeper/sidekeeper/recipes"
)

// errEnded is why the work ends that a signal has ended.
var errEnded = errors.New("ended by a signal")

// An assignRun runs a command for each item that a member of a set has.
type assignRun struct {
	reach     *reach
	set       string
	argv      []string
	capacity  int
	killGrace time.Duration
	options   sidekeeper.ShareOptions

	stdout, stderr io.Writer
	client         *sidekeeper.Client
	notes          io.Writer
	say            func(string, ...any)
	killed         chan struct{} // closed when commands are to be killed
}

func newAssignRunCommand(reach *reach) *cobra.Command {
	a := &assignRun{reach: reach, killGrace: 10 * time.Second, killed: make(chan struct{})}
	command := &cobra.Command{
		Use:   "run SET [flags] -- COMMAND [ARGUMENT...]",
		Short: "Run a command for each item that this member has",
		Args:  a.takeArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			a.stdout, a.stderr = command.OutOrStdout(), command.ErrOrStderr()
			lines := sink.New(a.stderr)
			defer lines.Close()
			a.notes = lines.Log(sink.Options{})
			a.say = show.Notes(a.notes)
			return a.run(command.Context())
		},
	}
	flags := command.Flags()
	flags.StringVar(&a.options.Member, "member", "", "name of the member, another one for each process (default: this host's name)")
	flags.Var(number(&a.capacity, 0, recipes.MaxSetItems), "capacity", "how many items the member takes (default: as many as it gets)")
	flags.Var(span(&a.killGrace, 0, forever), "kill-grace", "time after SIGTERM at which a command gets SIGKILL")
	flags.StringVar(&a.options.Owner, "owner", "", "owner of the member and its locks, for people (default: this host's name and the process ID)")
	return command
}

func (a *assignRun) takeArguments(command *cobra.Command, args []string) error {
	if command.ArgsLenAtDash() != 1 || len(args) < 2 {
		return errors.New("usage: sidekeeper assign run SET -- COMMAND [ARGUMENT...]")
	}
	a.set, a.argv = args[0], args[1:]
	if command.Flags().Changed("capacity") {
		a.options.Capacity = &a.capacity
	}
	a.options.Owner = cmp.Or(a.options.Owner, supervise.DefaultOwner())
	return nil
}

// run returns when it was told to end, or cannot go on, and no command runs any more.
func (a *assignRun) run(ctx context.Context) (err error) {
	if _, err := exec.LookPath(a.argv[0]); err != nil {
		return exit.NotStarted(err)
	}
	if a.client, err = a.reach.dialWith(a.reach.address); err != nil { //nolint:contextcheck // it lives until Close
		return err
	}
	defer a.client.Close()
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // the readers of the output may leave
	a.reach.away.Tell(a.say, a.reach.named(a.reach.address))
	a.options.OnAssigned, a.options.OnError, a.options.OnSuspended = a.assigned, a.failed, a.suspended
	a.options.OnResumed = func() { a.say("contact with the ensemble is back") }

	working, end := context.WithCancelCause(ctx)
	helping, stop := context.WithCancel(ctx)
	var helpers sync.WaitGroup
	defer helpers.Wait()
	defer stop()
	defer end(nil)
	helpers.Go(func() { supervise.ReapOrphans(helping) })
	helpers.Go(func() { a.heed(helping, end) })
	err = a.client.Share(working, a.set, a.work, a.options)
	switch {
	case !errors.Is(err, errEnded) || errors.Is(err, sidekeeper.ErrLost):
		return err
	case errors.Is(err, sidekeeper.ErrReleaseUnconfirmed):
		a.say("%s", exit.Explain(err, a.reach.named(a.reach.address)))
	}
	return nil
}

// heed has a first signal end the work, and a second one kill the commands.
func (a *assignRun) heed(ctx context.Context, end context.CancelCauseFunc) {
	signals := make(chan os.Signal, 8)
	heeded := []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT}
	signal.Notify(signals, slices.DeleteFunc(heeded, signal.Ignored)...)
	defer signal.Stop(signals)
	for asked := 0; ; {
		select {
		case <-ctx.Done():
			return
		case got := <-signals:
			switch asked++; asked {
			case 1:
				a.say("%v: ends when the commands have ended", got)
				end(errEnded)
			case 2:
				close(a.killed)
			}
		}
	}
}

// work runs the command for an item.
func (a *assignRun) work(ctx context.Context, item *sidekeeper.Item) error {
	runner := &supervise.Runner{
		Command: a.argv, Stdout: a.stdout, Stderr: a.stderr, Deaf: true, Notes: a.notes, Killed: a.killed, Client: a.client,
		Dialer: &a.reach.dialer, Address: a.reach.named(a.reach.address), Timeout: a.reach.timeout,
	}
	claim := &supervise.Item{Item: item, Working: ctx, KillGrace: a.killGrace}
	err := runner.Run(context.WithoutCancel(ctx), claim)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

func (a *assignRun) assigned(of sidekeeper.Assignment) {
	a.reach.away.Tell(a.say, a.reach.named(a.reach.address))
	a.say("%s of %s has %d of %d items; members: %d, items without a member: %d", show.Printable(a.options.Member), show.Printable(a.set),
		len(of.Items), of.Total, of.Members, of.Unassigned)
}

func (a *assignRun) failed(item string, err error) {
	a.say("%s: %s", show.Printable(cmp.Or(item, a.set)), cmp.Or(exit.Explain(err, a.reach.named(a.reach.address)), err.Error()))
}

func (a *assignRun) suspended(remaining time.Duration) {
	a.say("no contact with the ensemble: the items are safe for %v", remaining.Round(100*time.Millisecond))
}
