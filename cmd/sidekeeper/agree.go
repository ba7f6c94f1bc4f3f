package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/durationpb"

	agreementv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/agreement/v1"
	"github.com/sidekeeper/sidekeeper/internal/show"
	"github.com/sidekeeper/sidekeeper/internal/supervise"
)

func newAgreeCommand(reach *reach) *cobra.Command {
	return parent("agree", "Have several programs all do something, or none",
		newAgreeBeginCommand(reach),
		agreeCommand(reach, "vote NAME AGREEMENT PARTICIPANT", "Vote for COMMIT, and show the decision", 3, agreeVote),
		agreeCommand(reach, "abort NAME AGREEMENT", "Decide ABORT unless it is decided, and show the decision", 2, timed(reach, agreeAbort)),
		agreeCommand(reach, "await NAME AGREEMENT", "Wait for the decision, and show it", 2, agreeAwait),
		agreeCommand(reach, "ls NAME", "List the agreements of a name", 1, timed(reach, reach.agreeList)),
		agreeCommand(reach, "forget NAME AGREEMENT", "Remove an agreement", 2, timed(reach, agreeForget)),
	)
}

func agreeCommand(reach *reach, use, short string, args int, do stubCall[agreementv1.AgreementServiceClient]) *cobra.Command {
	return stubCommand(reach, &reach.address, agreementv1.NewAgreementServiceClient, use, short, cobra.ExactArgs(args), do)
}

func newAgreeBeginCommand(reach *reach) *cobra.Command {
	var participants []string
	deadline := time.Minute
	var value string
	command := agreeCommand(reach, "begin NAME", "Begin an agreement, and show its id", 1, timed(reach,
		func(ctx context.Context, agreements agreementv1.AgreementServiceClient, args []string, to io.Writer) error {
			begun, err := agreements.Begin(ctx, &agreementv1.BeginRequest{
				Name: args[0], Participants: participants, Timeout: durationpb.New(deadline), Value: []byte(value),
			})
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(to, begun.GetAgreement())
			return err
		}))
	command.Flags().StringArrayVar(&participants, "participant", nil, "a participant, 1 to 32 times")
	command.Flags().Var(span(&deadline, time.Millisecond, time.Hour), "deadline", "decide ABORT after this time: at most 1h")
	command.Flags().StringVar(&value, "value", "", "what the participants are to agree upon, at most 4,096 bytes")
	return command
}

func agreeVote(ctx context.Context, agreements agreementv1.AgreementServiceClient, args []string, to io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := agreements.Vote(ctx, &agreementv1.VoteRequest{
		Name: args[0], Agreement: args[1], Participant: args[2], Owner: supervise.DefaultOwner(),
	})
	for err == nil {
		var event *agreementv1.VoteResponse
		if event, err = stream.Recv(); event.GetDecided() != nil {
			return showDecision(to, event.GetDecided().GetDecision())
		}
	}
	return err
}

func agreeAbort(ctx context.Context, agreements agreementv1.AgreementServiceClient, args []string, to io.Writer) error {
	aborted, err := agreements.Abort(ctx, &agreementv1.AbortRequest{Name: args[0], Agreement: args[1]})
	if err != nil {
		return err
	}
	return showDecision(to, aborted.GetDecision())
}

func agreeAwait(ctx context.Context, agreements agreementv1.AgreementServiceClient, args []string, to io.Writer) error {
	stream, err := agreements.Await(ctx, &agreementv1.AwaitRequest{Name: args[0], Agreement: args[1]})
	if err != nil {
		return err
	}
	awaited, err := stream.Recv()
	if err != nil {
		return err
	}
	return showDecision(to, awaited.GetDecision())
}

func agreeForget(ctx context.Context, agreements agreementv1.AgreementServiceClient, args []string, _ io.Writer) error {
	_, err := agreements.Forget(ctx, &agreementv1.ForgetRequest{Name: args[0], Agreement: args[1]})
	return err
}

func (r *reach) agreeList(ctx context.Context, agreements agreementv1.AgreementServiceClient, args []string, to io.Writer) error {
	found, err := agreements.Get(ctx, &agreementv1.GetRequest{Name: args[0]})
	if err != nil {
		return err
	}
	row := func(of *agreementv1.Agreement) []string {
		return []string{
			show.Printable(of.GetAgreement()), decisionWord(of.GetDecision()), show.Printable(strings.Join(of.GetParticipants(), ",")),
			show.Printable(strings.Join(of.GetVoted(), ",")),
		}
	}
	return tabulate(r, to, found, "AGREEMENT DECISION PARTICIPANTS VOTED", found.GetAgreements(), row)
}

func showDecision(to io.Writer, decision agreementv1.Decision) error {
	_, err := fmt.Fprintln(to, decisionWord(decision))
	return err
}

// decisionWord is COMMIT or ABORT, or a dash.
func decisionWord(decision agreementv1.Decision) string {
	if decision == agreementv1.Decision_DECISION_UNSPECIFIED {
		return "-"
	}
	return strings.TrimPrefix(decision.String(), "DECISION_")
}
