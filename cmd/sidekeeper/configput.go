package main

import (
	"context"
	"errors"
	"io"
	"math"

	"github.com/spf13/cobra"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	configv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/config/v1"
	"github.com/sidekeeper/sidekeeper/internal/exit"
)

func newConfigPutCommand(reach *reach) *cobra.Command {
	var only condition
	file := ""
	command := entry("put KEY VALUE | put KEY --file FILE | put KEY -", "Write a key's value",
		cobra.RangeArgs(1, 2), reach.completeKey, func(command *cobra.Command, args []string) error {
			if (len(args) == 2) == command.Flags().Changed("file") {
				return exit.UsageError(errors.New("missing value: give one, or - for standard input, or --file FILE"))
			}
			if len(args) == 2 && args[1] == "-" {
				file = "-"
			}
			preconditions, err := only.preconditions(command)
			if err != nil {
				return err
			}
			value, err := valueToPut(command.InOrStdin(), args, file)
			if err != nil {
				return err
			}
			return reach.put(command, args[0], value, preconditions)
		})
	command.Flags().StringVar(&file, "file", "", "file with the value, - for standard input")
	command.Flags().Var(number(&only.version, 0, math.MaxInt32), "if-version", "only if the key has this version")
	command.Flags().BoolVar(&only.missing, "if-missing", false, "only if the key does not exist")
	command.Flags().BoolVar(&only.existing, "if-exists", false, "only if the key exists")
	reach.addGuardFlag(command)
	return command
}

func valueToPut(stdin io.Reader, args []string, file string) ([]byte, error) {
	if file != "" {
		return readInput(stdin, file)
	}
	if len(args) < 2 {
		return nil, exit.UsageError(errors.New("--file needs the name of a file, or - for the input"))
	}
	return []byte(args[1]), nil
}

func (r *reach) put(command *cobra.Command, key string, value []byte, only []sidekeeper.Precondition) error {
	return r.call(command.Context(), r.address, func(ctx context.Context, client *sidekeeper.Client) error {
		entry, err := client.Config().Put(ctx, key, value, only...)
		if err != nil {
			return err
		}
		answer := &configv1.PutResponse{Version: entry.Version, Revision: entry.Revision}
		return r.say(command.OutOrStdout(), answer, "%s has version %d\n", key, entry.Version)
	})
}

func newConfigRemoveCommand(reach *reach) *cobra.Command {
	var only condition
	recursive := false
	command := entry("rm KEY", "Delete a key, or with --recursive also all keys below it (operators' socket)",
		cobra.ExactArgs(1), reach.completeKey, func(command *cobra.Command, args []string) error {
			preconditions, err := only.preconditions(command)
			if err != nil {
				return err
			}
			address := reach.address
			if recursive {
				address = reach.operatorAddress
				err = reach.unguarded(command, "--recursive")
			}
			if recursive && len(preconditions) > 0 {
				err = exit.UsageError(errors.New("a condition applies to one key, not with --recursive"))
			}
			if err != nil {
				return err
			}
			return reach.call(command.Context(), address, func(ctx context.Context, client *sidekeeper.Client) error {
				deleted := 1
				if recursive {
					deleted, err = client.Config().DeleteAll(ctx, args[0])
				} else {
					err = client.Config().Delete(ctx, args[0], preconditions...)
				}
				if err != nil {
					return err
				}
				return reach.say(command.OutOrStdout(), &configv1.DeleteResponse{Deleted: int32(deleted)}, "keys deleted: %d\n", deleted)
			})
		})
	command.Flags().BoolVarP(&recursive, "recursive", "r", false, "also delete all keys below it; keys that are put meanwhile may remain")
	command.Flags().Var(number(&only.version, 0, math.MaxInt32), "if-version", "only if the key has this version")
	reach.addGuardFlag(command)
	return command
}
