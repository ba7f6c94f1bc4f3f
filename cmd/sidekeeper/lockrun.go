package main

import (
	"cmp"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	"github.com/sidekeeper/sidekeeper/internal/supervise"
)

// A lockRun runs one command while holding a lock.
type lockRun struct {
	claim    supervise.Lock
	names    []string
	command  []string
	mode     choice
	wait     time.Duration
	try      bool
	onRevoke choice

	once   supervise.Once // if it has a key
	onLoss choice
}

func newLockRunCommand(reach *reach) *cobra.Command {
	r := &lockRun{
		mode:     choice{values: []string{"exclusive", "read", "write"}},
		onRevoke: choice{values: []string{"term", "ignore"}},
		onLoss:   choice{values: []string{"retry", "skip"}},
	}
	command := &cobra.Command{
		Use:   "run NAME... [flags] -- COMMAND [ARGUMENT...]",
		Short: "Run a command while holding a lock, or several",
		Args:  r.takeArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			return reach.runUnder(command, r.claimed(), r.command)
		},
	}
	flags := command.Flags()
	flags.Var(&r.mode, "mode", "lock mode: exclusive, or reader or writer of a read/write lock")
	flags.Var(span(&r.wait, 0, forever), "wait", "maximum time to wait for the lock (default: no limit)")
	flags.BoolVar(&r.try, "try", false, "do not wait")
	flags.StringVar(&r.claim.Options.Owner, "owner", "", "owner of the lock, for people (default: this host's name and the process ID)")
	flags.Var(span(&r.claim.KillGrace, 0, forever), "kill-grace",
		"time before the end of the validity at which the command gets SIGTERM (default: a third of the validity)")
	flags.Var(span(&r.claim.Options.LockDelay, 0, time.Minute), "lock-delay",
		"time for which no caller gets the lock if this hold ends without a release: at most 1m (default: none)")
	flags.Var(&r.onRevoke, "on-revoke", "what the command gets when the lock is revoked: SIGTERM or nothing")
	flags.StringVar(&r.once.Key, "once", "", "run the command once for this key, such as a date, and not again after it has succeeded")
	flags.Var(span(&r.once.Options.Keep, time.Second, 366*24*time.Hour), "keep",
		"with --once: how long to remember that the command has succeeded, at most 8784h (default: 168h)")
	flags.Var(&r.onLoss, "on-loss", "with --once: whether to repeat an attempt that was lost, for example with its machine")
	return command
}

func (r *lockRun) takeArguments(command *cobra.Command, args []string) error {
	names := command.ArgsLenAtDash()
	if names < 1 || len(args) <= names {
		return errors.New("usage: sidekeeper lock run NAME... -- COMMAND [ARGUMENT...]")
	}
	if names > mostNames {
		return errors.New("a command runs under at most 16 locks")
	}
	if r.try && command.Flags().Changed("wait") {
		return errors.New("--try and --wait exclude each other")
	}
	if names > 1 && command.Flags().Changed("lock-delay") {
		return errors.New("--lock-delay: only with one lock")
	}
	if err := r.takeOnce(command, names); err != nil {
		return err
	}
	r.names, r.command = args[:names], args[names:]
	r.claim.Name = r.names[0]
	r.claim.Terminate = r.onRevoke.String() == "term"
	options := &r.claim.Options
	options.Mode, options.Owner = modes[r.mode.String()], cmp.Or(options.Owner, supervise.DefaultOwner())
	if r.try || command.Flags().Changed("wait") {
		options.Wait = &r.wait
	}
	return nil
}

// takeOnce refuses what does not go with --once, and what needs it.
func (r *lockRun) takeOnce(command *cobra.Command, names int) error {
	given := command.Flags().Changed
	switch {
	case !given("once") && (given("keep") || given("on-loss")):
		return errors.New("--keep and --on-loss: only with --once")
	case given("once") && (names > 1 || given("mode") || given("lock-delay")):
		return errors.New("--once: only with one lock, and without --mode and --lock-delay")
	case given("once") && r.once.Key == "":
		return errors.New("--once: the key is empty")
	}
	return nil
}

// mostNames is how many locks a command runs under: as many as may guard what it writes.
const mostNames = 16

// claimed is what the command runs under: the lock, or all of several.
func (r *lockRun) claimed() supervise.Claim {
	if r.once.Key != "" {
		r.once.Name, r.once.KillGrace, r.once.Terminate = r.claim.Name, r.claim.KillGrace, r.claim.Terminate
		options := &r.once.Options
		options.PerName, options.SkipLost = true, r.onLoss.String() == "skip"
		options.Owner, options.Wait = r.claim.Options.Owner, r.claim.Options.Wait
		return &r.once
	}
	if len(r.names) == 1 {
		return &r.claim
	}
	several := &supervise.Locks{KillGrace: r.claim.KillGrace, Terminate: r.claim.Terminate}
	for _, name := range r.names {
		several.Wanted = append(several.Wanted, sidekeeper.WantedLock{Name: name, Mode: r.claim.Options.Mode})
	}
	several.Options.Owner, several.Options.Wait = r.claim.Options.Owner, r.claim.Options.Wait
	return several
}

var modes = map[string]sidekeeper.Mode{
	"exclusive": sidekeeper.Exclusive, "read": sidekeeper.Read, "write": sidekeeper.Write,
}

// runUnder runs a program under a claim.
func (r *reach) runUnder(command *cobra.Command, claim supervise.Claim, argv []string) error {
	ctx, err := r.guarded(command.Context())
	if err != nil {
		return err
	}
	client, err := r.dialWith(r.address) //nolint:contextcheck // it lives until Close
	if err != nil {
		return err
	}
	defer client.Close()
	runner := &supervise.Runner{
		Command: argv, Stdin: command.InOrStdin(), Stdout: command.OutOrStdout(), Stderr: command.ErrOrStderr(),
		Client: client, Dialer: &r.dialer, Away: &r.away, Address: r.named(r.address), Timeout: r.timeout,
	}
	return runner.Run(ctx, claim)
}
