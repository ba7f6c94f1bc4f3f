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

func lastNumber(ctx context.Context, client *sidekeeper.Client, args []string) (sidekeeper.SequenceState, error) {
	return client.Sequence(args[0]).Get(ctx)
}

func removeSequence(ctx context.Context, client *sidekeeper.Client, args []string) (*sequencev1.DeleteResponse, error) {
	return &sequencev1.DeleteResponse{}, client.Sequence(args[0]).Delete(ctx)
}

func (r *reach) showRemoval(to io.Writer, done *sequencev1.DeleteResponse) error {
	return r.say(to, done, "")
}

func (r *reach) advanceSequence(command *cobra.Command, args []string) error {
	last, err := strconv.ParseInt(args[1], 10, 64)
	if err != nil {
		return exit.UsageError(fmt.Errorf("LAST is %q: a number of 64 bits", args[1]))
	}
	return r.call(command.Context(), r.operatorAddress, func(ctx context.Context, client *sidekeeper.Client) error {
		state, err := client.Sequence(args[0]).AdvanceTo(ctx, last)
		if err != nil {
			return err
		}
		return r.showSequence(command.OutOrStdout(), state)
	})
}

func (r *reach) showSequence(to io.Writer, state sidekeeper.SequenceState) error {
	answer := &sequencev1.GetResponse{LastIssued: state.LastIssued, Incarnation: state.Incarnation}
	return r.say(to, answer, "%d\n", state.LastIssued)
}

func newSequenceCreateCommand(reach *reach) *cobra.Command {
	first := int64(1)
	command := entry("create NAME", "Create a sequence",
		cobra.ExactArgs(1), nil, asking(reach, func(ctx context.Context, client *sidekeeper.Client, args []string) (int64, error) {
			return client.Sequence(args[0]).Create(ctx, first)
		}, func(to io.Writer, incarnation int64) error {
			return reach.say(to, &sequencev1.CreateResponse{Incarnation: incarnation}, "")
		}))
	command.Flags().Int64Var(&first, "first", 1, "the first number to be handed out")
	return command
}
