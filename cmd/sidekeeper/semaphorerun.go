package main

import (
	"cmp"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/sidekeeper/sidekeeper/internal/supervise"
)

// A semaphoreRun runs one command while holding permits.
type semaphoreRun struct {
	claim    supervise.Permits
	command  []string
	wait     time.Duration
	rest     time.Duration // of the number, when it was lost
	try      bool
	onRevoke choice
}

func newSemaphoreRunCommand(reach *reach) *cobra.Command {
	r := &semaphoreRun{onRevoke: choice{values: []string{"term", "ignore"}}}
	command := &cobra.Command{
		Use:   "run NAME [flags] -- COMMAND [ARGUMENT...]",
		Short: "Run a command while holding permits of a semaphore",
		Args:  r.takeArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			return reach.runUnder(command, &r.claim, r.command)
		},
	}
	flags := command.Flags()
	r.claim.Options.Permits = 1
	flags.Var(number(&r.claim.Options.Permits, 1, 64), "permits", "how many permits the command takes: 1 to 64")
	flags.BoolVar(&r.claim.Options.Numbered, "numbered", false, "the permit bears a number, which no other holder has")
	r.rest = time.Minute
	flags.Var(span(&r.rest, 0, 24*time.Hour), "quarantine", "time for which the number rests if it is lost")
	flags.Var(span(&r.wait, 0, forever), "wait", "maximum time to wait for the permits (default: no limit)")
	flags.BoolVar(&r.try, "try", false, "do not wait")
	flags.StringVar(&r.claim.Options.Owner, "owner", "", "owner of the permits, for people (default: this host's name and the process ID)")
	flags.Var(span(&r.claim.KillGrace, 0, forever), "kill-grace",
		"time before the end of the validity at which the command gets SIGTERM (default: a third of the validity)")
	flags.Var(&r.onRevoke, "on-revoke", "what the command gets when the permits are revoked: SIGTERM or nothing")
	return command
}

func (r *semaphoreRun) takeArguments(command *cobra.Command, args []string) error {
	switch {
	case command.ArgsLenAtDash() != 1 || len(args) < 2:
		return errors.New("usage: sidekeeper semaphore run NAME -- COMMAND [ARGUMENT...]")
	case r.try && command.Flags().Changed("wait"):
		return errors.New("--try and --wait exclude each other")
	case command.Flags().Changed("quarantine") && !r.claim.Options.Numbered:
		return errors.New("--quarantine: only with --numbered")
	case r.claim.Options.Numbered && r.claim.Options.Permits > 1:
		return errors.New("--numbered: only with one permit")
	}
	r.claim.Name, r.command = args[0], args[1:]
	r.claim.Terminate = r.onRevoke.String() == "term"
	options := &r.claim.Options
	options.Owner = cmp.Or(options.Owner, supervise.DefaultOwner())
	if options.Numbered {
		options.Quarantine = &r.rest
	}
	if r.try || command.Flags().Changed("wait") {
		options.Wait = &r.wait
	}
	return nil
}
