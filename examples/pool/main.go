// Pool works on the queues that its process has, under a node id that no other process has:
//
//	sidekeeper assign define queues --count 6
//	sidekeeper semaphore create nodes 16
//	pool queues nodes
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout, os.Args[1:]); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1) //nolint:gocritic // stop has nothing to undo by then
	}
}

func run(ctx context.Context, to io.Writer, args []string) error {
	if len(args) != 2 {
		return errors.New("usage: pool SET SEMAPHORE")
	}
	client, err := sidekeeper.Dial(os.Getenv("SIDEKEEPER_ADDRESS"))
	if err != nil {
		return err
	}
	defer client.Close()
	for ctx.Err() == nil {
		if err := work(ctx, client, args[0], args[1], to); !errors.Is(err, sidekeeper.ErrLost) {
			return err
		}
		fmt.Fprintln(to, "the node id is lost: begin again")
	}
	return nil
}

// work works on queues for as long as it has a node id, all over one lease.
func work(ctx context.Context, client *sidekeeper.Client, set, semaphore string, to io.Writer) error {
	lease, err := client.OpenLease(ctx, sidekeeper.LeaseOptions{})
	if err != nil {
		return err
	}
	defer lease.Close(context.WithoutCancel(ctx)) // if that fails the client's end closes it
	options := sidekeeper.PermitsOptions{Lease: lease, Numbered: true}
	return client.WithPermits(ctx, semaphore, options, func(ctx context.Context, node *sidekeeper.Permits) error {
		member := fmt.Sprintf("node-%d", node.Number())
		return client.Share(ctx, set, func(ctx context.Context, queue *sidekeeper.Item) error {
			return consume(ctx, member, queue, to)
		}, sidekeeper.ShareOptions{Lease: lease, Member: member})
	})
}

// consume works on one queue until ctx ends. Here would be the broker's consumer, which is closed before consume returns.
func consume(ctx context.Context, member string, queue *sidekeeper.Item, to io.Writer) error {
	fmt.Fprintf(to, "%s takes queue %s, token %d\n", member, queue.Name(), queue.FencingToken())
	<-ctx.Done()
	fmt.Fprintf(to, "%s leaves queue %s\n", member, queue.Name())
	return nil
}
