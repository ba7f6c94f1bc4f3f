package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sidekeeper/sidekeeper/internal/exit"
	"github.com/sidekeeper/sidekeeper/internal/server"
	"github.com/sidekeeper/sidekeeper/internal/supervise"
)

// run is the program. It returns the code to exit with.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	if len(args) > 0 && args[0] == supervise.GuardianCommand {
		return supervise.Guard(args[1:])
	}
	reach := &reach{}
	root := newRootCommand(reach) //nolint:contextcheck // its commands get ctx when they run
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)

	// Whatever fails before a command begins is the fault of how it was called.
	begun := false
	root.PersistentPreRun = func(command *cobra.Command, _ []string) {
		begun = true
		reach.settle(command.Flags())
	}

	working, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	reach.giveUp = giveUp
	err := root.ExecuteContext(working)
	if ctx.Err() == nil && working.Err() != nil && (err == nil || errors.Is(err, context.Canceled)) { // what was lost meanwhile says more
		err = context.Cause(working)
	}
	if err != nil && !begun {
		err = exit.UsageError(err)
	}
	if line := reach.explain(ctx)(err); line != "" {
		_, _ = fmt.Fprintln(stderr, "sidekeeper: "+line) // the code says the same
	}
	return exit.Code(err)
}

func newRootCommand(reach *reach) *cobra.Command {
	root := &cobra.Command{
		Use:           "sidekeeper",
		Short:         "Locks, sequences, membership and configuration on ZooKeeper",
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          explained(cobra.NoArgs),
		RunE:          showHelp,
		Version:       server.ThisBuild().String(),
	}
	root.SetVersionTemplate("{{.Version}}\n")
	reach.addFlags(root.PersistentFlags())
	root.SetUsageFunc(usage)
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(
		newServeCommand(),
		newDevCommand(),
		newLockCommand(reach),
		newSemaphoreCommand(reach),
		newQueueCommand(reach),
		newAgreeCommand(reach),
		newOnceCommand(reach),
		newScheduleCommand(reach),
		newCronCommand(reach),
		newAssignCommand(reach),
		newBarrierCommand(reach),
		newElectCommand(reach),
		newMembersCommand(reach),
		newGroupsCommand(reach),
		newConfigCommand(reach),
		newSequenceCommand(reach),
		newLeasesCommand(reach),
		newTopCommand(reach),
		newConsoleCommand(reach),
		newHealthCommand(reach),
		newDoctorCommand(reach),
		newQuotaCommand(reach),
		newInjectWebhookCommand(),
		newVersionCommand(reach),
	)
	addManuals(root)
	return root
}

// explained has a command say what is right when its arguments are not.
func explained(fit cobra.PositionalArgs) cobra.PositionalArgs {
	return func(command *cobra.Command, args []string) error {
		var names []string
		for _, below := range command.Commands() {
			if below.IsAvailableCommand() {
				names = append(names, below.Name())
			}
		}
		switch {
		case fit(command, args) == nil:
			return nil
		case len(names) > 0:
			return fmt.Errorf("unknown command %q for %q, which has %s", args[0], command.CommandPath(), strings.Join(names, ", "))
		}
		return errors.New("usage: " + command.CommandPath() + strings.TrimPrefix(command.Use, command.Name()))
	}
}

// showHelp is for commands that only group others.
func showHelp(command *cobra.Command, _ []string) error {
	command.SetOut(command.ErrOrStderr())
	if err := command.Help(); err != nil {
		return err
	}
	return exit.UsageError(errors.New("missing subcommand"))
}
