package caller

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"

	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
)

// What each client of a host has to do with the one lease that they share, by its rank. The lender opens it over one
// connection, and holds a lock with it over another; so does the borrower. These others may be stalled for long while the
// lender's goes on. That of the straight one is not, so that only its whole process can be frozen.
const (
	Lender   = 1
	Borrower = 2
	Straight = 3
)

// share lends a lease, or holds a lock with the one that is lent. The contenders of each lock are clients of the same rank
// beside other sidecars.
func share(ctx context.Context, c *caller) {
	switch {
	case c.order.Rank < Lender:
	case c.index == 0:
		c.borrow(ctx)
	case c.order.Rank == Lender:
		c.lend(ctx)
	}
}

// lend lends one lease after the other.
func (c *caller) lend(ctx context.Context) {
	for pause(ctx, c.between(0, 50*time.Millisecond)) {
		c.calm(ctx, c.lendOnce(ctx) == nil)
	}
}

// lendOnce opens a lease, and ends it while others hold with it: it closes it, ends its stream, or leaves.
func (c *caller) lendOnce(ctx context.Context) error {
	connection, err := dial(c.order.Lending)
	if err != nil {
		return err
	}
	defer connection.Close()
	leases := leasev1.NewLeaseServiceClient(connection)
	streaming, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stopWaiting := context.AfterFunc(ctx, cancel)
	stream, err := leases.Open(streaming, &leasev1.OpenRequest{})
	if err != nil {
		return err
	}
	opened, err := stream.Recv()
	if err != nil {
		return err
	}
	stopWaiting()
	id := opened.GetOpened().GetLeaseId()
	if err := c.post(id); err != nil {
		return err
	}
	c.await(ctx)
	switch c.dice.IntN(3) {
	case 0:
		closing, over := context.WithTimeout(streaming, patience)
		defer over()
		_, err = leases.Close(closing, &leasev1.CloseRequest{LeaseId: id})
	case 1:
		cancel()
		pause(ctx, c.order.Timeout/8)
	case 2:
		err = connection.Close()
	}
	return err
}

// await lets a lease be for a while, and half of the time has an operator end a hold meanwhile.
func (c *caller) await(ctx context.Context) {
	lot := c.dice.IntN(2)
	pause(ctx, c.between(c.order.Timeout/4, c.order.Timeout/2))
	if lot == 0 {
		c.overrule(ctx) //nolint:errcheck // nobody holds just then, or a sidecar is away
	}
	pause(ctx, c.between(c.order.Timeout/4, c.order.Timeout*3/4))
}

// board is where the borrowers of a sidecar find the id of the lease.
func (c *caller) board() string {
	return filepath.Join(c.order.Histories, fmt.Sprint("lent-", c.order.Sidecar))
}

func (c *caller) post(id string) error {
	draft := fmt.Sprint(c.board(), ".", c.order.Client)
	if err := os.WriteFile(draft, []byte(id), 0o600); err != nil {
		return err
	}
	return os.Rename(draft, c.board())
}

// lent is the id of the newest lease that was lent; empty if there is none.
func (c *caller) lent() string {
	id, err := os.ReadFile(c.board())
	if err != nil {
		return ""
	}
	return string(id)
}

// dial makes a connection for bare stubs.
func dial(address string, options ...grpc.DialOption) (*grpc.ClientConn, error) {
	return grpc.NewClient(address, append(options,
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDisableRetry(), grpc.WithNoProxy(),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second},
		}),
	)...)
}
