package main

import (
	"cmp"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/sidekeeper/sidekeeper/internal/supervise"
)

// An electRun runs one command while it leads.
type electRun struct {
	claim   supervise.Leadership
	command []string
	wait    time.Duration
	try     bool
	onYield choice
}

func newElectRunCommand(reach *reach) *cobra.Command {
	r := &electRun{onYield: choice{values: []string{"term", "ignore"}}}
	command := &cobra.Command{
		Use:   "run NAME [flags] -- COMMAND [ARGUMENT...]",
		Short: "Run a command while leading an election",
		Args:  r.takeArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			return reach.runUnder(command, &r.claim, r.command)
		},
	}
	flags := command.Flags()
	flags.StringVar(&r.claim.Options.Candidate, "candidate", "",
		"name of this candidate, another one for each (default: this host's name and the process ID)")
	flags.StringVar(&r.claim.Options.Value, "value", "", "what the leader shows to those that observe the election, such as its address")
	flags.Var(span(&r.wait, 0, forever), "wait", "maximum time to wait to be elected (default: no limit)")
	flags.BoolVar(&r.try, "try", false, "do not wait")
	flags.Var(span(&r.claim.KillGrace, 0, forever), "kill-grace",
		"time before the end of the validity at which the command gets SIGTERM (default: a third of the validity)")
	flags.Var(&r.onYield, "on-yield", "what the command gets when the leader is asked to yield: SIGTERM or nothing")
	return command
}

func (r *electRun) takeArguments(command *cobra.Command, args []string) error {
	switch {
	case command.ArgsLenAtDash() != 1 || len(args) < 2:
		return errors.New("usage: sidekeeper elect run NAME -- COMMAND [ARGUMENT...]")
	case r.try && command.Flags().Changed("wait"):
		return errors.New("--try and --wait exclude each other")
	}
	r.claim.Name, r.command = args[0], args[1:]
	r.claim.Terminate = r.onYield.String() == "term"
	options := &r.claim.Options
	options.Candidate = cmp.Or(options.Candidate, supervise.DefaultOwner())
	if r.try || command.Flags().Changed("wait") {
		options.Wait = &r.wait
	}
	return nil
}
