package caller

import (
	"context"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	sidecar "github.com/sidekeeper/sidekeeper/clients/go/scripted"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	"github.com/sidekeeper/sidekeeper/test/chaos/history"
)

// borrowing has a borrower hold once, with all that happens in between. It returns what its history tells, what it was told
// last included.
func borrowing(t *testing.T, server *sidecar.Server, meanwhile func(*sidecar.Acquire)) string {
	t.Helper()
	c, told := newCaller(t, scriptedLocks{})
	c.order = Order{Timeout: 2 * time.Second, Rank: Borrower, Client: 3}
	c.dice = rand.New(rand.NewPCG(1, 2))
	connection, err := dial(server.Target)
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	b := c.borrower([]grpc.ClientConnInterface{connection})
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() {
		defer close(over)
		b.holdOnce(ctx, "a lease")
	}()
	call := server.NextAcquire()
	if call.Request.GetLeaseId() != "a lease" || call.Request.GetName() != "/lent/2" || call.Request.GetOwner() != "3/1" {
		t.Errorf("%v", call.Request)
	}
	meanwhile(call)
	cancel()
	<-over
	return told()
}

// asked is closed when a borrower has been answered for the first time, and asks anew.
func asked(server *sidecar.Server) <-chan struct{} {
	again, times := make(chan struct{}), atomic.Int32{}
	holds := server.CheckHolds
	server.CheckHolds = func(ctx context.Context, r *lockv1.CheckRequest) (*lockv1.CheckResponse, error) {
		if times.Add(1) == 2 {
			close(again)
		}
		return holds(ctx, r)
	}
	return again
}

func TestABorrowerNotesForHowLongItMayCountAndGivesUpInOrder(t *testing.T) {
	server := sidecar.Start(t)
	again := asked(server)
	expect(t, borrowing(t, server, func(call *sidecar.Acquire) {
		call.Queue(1)
		call.Grant(7)
		<-again
	}), "called; queued; granted; told for longer; releasing; told; ended OK  by user false; ")
}

func TestABorrowerAcknowledgesTheEndOfItsHoldWhenItCountsNoMore(t *testing.T) {
	server := sidecar.Start(t)
	again := asked(server)
	released := make(chan history.Instant, 1)
	server.Release = func(context.Context, *lockv1.ReleaseRequest) (*lockv1.ReleaseResponse, error) {
		released <- history.Now()
		return nil, sidecar.Status(codes.Aborted, "LEASE_CLOSED", "closed by another")
	}
	expect(t, borrowing(t, server, func(call *sidecar.Acquire) {
		call.Grant(7)
		<-again
		call.End(sidecar.Status(codes.Aborted, "LEASE_CLOSED", "closed by another"))
		<-released
	}), "called; granted; told for longer; told; ended Aborted LEASE_CLOSED by user false; ")
}

func TestABorrowerThatCheckTellsNothingGivesUp(t *testing.T) {
	server := sidecar.Start(t)
	server.CheckHolds = func(_ context.Context, r *lockv1.CheckRequest) (*lockv1.CheckResponse, error) {
		return sidecar.HoldsValidFor(r, 0), nil
	}
	expect(t, borrowing(t, server, func(call *sidecar.Acquire) {
		call.Grant(7)
		call.AwaitGone()
	}), "called; granted; releasing; ended OK  by user false; ")
}
