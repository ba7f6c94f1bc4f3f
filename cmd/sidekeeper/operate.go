package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/spf13/cobra"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	"github.com/sidekeeper/sidekeeper/internal/exit"
)

func newLockRevokeCommand(reach *reach) *cobra.Command {
	var options sidekeeper.RevokeOptions
	var grace time.Duration
	command := entry("revoke NAME", "Ask the holders of a lock to release it",
		cobra.ExactArgs(1), reach.completeLock, func(command *cobra.Command, args []string) error {
			address := reach.address
			if command.Flags().Changed("grace") {
				options.Grace, address = &grace, reach.operatorAddress
			}
			return reach.call(command.Context(), address, func(ctx context.Context, client *sidekeeper.Client) error {
				asked, err := client.Revoke(ctx, args[0], options)
				if err != nil {
					return err
				}
				return errors.Join(
					reach.say(command.OutOrStdout(), &lockv1.RevokeResponse{Asked: int32(asked)}, "holders asked: %d\n", asked),
					unheld(asked, args[0]),
				)
			})
		})
	command.Flags().StringVar(&options.Reason, "reason", "", "why, for the holders")
	command.Flags().Var(span(&grace, 0, 24*time.Hour), "grace", "end the holds by force after this time (operators' socket)")
	return command
}

// unheld is an error if no holder of a lock was asked: the lock is free, or its name is another one.
func unheld(asked int, name string) error {
	if asked > 0 {
		return nil
	}
	return fmt.Errorf("no caller holds the lock %s", name)
}

func newLockBreakCommand(reach *reach) *cobra.Command {
	var options sidekeeper.BreakOptions
	var token int64
	var forceAfter time.Duration
	command := entry("break NAME --token N --reason TEXT", "End exactly the hold with this fencing token (operators' socket)",
		cobra.ExactArgs(1), reach.completeLock, func(command *cobra.Command, args []string) error {
			if !command.Flags().Changed("token") {
				return exit.UsageError(errors.New("--token is required: take it from `sidekeeper lock show " + args[0] + "`"))
			}
			if options.Reason == "" {
				return exit.UsageError(errors.New("--reason is required: it says why, to the holder and in the audit"))
			}
			if command.Flags().Changed("force-after") {
				options.ForceAfter = &forceAfter
			}
			return reach.breakHold(command, args[0], token, options)
		})
	command.Flags().Var(number(&token, 1, math.MaxInt64), "token", "the hold's fencing token")
	command.Flags().StringVar(&options.Reason, "reason", "", "why, for the holder and the audit")
	command.Flags().Var(span(&forceAfter, 0, 24*time.Hour), "force-after",
		"how long to wait for the holder's sidecar before removing it from outside (default: until its lease must have expired)")
	return command
}

// breakHold waits longer than other calls: for the holder's sidecar first.
func (r *reach) breakHold(
	command *cobra.Command, name string, token int64, options sidekeeper.BreakOptions,
) error {
	timeout := breakTime(r.timeout, options.ForceAfter)
	slow := time.AfterFunc(slowBreak, func() {
		fmt.Fprintln(command.ErrOrStderr(), "sidekeeper: waiting for the holder's sidecar,", atMost(options.ForceAfter))
	})
	defer slow.Stop()
	return r.callWithin(command.Context(), timeout, r.operatorAddress, func(ctx context.Context, client *sidekeeper.Client) error {
		forced, err := client.Break(ctx, name, token, options)
		if err != nil {
			return err
		}
		how := "ended by its sidecar, or with its lease"
		if forced {
			how = "removed from outside: its holder may not have known in time"
		}
		return r.say(command.OutOrStdout(), &lockv1.BreakResponse{Forced: forced}, "hold %d of %s: %s\n", token, name, how)
	})
}

// slowBreak is how long an operator waits without being told for what.
const slowBreak = 2 * time.Second

func atMost(forceAfter *time.Duration) string {
	if forceAfter == nil {
		return "at most until the holder's lease has expired"
	}
	return "at most " + forceAfter.String()
}

// maxLeaseTime is longer than any lease of a default ensemble lives without being heard of.
const maxLeaseTime = 45 * time.Second

func breakTime(answer time.Duration, forceAfter *time.Duration) time.Duration {
	if forceAfter == nil {
		return answer + maxLeaseTime
	}
	return answer + *forceAfter
}
