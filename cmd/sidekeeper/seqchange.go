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
)

func newSequenceGetCommand(reach *reach) *cobra.Command {
	return &cobra.Command{
		Use: "get NAME", Short: "Show the last number that was handed out or reserved", Args: explained(cobra.ExactArgs(1)),
		ValidArgsFunction: reach.completeSequence,
		RunE: asking(reach, func(ctx context.Context, client *sidekeeper.Client, args []string) (sidekeeper.SequenceState, error) {
			return client.Sequence(args[0]).Get(ctx)
		}, reach.showSequence),
	}
}

func (r *reach) showSequence(to io.Writer, state sidekeeper.SequenceState) error {
	answer := &sequencev1.GetResponse{LastIssued: state.LastIssued, Incarnation: state.Incarnation}
	return r.say(to, answer, "%d\n", state.LastIssued)
}

func newSequenceCreateCommand(reach *reach) *cobra.Command {
	first := int64(1)
	command := &cobra.Command{
		Use: "create NAME", Short: "Create a sequence", Args: explained(cobra.ExactArgs(1)),
		RunE: asking(reach, func(ctx context.Context, client *sidekeeper.Client, args []string) (int64, error) {
			return client.Sequence(args[0]).Create(ctx, first)
		}, func(to io.Writer, incarnation int64) error {
			return reach.say(to, &sequencev1.CreateResponse{Incarnation: incarnation}, "")
		}),
	}
	command.Flags().Int64Var(&first, "first", 1, "the first number to be handed out")
	return command
}

func newSequenceAdvanceCommand(reach *reach) *cobra.Command {
	return &cobra.Command{
		Use: "advance NAME LAST", Short: "Advance a sequence past a number that is already in use (operators' socket)",
		Args: explained(cobra.ExactArgs(2)), ValidArgsFunction: reach.completeSequence,
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
		Use: "rm NAME", Short: "Delete a sequence", Args: explained(cobra.ExactArgs(1)), ValidArgsFunction: reach.completeSequence,
		RunE: asking(reach, func(ctx context.Context, client *sidekeeper.Client, args []string) (*sequencev1.DeleteResponse, error) {
			return &sequencev1.DeleteResponse{}, client.Sequence(args[0]).Delete(ctx)
		}, func(to io.Writer, done *sequencev1.DeleteResponse) error { return reach.say(to, done, "") }),
	}
}
