package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
)

func newConfigExportCommand(reach *reach) *cobra.Command {
	to, format := "", choice{values: []string{"yaml"}}
	command := &cobra.Command{
		Use: "export PREFIX", Short: "Write all keys of a prefix as YAML, or as files",
		Args: cobra.ExactArgs(1), ValidArgsFunction: reach.completeKey,
		RunE: func(command *cobra.Command, args []string) error {
			if reach.json() || to != "" && command.Flags().Changed("format") {
				return usageError(errors.New("export writes YAML, or with --to files; for JSON there is `config ls --output json`"))
			}
			return reach.call(command.Context(), reach.address, func(ctx context.Context, client *sidekeeper.Client) error {
				stored, err := atOneMoment(ctx, client.Config(), prefixOf(args), nil)
				exported := entriesBelow(prefixOf(args), stored)
				switch {
				case err != nil:
					return err
				case to == "":
					return exported.writeYAML(command.OutOrStdout())
				default:
					return exported.writeNew(to)
				}
			})
		},
	}
	command.Flags().StringVar(&to, "to", "", "folder to write files to, which must be empty or missing")
	command.Flags().Var(&format, "format", "what to write to the output")
	return command
}

func entriesBelow(prefix string, listed look) entries {
	below := entries{}
	for _, entry := range listed {
		below[nameBelow(prefix, entry.Key)] = entry.Value
	}
	return below
}

// writeNew fills a folder that is empty or missing.
func (e entries) writeNew(folder string) error {
	if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // what other folders have
		return err
	}
	present, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	if len(present) > 0 {
		return usageError(fmt.Errorf("%s holds %s: choose an empty folder", folder, present[0].Name()))
	}
	return e.files().writeFiles(folder, 0o644)
}
