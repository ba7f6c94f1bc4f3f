package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	barrierv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/barrier/v1"
	"github.com/sidekeeper/sidekeeper/internal/exit"
	"github.com/sidekeeper/sidekeeper/internal/show"
	"github.com/sidekeeper/sidekeeper/internal/supervise"
)

func newBarrierCommand(reach *reach) *cobra.Command {
	return parent("barrier", "Hold callers back until a barrier is removed, and run commands that begin and end together",
		entry("set NAME", "Set a barrier", cobra.ExactArgs(1), cobra.NoFileCompletions, doing(reach, setBarrier)),
		entry("rm NAME", "Remove a barrier", cobra.ExactArgs(1), cobra.NoFileCompletions, doing(reach, removeBarrier)),
		newBarrierWaitCommand(reach),
		newBarrierEnterCommand(reach),
		stubCommand(reach, &reach.address, barrierv1.NewBarrierServiceClient, "ls [PREFIX]",
			"List the barriers that are set, and how many callers stand at double barriers", cobra.MaximumNArgs(1), timed(reach, reach.barrierList)),
	)
}

func setBarrier(ctx context.Context, client *sidekeeper.Client, args []string) error {
	return client.SetBarrier(ctx, args[0])
}

func removeBarrier(ctx context.Context, client *sidekeeper.Client, args []string) error {
	return client.RemoveBarrier(ctx, args[0])
}

func newBarrierWaitCommand(reach *reach) *cobra.Command {
	var wait time.Duration
	command := entry("wait NAME", "Wait until a barrier is removed",
		cobra.ExactArgs(1), cobra.NoFileCompletions, func(command *cobra.Command, args []string) error {
			set, began := false, time.Now()
			client, err := reach.dialWith(reach.address)
			if err != nil {
				return err
			}
			defer client.Close()
			reach.away.Tell(show.Notes(command.ErrOrStderr()), reach.named(reach.address))
			ctx, cancel := context.WithTimeout(command.Context(), cmp.Or(wait, math.MaxInt64))
			defer cancel()
			err = client.AwaitBarrier(ctx, args[0], func() { set = true })
			of, is := errors.AsType[*sidekeeper.Error](err)
			away := is && of.Code == codes.Unavailable
			if err != nil && set && wait > 0 && time.Since(began) >= wait && !away {
				return exit.With(exit.NotObtained, fmt.Errorf("the barrier %s is still set after %v", args[0], wait))
			}
			return err
		})
	command.Flags().Var(span(&wait, 0, forever), "wait", "maximum time to wait (default: no limit)")
	return command
}

// A barrierEnter runs one command inside a double barrier.
type barrierEnter struct {
	claim   supervise.Entry
	command []string
	wait    time.Duration
}

func newBarrierEnterCommand(reach *reach) *cobra.Command {
	b := &barrierEnter{}
	command := &cobra.Command{
		Use:   "enter NAME SIZE [flags] -- COMMAND [ARGUMENT...]",
		Short: "Run a command once SIZE commands are there, and end when all have ended",
		Args:  b.takeArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			return reach.runUnder(command, &b.claim, b.command)
		},
	}
	flags := command.Flags()
	flags.Var(span(&b.wait, 0, forever), "wait", "maximum time to wait for the others before the command begins (default: no limit)")
	flags.StringVar(&b.claim.Options.Owner, "owner", "", "owner of the entry, for people (default: this host's name and the process ID)")
	flags.Var(span(&b.claim.KillGrace, 0, forever), "kill-grace",
		"time before the end of the validity at which the command gets SIGTERM (default: a third of the validity)")
	return command
}

func (b *barrierEnter) takeArguments(command *cobra.Command, args []string) error {
	if command.ArgsLenAtDash() != 2 || len(args) < 3 {
		return errors.New("usage: sidekeeper barrier enter NAME SIZE -- COMMAND [ARGUMENT...]")
	}
	size, err := strconv.ParseInt(args[1], 10, 32)
	if err != nil {
		return fmt.Errorf("SIZE is %q: a number from 1 to 1,000", args[1])
	}
	b.claim.Name, b.claim.Size, b.command = args[0], int(size), args[2:]
	b.claim.Options.Owner = cmp.Or(b.claim.Options.Owner, supervise.DefaultOwner())
	if b.wait > 0 {
		b.claim.Options.Wait = &b.wait
	}
	return nil
}

func (r *reach) barrierList(ctx context.Context, barriers barrierv1.BarrierServiceClient, args []string, to io.Writer) error {
	found, err := allPages(func(token string) ([]*barrierv1.Barrier, string, error) {
		page, err := barriers.List(ctx, &barrierv1.ListRequest{Prefix: prefixOf(args), PageToken: token})
		return page.GetBarriers(), page.GetNextPageToken(), err
	})
	if err != nil {
		return err
	}
	row := func(of *barrierv1.Barrier) []string {
		set := "-" // of a double barrier
		if of.GetSet() {
			set = "set"
		}
		return []string{show.Printable(of.GetName()), set, strconv.Itoa(int(of.GetPresent())), strconv.Itoa(int(of.GetInside()))}
	}
	return tabulate(r, to, &barrierv1.ListResponse{Barriers: found}, "NAME SET PRESENT INSIDE", found, row)
}
