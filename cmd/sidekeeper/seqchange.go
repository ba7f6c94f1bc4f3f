package main

import (
	"context"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	sequencev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/sequence/v1"
	"github.com/sidekeeper/sidekeeper/internal/exit"
	"github.com/sidekeeper/sidekeeper/internal/show"
)

func newSequenceGetCommand(reach *reach) *cobra.Command {
	return &cobra.Command{
		Use: "get NAME", Short: "Show the last number that was handed out or reserved", Args: cobra.ExactArgs(1),
		ValidArgsFunction: reach.completeSequence,
		RunE: func(command *cobra.Command, args []string) error {
			return reach.call(command.Context(), reach.address, func(ctx context.Context, client *sidekeeper.Client) error {
				state, err := client.Sequence(args[0]).Get(ctx)
				if err != nil {
					return err
				}
				return reach.showSequence(command.OutOrStdout(), state)
			})
		},
	}
}

func (r *reach) showSequence(to io.Writer, state sidekeeper.SequenceState) error {
	if r.json() {
		return show.Message(to, &sequencev1.GetResponse{LastIssued: state.LastIssued, Incarnation: state.Incarnation})
	}
	_, err := fmt.Fprintln(to, state.LastIssued)
	return err
}

func newSequenceCreateCommand(reach *reach) *cobra.Command {
	first := int64(1)
	command := &cobra.Command{
		Use: "create NAME", Short: "Create a sequence", Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			return reach.call(command.Context(), reach.address, func(ctx context.Context, client *sidekeeper.Client) error {
				incarnation, err := client.Sequence(args[0]).Create(ctx, first)
				if err != nil || !reach.json() {
					return err
				}
				return show.Message(command.OutOrStdout(), &sequencev1.CreateResponse{Incarnation: incarnation})
			})
		},
	}
	command.Flags().Int64Var(&first, "first", 1, "the first number to be handed out")
	return command
}

func newSequenceAdvanceCommand(reach *reach) *cobra.Command {
	return &cobra.Command{
		Use: "advance NAME LAST", Short: "Advance a sequence past a number that is already in use (operators' socket)",
		Args: cobra.ExactArgs(2), ValidArgsFunction: reach.completeSequence,
		RunE: func(command *cobra.Command, args []string) error {
			last, err := strconv.ParseInt(args[1], 10, 64)
			if err != nil {
				return exit.UsageError(fmt.Errorf("LAST is %q: a number of 64 bits", args[1]))
			}
			return reach.call(command.Context(), reach.operatorAddress, func(ctx context.Context, client *sidekeeper.Client) error {
				state, err := client.Sequence(args[0]).AdvanceTo(ctx, last)
				if err != nil {
					return err
				}
				return reach.showSequence(command.OutOrStdout(), state)
			})
		},
	}
}

func newSequenceRemoveCommand(reach *reach) *cobra.Command {
	return &cobra.Command{
		Use: "rm NAME", Short: "Delete a sequence", Args: cobra.ExactArgs(1), ValidArgsFunction: reach.completeSequence,
		RunE: func(command *cobra.Command, args []string) error {
			return reach.call(command.Context(), reach.address, func(ctx context.Context, client *sidekeeper.Client) error {
				err := client.Sequence(args[0]).Delete(ctx)
				if err != nil || !reach.json() {
					return err
				}
				return show.Message(command.OutOrStdout(), &sequencev1.DeleteResponse{})
			})
		},
	}
}
