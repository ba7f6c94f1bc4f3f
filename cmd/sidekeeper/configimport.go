package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
)

// A configImport makes the keys of a prefix equal to what is read.
type configImport struct {
	reach         *reach
	prefix        string
	prune, dryRun bool
	wanted        entries
}

func newConfigImportCommand(reach *reach) *cobra.Command {
	i := &configImport{reach: reach}
	command := &cobra.Command{
		Use: "import PREFIX FOLDER|FILE.yaml|-", Short: "Write the keys of a prefix from YAML or from files",
		Args: cobra.ExactArgs(2), ValidArgsFunction: reach.completeKeyThenFile,
		RunE: func(command *cobra.Command, args []string) error {
			i.prefix = prefixOf(args)
			var err error
			if i.wanted, err = readSource(command.InOrStdin(), args[1]); err != nil {
				return usageError(fmt.Errorf("%s: %w", args[1], err))
			}
			for name, value := range i.wanted {
				if err := checkEntry(keyBelow(i.prefix, name), value); err != nil {
					return usageError(err)
				}
			}
			return reach.call(command.Context(), reach.address, func(ctx context.Context, client *sidekeeper.Client) error {
				return i.run(ctx, client.Config(), command.OutOrStdout())
			})
		},
	}
	command.Flags().BoolVar(&i.prune, "prune", false, "delete the keys of the prefix that are not there")
	command.Flags().BoolVar(&i.dryRun, "dry-run", false, "only tell what would be done")
	return command
}

func readSource(stdin io.Reader, source string) (entries, error) {
	if source == "-" {
		return readYAML(stdin)
	}
	info, err := os.Stat(source)
	if err != nil {
		return nil, errors.Unwrap(err) // it names the file again
	}
	if info.IsDir() {
		return readEntries(source)
	}
	file, err := os.Open(source) //nolint:gosec // the user's choice
	if err != nil {
		return nil, errors.Unwrap(err)
	}
	defer file.Close()
	return readYAML(file)
}

// mostPlans is how often it is begun anew since somebody else writes the same keys.
const mostPlans = 10

func (i *configImport) run(ctx context.Context, config *sidekeeper.Config, out io.Writer) error {
	var done []step
	for attempt := 1; ; attempt++ {
		stored, err := collect(config.List(ctx, i.prefix))
		if err != nil {
			return err
		}
		steps, err := plan(i.prefix, stored, i.wanted, i.prune)
		if err != nil {
			return usageError(err)
		}
		if i.dryRun {
			return i.show(out, steps)
		}
		steps, err = commitAll(ctx, config, steps)
		done = append(done, steps...)
		if err == nil || attempt == mostPlans || !overtaken(err) {
			return errors.Join(err, i.show(out, done))
		}
	}
}

// overtaken says whether a commit failed since the plan was not up to date, or may have been carried out.
func overtaken(err error) bool {
	return slices.ContainsFunc([]error{
		sidekeeper.ErrPreconditionFailed, sidekeeper.ErrKeyNotFound, sidekeeper.ErrKeyHasChildren, sidekeeper.ErrOutcomeUnknown,
	}, func(cause error) bool { return errors.Is(err, cause) })
}

// show tells what was done, or what would be.
func (i *configImport) show(to io.Writer, steps []step) error {
	type shown struct {
		Action string `json:"action"`
		Key    string `json:"key"`
	}
	keys := []shown{}
	for _, step := range steps {
		keys = append(keys, shown{step.action, step.key})
	}
	if i.reach.json() {
		return writeJSON(to, map[string]any{"steps": keys, "dryRun": i.dryRun})
	}
	for _, key := range keys {
		if _, err := fmt.Fprintf(to, "%-6s  %s\n", key.Action, printable(key.Key)); err != nil {
			return err
		}
	}
	if len(keys) == 0 {
		_, err := fmt.Fprintln(to, "nothing differs")
		return err
	}
	return nil
}
