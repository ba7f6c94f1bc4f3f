package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	queuev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/queue/v1"
	"github.com/sidekeeper/sidekeeper/internal/exit"
	"github.com/sidekeeper/sidekeeper/internal/show"
	"github.com/sidekeeper/sidekeeper/internal/supervise"
)

func newQueueCommand(reach *reach) *cobra.Command {
	return parent("queue", "Put items into queues and take them",
		newQueuePutCommand(reach),
		newQueueTakeCommand(reach),
		stubCommand(reach, &reach.address, queuev1.NewQueueServiceClient, "ls [PREFIX]", "List the queues that have items",
			cobra.MaximumNArgs(1), timed(reach, reach.queueList)),
	)
}

func (r *reach) queues(do func(queuev1.QueueServiceClient) error) error {
	return r.stubs(func(connection grpc.ClientConnInterface) error { return do(queuev1.NewQueueServiceClient(connection)) })
}

// An itemPut is an item and where in its queue it is put.
type itemPut struct {
	priority, most int32
	delay          time.Duration
}

func newQueuePutCommand(reach *reach) *cobra.Command {
	var of itemPut
	command := entry("put NAME [VALUE]", "Put an item into a queue",
		cobra.RangeArgs(1, 2), cobra.NoFileCompletions, func(command *cobra.Command, args []string) error {
			request, err := of.request(command, args)
			if err != nil {
				return err
			}
			return reach.queues(func(queues queuev1.QueueServiceClient) error {
				ctx, cancel := context.WithTimeout(command.Context(), reach.timeout)
				defer cancel()
				_, err := queues.Put(ctx, request)
				return err
			})
		})
	command.Flags().Int32Var(&of.priority, "priority", 0, "smaller ones are delivered first; may be negative")
	command.Flags().Var(span(&of.delay, 0, forever), "delay", "do not deliver the item before this time has passed")
	of.most = 10000
	command.Flags().Var(number(&of.most, 1, 10000), "max-items", "how many items the queue may have: 1 to 10,000")
	return command
}

func (p itemPut) request(command *cobra.Command, args []string) (*queuev1.PutRequest, error) {
	request := &queuev1.PutRequest{Name: args[0], MaxItems: p.most}
	switch flags := command.Flags(); {
	case flags.Changed("priority") && flags.Changed("delay"):
		return nil, exit.UsageError(errors.New("--priority and --delay exclude each other"))
	case flags.Changed("priority"):
		request.Order = &queuev1.PutRequest_Priority{Priority: p.priority}
	case flags.Changed("delay"):
		request.Order = &queuev1.PutRequest_Delay{Delay: durationpb.New(p.delay)}
	}
	if len(args) == 2 {
		request.Value = []byte(args[1])
		return request, nil
	}
	var err error
	request.Value, err = io.ReadAll(io.LimitReader(command.InOrStdin(), 1<<20)) // the sidecar refuses far less
	return request, err
}

func newQueueTakeCommand(reach *reach) *cobra.Command {
	var wait time.Duration
	var try bool
	command := entry("take NAME", "Take an item from a queue, show it and remove it",
		cobra.ExactArgs(1), cobra.NoFileCompletions, func(command *cobra.Command, args []string) error {
			request := &queuev1.TakeRequest{Name: args[0], Owner: supervise.DefaultOwner()}
			switch waits := command.Flags().Changed("wait"); {
			case try && waits:
				return exit.UsageError(errors.New("--try and --wait exclude each other"))
			case try || waits:
				request.WaitTimeout = durationpb.New(wait)
			}
			return reach.queues(func(queues queuev1.QueueServiceClient) error {
				return reach.takeItem(command.Context(), queues, request, command.OutOrStdout())
			})
		})
	command.Flags().Var(span(&wait, 0, forever), "wait", "maximum time to wait for an item (default: no limit)")
	command.Flags().BoolVar(&try, "try", false, "do not wait")
	return command
}

// takeItem shows an item before it says that it is done: if it cannot be shown, it is delivered again.
func (r *reach) takeItem(ctx context.Context, queues queuev1.QueueServiceClient, request *queuev1.TakeRequest, to io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := queues.Take(ctx, request)
	if err != nil {
		return err
	}
	delivered, err := awaitDelivery(stream)
	if err != nil {
		return err
	}
	if err := r.showItem(to, delivered); err != nil {
		return err
	}
	ctx, timeout := context.WithTimeout(ctx, r.timeout)
	defer timeout()
	_, err = queues.Done(ctx, &queuev1.DoneRequest{HoldId: delivered.GetHoldId()})
	return err
}

func awaitDelivery(stream grpc.ServerStreamingClient[queuev1.TakeResponse]) (*queuev1.Delivered, error) {
	for {
		event, err := stream.Recv()
		if err != nil {
			return nil, err
		}
		if delivered := event.GetDelivered(); delivered != nil {
			return delivered, nil
		}
	}
}

func (r *reach) showItem(to io.Writer, delivered *queuev1.Delivered) error {
	if r.json() {
		return show.Message(to, delivered)
	}
	for _, value := range delivered.GetValues() {
		if _, err := fmt.Fprintf(to, "%s\n", value); err != nil {
			return err
		}
	}
	return nil
}

func (r *reach) queueList(ctx context.Context, queues queuev1.QueueServiceClient, args []string, to io.Writer) error {
	found, err := allPages(func(token string) ([]*queuev1.Queue, string, error) {
		page, err := queues.List(ctx, &queuev1.ListRequest{Prefix: prefixOf(args), PageToken: token})
		return page.GetQueues(), page.GetNextPageToken(), err
	})
	if err != nil {
		return err
	}
	row := func(of *queuev1.Queue) []string {
		return []string{
			show.Printable(of.GetName()), strconv.Itoa(int(of.GetItems())), strconv.Itoa(int(of.GetTaken())), strconv.Itoa(int(of.GetDelayed())),
		}
	}
	return tabulate(r, to, &queuev1.ListResponse{Queues: found}, "NAME ITEMS TAKEN DELAYED", found, row)
}
