package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	configv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/config/v1"
)

func newConfigCommand(reach *reach) *cobra.Command {
	command := &cobra.Command{
		Use: "config", Short: "Read, write and watch the configuration, and keep files equal to it",
		Args: cobra.NoArgs, RunE: showHelp,
	}
	command.AddCommand(
		newConfigGetCommand(reach),
		newConfigPutCommand(reach),
		newConfigRemoveCommand(reach),
		newConfigListCommand(reach),
		newConfigEditCommand(reach),
		newConfigWatchCommand(reach),
		newConfigExportCommand(reach),
		newConfigImportCommand(reach),
		newConfigSyncCommand(reach),
	)
	return command
}

func newConfigGetCommand(reach *reach) *cobra.Command {
	linearizable := false
	command := &cobra.Command{
		Use: "get KEY", Short: "Write a key's value to the output, byte for byte", Args: cobra.ExactArgs(1),
		ValidArgsFunction: reach.completeKey,
		RunE: func(command *cobra.Command, args []string) error {
			return reach.call(command.Context(), reach.address, func(ctx context.Context, client *sidekeeper.Client) error {
				entry, err := getEntry(ctx, client.Config(), args[0], linearizable)
				if err != nil {
					return err
				}
				return reach.showEntry(command.OutOrStdout(), entry)
			})
		},
	}
	command.Flags().BoolVar(&linearizable, "linearizable", false,
		"read what is at least as new as all that was written before, anywhere; it takes a write of the ensemble")
	return command
}

func getEntry(ctx context.Context, config *sidekeeper.Config, key string, linearizable bool) (sidekeeper.Entry, error) {
	if linearizable {
		return config.GetLinearizable(ctx, key)
	}
	return config.Get(ctx, key)
}

func (r *reach) showEntry(to io.Writer, entry sidekeeper.Entry) error {
	if r.json() {
		return writeMessage(to, wireEntry(entry))
	}
	_, err := to.Write(entry.Value)
	return err
}

// wireEntry is an entry as the API sends it, as text where it is some.
func wireEntry(entry sidekeeper.Entry) *configv1.Entry {
	wire := &configv1.Entry{
		Key: entry.Key, Content: &configv1.Entry_Value{Value: entry.Value}, Version: entry.Version,
		Revision: entry.Revision, CreatedRevision: entry.CreatedRevision,
	}
	if isText(entry.Value) {
		wire.Content = &configv1.Entry_Text{Text: string(entry.Value)}
	}
	return wire
}

func newConfigListCommand(reach *reach) *cobra.Command {
	return &cobra.Command{
		Use: "ls [PREFIX]", Short: "List keys", Args: cobra.MaximumNArgs(1), ValidArgsFunction: reach.completeKey,
		RunE: func(command *cobra.Command, args []string) error {
			return reach.call(command.Context(), reach.address, func(ctx context.Context, client *sidekeeper.Client) error {
				listed, err := collect(client.Config().List(ctx, prefixOf(args)))
				if err != nil {
					return err
				}
				return reach.showEntries(command.OutOrStdout(), listed)
			})
		},
	}
}

// prefixOf is the prefix that was given, if any. People may end it as they end the name of a folder.
func prefixOf(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return strings.TrimSuffix(args[0], "/")
}

func collect(listed iter.Seq2[sidekeeper.Entry, error]) (all []sidekeeper.Entry, err error) {
	for entry, err := range listed {
		if err != nil {
			return nil, err
		}
		all = append(all, entry)
	}
	return all, nil
}

func (r *reach) showEntries(to io.Writer, listed []sidekeeper.Entry) error {
	if r.json() {
		shown := &configv1.ListResponse{}
		for _, entry := range listed {
			shown.Entries = append(shown.Entries, wireEntry(entry))
		}
		return writeMessage(to, shown)
	}
	rows := make([][]string, 0, len(listed))
	for _, entry := range listed {
		rows = append(rows, []string{
			printable(entry.Key), strconv.Itoa(int(entry.Version)), strconv.FormatInt(entry.Revision, 10),
			strconv.Itoa(len(entry.Value)), glance(entry.Value),
		})
	}
	return writeTable(to, "KEY VERSION REVISION BYTES VALUE", rows)
}

// glance is as much of a value as fits beside other things.
func glance(value []byte) string {
	const most = 40
	if !isText(value) {
		return fmt.Sprintf("(%d bytes)", len(value))
	}
	letters := []rune(string(value))
	if len(letters) > most {
		return printable(string(letters[:most])) + "…"
	}
	return printable(string(letters))
}

// mostCompletions bounds what a shell shows.
const mostCompletions = 1000

func (r *reach) completeKey(
	command *cobra.Command, args []string, begun string,
) (names []string, directive cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	r.timeout = min(r.timeout, completionTime)
	above, _ := splitName(begun)
	err := r.call(command.Context(), r.address, func(ctx context.Context, client *sidekeeper.Client) error {
		for entry, err := range client.Config().List(ctx, above) {
			if err != nil {
				return err
			}
			if strings.HasPrefix(entry.Key, begun) {
				names = append(names, entry.Key)
			}
			if len(names) == mostCompletions {
				return nil
			}
		}
		return nil
	})
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return names, cobra.ShellCompDirectiveNoFileComp
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
		return nil, usageError(errors.New("one condition is enough: --if-version, --if-missing or --if-exists"))
	}
	return asked, nil
}

// readInput reads a file, or the input for -.
func readInput(stdin io.Reader, name string) ([]byte, error) {
	if name != "-" {
		file, err := os.Open(name) //nolint:gosec // the user's choice
		if err != nil {
			return nil, usageError(err)
		}
		defer file.Close()
		stdin = file
	}
	value, err := io.ReadAll(io.LimitReader(stdin, largestValue+1))
	if err == nil && len(value) > largestValue {
		return nil, usageError(fmt.Errorf("the value has more than %d bytes", largestValue))
	}
	return value, err
}
