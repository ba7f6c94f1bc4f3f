package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	configv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/config/v1"
	"github.com/sidekeeper/sidekeeper/internal/configsync"
	"github.com/sidekeeper/sidekeeper/internal/exit"
	"github.com/sidekeeper/sidekeeper/internal/show"
)

func newConfigCommand(reach *reach) *cobra.Command {
	return parent("config", "Read, write and watch the configuration, and keep files equal to it",
		newConfigGetCommand(reach),
		newConfigPutCommand(reach),
		newConfigRemoveCommand(reach),
		entry("ls [PREFIX]", "List keys", cobra.MaximumNArgs(1), reach.completeKey, listing(reach, listKeys, reach.showEntries)),
		newConfigEditCommand(reach),
		newConfigWatchCommand(reach),
		newConfigExportCommand(reach),
		newConfigImportCommand(reach),
		newConfigSyncCommand(reach),
	)
}

func newConfigGetCommand(reach *reach) *cobra.Command {
	linearizable := false
	get := func(ctx context.Context, client *sidekeeper.Client, args []string) (sidekeeper.Entry, error) {
		if linearizable {
			return client.Config().GetLinearizable(ctx, args[0])
		}
		return client.Config().Get(ctx, args[0])
	}
	command := entry("get KEY", "Print a key's value, byte for byte", cobra.ExactArgs(1), reach.completeKey, asking(reach, get, reach.showEntry))
	command.Flags().BoolVar(&linearizable, "linearizable", false,
		"read a value at least as new as every earlier write anywhere; costs one write to the ensemble")
	return command
}

func (r *reach) showEntry(to io.Writer, entry sidekeeper.Entry) error {
	if r.json() {
		return show.Message(to, configsync.Wire(entry))
	}
	return show.Raw(to, entry.Value)
}

func listKeys(client *sidekeeper.Client, ctx context.Context, prefix string) iter.Seq2[sidekeeper.Entry, error] { //nolint:revive // a lister
	return client.Config().List(ctx, prefix)
}

func (r *reach) showEntries(to io.Writer, listed []sidekeeper.Entry) error {
	answer := &configv1.ListResponse{Entries: each(listed, configsync.Wire)}
	return tabulate(r, to, answer, "KEY VERSION REVISION BYTES VALUE", listed, func(entry sidekeeper.Entry) []string {
		return []string{
			show.Printable(entry.Key), strconv.Itoa(int(entry.Version)), strconv.FormatInt(entry.Revision, 10),
			strconv.Itoa(len(entry.Value)), configsync.Glance(entry.Value),
		}
	})
}

func (r *reach) completeKey(command *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	return complete(r, command, args, begun, listKeys, func(entry sidekeeper.Entry) string { return entry.Key })
}

// completeKeyThenFile leaves what comes after the key to the shell.
func (r *reach) completeKeyThenFile(
	command *cobra.Command, args []string, begun string,
) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveDefault
	}
	return r.completeKey(command, args, begun)
}

// A condition is the precondition that flags ask for.
type condition struct {
	version           int32
	missing, existing bool
}

func (c *condition) preconditions(command *cobra.Command) (asked []sidekeeper.Precondition, err error) {
	if command.Flags().Changed("if-version") {
		asked = append(asked, sidekeeper.IfVersion(c.version))
	}
	if c.missing {
		asked = append(asked, sidekeeper.IfMissing())
	}
	if c.existing {
		asked = append(asked, sidekeeper.IfExists())
	}
	if len(asked) > 1 {
		return nil, exit.UsageError(errors.New("conflicting conditions: use one of --if-version, --if-missing and --if-exists"))
	}
	return asked, nil
}

// readInput reads a file, or the input for -.
func readInput(stdin io.Reader, name string) ([]byte, error) {
	if name != "-" {
		file, err := os.Open(name) //nolint:gosec // the user's choice
		if err != nil {
			return nil, exit.UsageError(err)
		}
		defer file.Close()
		stdin = file
	}
	value, err := io.ReadAll(io.LimitReader(stdin, configsync.MaxValueBytes+1))
	if err == nil && len(value) > configsync.MaxValueBytes {
		return nil, exit.UsageError(fmt.Errorf("the value has more than %d bytes", configsync.MaxValueBytes))
	}
	return value, err
}
