package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/types/known/durationpb"

	oncev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/once/v1"
	"github.com/sidekeeper/sidekeeper/internal/show"
)

func newOnceCommand(reach *reach) *cobra.Command {
	return parent("once", "Show and forget what was done once",
		onceCommand(reach, &reach.address, "ls NAME", "List the keys of work that is done once", 1, reach.onceList),
		onceCommand(reach, &reach.address, "show NAME KEY", "Show how the work of a key stands", 2, timed(reach, reach.onceShow)),
		newOnceForgetCommand(reach),
	)
}

func onceCommand(reach *reach, address *string, use, short string, args int, do stubCall[oncev1.OnceServiceClient]) *cobra.Command {
	return stubCommand(reach, address, oncev1.NewOnceServiceClient, use, short, cobra.ExactArgs(args), do)
}

// onceList takes no longer than --timeout for a page, however many there are.
func (r *reach) onceList(ctx context.Context, work oncev1.OnceServiceClient, args []string, to io.Writer) error {
	all, err := allPages(func(token string) ([]*oncev1.Record, string, error) {
		ctx, cancel := context.WithTimeout(ctx, r.timeout)
		defer cancel()
		page, err := work.List(ctx, &oncev1.ListRequest{Name: args[0], PageSize: 1000, PageToken: token})
		return page.GetRecords(), page.GetNextPageToken(), err
	})
	if err != nil {
		return err
	}
	return r.showRecords(to, all)
}

func (r *reach) onceShow(ctx context.Context, work oncev1.OnceServiceClient, args []string, to io.Writer) error {
	got, err := work.Get(ctx, &oncev1.GetRequest{Name: args[0], Key: args[1]})
	if err != nil {
		return err
	}
	return r.showRecords(to, []*oncev1.Record{got.GetRecord()})
}

func (r *reach) showRecords(to io.Writer, records []*oncev1.Record) error {
	all := &oncev1.ListResponse{Records: records}
	return tabulate(r, to, all, "KEY STATE ATTEMPT OWNER IDENTITY SINCE KEEP NOTE", records, func(of *oncev1.Record) []string {
		return []string{
			show.Printable(of.GetKey()), show.Enum(of.GetState()), strconv.Itoa(int(of.GetAttempt())), show.Owner(of.GetOwner()),
			show.Printable(of.GetIdentity()), of.GetAt().AsTime().Format(time.RFC3339), of.GetKeep().AsDuration().String(),
			show.Printable(of.GetNote()),
		}
	})
}

func newOnceForgetCommand(reach *reach) *cobra.Command {
	var wait time.Duration
	command := onceCommand(reach, &reach.operatorAddress, "forget NAME KEY", "Have the work of a key done anew (operators' socket)", 2,
		func(ctx context.Context, work oncev1.OnceServiceClient, args []string, to io.Writer) error {
			ctx, cancel := context.WithTimeout(ctx, reach.timeout+wait)
			defer cancel()
			_, err := work.Forget(ctx, &oncev1.ForgetRequest{Name: args[0], Key: args[1], WaitTimeout: durationpb.New(wait)})
			if err == nil {
				_, err = fmt.Fprintf(to, "%s of %s is forgotten\n", show.Printable(args[1]), show.Printable(args[0]))
			}
			return err
		})
	command.Flags().Var(span(&wait, 0, 24*time.Hour), "wait", "maximum time to wait while the work runs: at most 24h")
	return command
}
