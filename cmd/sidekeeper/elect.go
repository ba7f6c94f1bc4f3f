package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	electionv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/election/v1"
	holdv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/hold/v1"
	"github.com/sidekeeper/sidekeeper/internal/show"
)

func newElectCommand(reach *reach) *cobra.Command {
	return parent("elect", "Run commands as the leader of an election, and see who leads",
		newElectRunCommand(reach),
		entry("observe NAME", "Show who leads an election, now and whenever that changes", cobra.ExactArgs(1), reach.completeLock,
			watching(reach, (*sidekeeper.Client).Observe, reach.showObservation)),
		newElectTransferCommand(reach),
	)
}

func (r *reach) showObservation(to io.Writer, observed *sidekeeper.Observation) error {
	if r.json() {
		return show.Message(to, wireObservation(observed))
	}
	_, err := fmt.Fprintln(to, leaderInWords(observed))
	return err
}

// leaderInWords is one line.
func leaderInWords(observed *sidekeeper.Observation) string {
	words := []string{"no leader"}
	if leader := observed.Leader; leader != nil {
		words = []string{show.Printable(leader.Candidate), "leads in term", fmt.Sprint(leader.Term.FencingToken)}
		if leader.Value != "" {
			words = append(words, "with", show.Printable(leader.Value))
		}
		if leader.YieldRequested {
			words = append(words, "(yield requested)")
		}
	}
	if observed.Stale {
		words = append(words, "(may be out of date)")
	}
	return strings.Join(words, " ")
}

func newElectTransferCommand(reach *reach) *cobra.Command {
	var options sidekeeper.TransferOptions
	var grace time.Duration
	command := entry("transfer NAME CANDIDATE", "Ask the leader to yield to another candidate",
		cobra.ExactArgs(2), reach.completeLock, func(command *cobra.Command, args []string) error {
			address := reach.address
			if command.Flags().Changed("grace") {
				options.Grace, address = &grace, reach.operatorAddress
			}
			return reach.call(command.Context(), address, func(ctx context.Context, client *sidekeeper.Client) error {
				return client.TransferLeadership(ctx, args[0], args[1], options)
			})
		})
	command.Flags().StringVar(&options.Reason, "reason", "", "why, for the leader")
	command.Flags().Var(span(&grace, 0, 24*time.Hour), "grace", "end the leader's term by force after this time (operators' socket)")
	return command
}

func wireObservation(observed *sidekeeper.Observation) *electionv1.WatchResponse {
	switch leader := observed.Leader; {
	case observed.Stale:
		return &electionv1.WatchResponse{Event: &electionv1.WatchResponse_Stale{Stale: &holdv1.Stale{}}}
	case leader == nil:
		return &electionv1.WatchResponse{Event: &electionv1.WatchResponse_Vacant{Vacant: &electionv1.Vacant{}}}
	default:
		return &electionv1.WatchResponse{Event: &electionv1.WatchResponse_Leader{Leader: wireLeader(leader)}}
	}
}
