package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	"github.com/sidekeeper/sidekeeper/internal/configsync"
	"github.com/sidekeeper/sidekeeper/internal/exit"
	"github.com/sidekeeper/sidekeeper/internal/sink"
)

func newConfigExportCommand(reach *reach) *cobra.Command {
	to, format := "", choice{values: []string{"yaml"}}
	command := entry("export PREFIX", "Write all keys of a prefix as YAML, or as files",
		cobra.ExactArgs(1), reach.completeKey, func(command *cobra.Command, args []string) error {
			if reach.json() || to != "" && command.Flags().Changed("format") {
				return exit.UsageError(errors.New("export writes YAML, or with --to files; for JSON there is `config ls --output json`"))
			}
			return reach.call(command.Context(), reach.address, func(ctx context.Context, client *sidekeeper.Client) error {
				return configsync.Export(ctx, client.Config(), prefixOf(args), to, command.OutOrStdout())
			})
		})
	command.Flags().StringVar(&to, "to", "", "folder to write files to, which must be empty or missing")
	command.Flags().Var(&format, "format", "output format")
	return command
}

func newConfigImportCommand(reach *reach) *cobra.Command {
	i := &configsync.Import{}
	command := entry("import PREFIX FOLDER|FILE.yaml|-", "Write the keys of a prefix from YAML or from files",
		cobra.ExactArgs(2), reach.completeKeyThenFile, func(command *cobra.Command, args []string) error {
			i.Prefix, i.JSON = prefixOf(args), reach.json()
			if err := i.Read(command.InOrStdin(), args[1]); err != nil {
				return exit.UsageError(err)
			}
			return reach.call(command.Context(), reach.address, func(ctx context.Context, client *sidekeeper.Client) error {
				return i.Run(ctx, client.Config(), command.OutOrStdout())
			})
		})
	command.Flags().BoolVar(&i.Prune, "prune", false, "delete keys of the prefix that are not in the source")
	command.Flags().BoolVar(&i.DryRun, "dry-run", false, "print the changes without making them")
	return command
}

func newConfigSyncCommand(reach *reach) *cobra.Command {
	s, mode := &configsync.Sync{}, fileMode(0o644)
	command := entry("sync PREFIX FOLDER", "Keep a folder of files equal to a prefix",
		cobra.ExactArgs(2), reach.completeKeyThenFile, func(command *cobra.Command, args []string) error {
			s.Prefix, s.Folder, s.Mode = prefixOf(args), args[1], fs.FileMode(mode)
			return reach.follow(command, &s.Sidecar, s.Run, true)
		})
	command.Flags().BoolVar(&s.Once, "once", false, "write the folder once and exit, within --timeout")
	command.Flags().StringVar(&s.Signal, "signal", "", "signal to send after each change, as `PID:SIGNAL`; a file may contain the PID")
	command.Flags().StringVar(&s.Exec, "exec", "", "command to run after each change")
	command.Flags().DurationVar(&s.Retry, "retry", 0, "time after which a command that failed runs again (default: with the next change)")
	command.Flags().Var(&mode, "mode", "mode of the files; folders are accessible to everyone who can read them")
	return command
}

func newConfigWatchCommand(reach *reach) *cobra.Command {
	w, exact := &configsync.Watch{}, false
	command := &cobra.Command{
		Use:   "watch [PREFIX] | watch --exact KEY...",
		Short: "Print the stored keys and then each change, or run a command on changes",
		Args: func(command *cobra.Command, args []string) error {
			switch {
			case command.Flags().Changed("exec") && w.Exec == "":
				return errors.New("--exec: missing command")
			case exact && len(args) == 0:
				return errors.New("--exact: missing keys")
			case exact && len(args) > configsync.MaxKeys:
				return fmt.Errorf("at most %d keys", configsync.MaxKeys)
			case !exact && len(args) > 1:
				return errors.New("expected one prefix, or several keys with --exact")
			}
			return nil
		},
		ValidArgsFunction: reach.completeKey,
		RunE: func(command *cobra.Command, args []string) error {
			if w.Prefix, w.JSON = prefixOf(args), reach.json(); exact {
				w.Keys = args
			}
			return reach.follow(command, &w.Sidecar, w.Run, w.Exec != "")
		},
	}
	command.Flags().BoolVar(&exact, "exact", false, "only these keys, not what lies below them")
	command.Flags().StringVar(&w.Exec, "exec", "", "command to run instead of printing")
	return command
}

// follow runs what follows the configuration until a signal ends it or, unless it outlives them, until those are gone who read its output.
func (r *reach) follow(command *cobra.Command, sidecar *configsync.Sidecar, run func(context.Context) error, outlives bool) error {
	client, err := r.dial(r.address)
	if err != nil {
		return err
	}
	defer client.Close()
	*sidecar = configsync.Sidecar{
		Client: client, Explain: r.explain(command.Context()), Timeout: r.timeout, Stdout: command.OutOrStdout(), Stderr: command.ErrOrStderr(),
		Notes: command.ErrOrStderr(),
	}
	if outlives {
		notes := outliveReader(command.ErrOrStderr())
		defer notes.Close()
		sidecar.Notes = notes.Log(sink.Options{})
	}
	ctx, stop := untilSignal(command.Context())
	defer stop()
	return run(ctx)
}
