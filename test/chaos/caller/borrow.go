package caller

import (
	"context"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	"github.com/sidekeeper/sidekeeper/test/chaos/history"
)

// LentLock is the lock that clients of a rank hold with leases that are lent.
func LentLock(rank int) string { return fmt.Sprint("lent/", rank) }

// A borrower takes a lock with a lease that another connection has opened, with bare stubs, and counts as the documents say:
// from when it asked Check, until it has read that the hold is over.
type borrower struct {
	*caller

	locks lockv1.LockServiceClient
	ways  []grpc.ClientConnInterface // of which each hold is checked over one: that of its stream, or another
}

// borrow holds a lock with whatever lease is lent, again and again.
func (c *caller) borrow(ctx context.Context) {
	gate := newGate()
	falters, err := dial(c.order.Borrowing, through(gate))
	if err != nil {
		return
	}
	defer falters.Close()
	steady, err := dial(c.order.Lending)
	if err != nil {
		return
	}
	defer steady.Close()
	var faltering sync.WaitGroup
	twin := c.twin()
	faltering.Go(func() { twin.falter(ctx, gate) })
	defer faltering.Wait()
	b := c.borrower([]grpc.ClientConnInterface{falters, steady})
	for pause(ctx, c.between(20*time.Millisecond, 100*time.Millisecond)) {
		if lease := c.lent(); lease != "" {
			c.calm(ctx, b.holdOnce(ctx, lease))
		}
	}
}

// borrower has the streams of its holds over the first of these ways.
func (c *caller) borrower(ways []grpc.ClientConnInterface) *borrower {
	return &borrower{c, lockv1.NewLockServiceClient(ways[0]), ways}
}

// holdOnce says whether the lock was granted.
func (b *borrower) holdOnce(ctx context.Context, lease string) bool {
	name := b.name("%s", LentLock(b.order.Rank))
	op := b.begin(history.Event{Kind: history.Called, Lock: name, Mode: history.Exclusive})
	streaming, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stopWaiting := context.AfterFunc(ctx, cancel)
	defer stopWaiting()
	stream, err := b.locks.Acquire(streaming, &lockv1.AcquireRequest{
		Name: name, LeaseId: lease, Owner: history.Owner(b.order.Client, op), WaitTimeout: durationpb.New(2 * b.order.Timeout),
	})
	if err != nil {
		b.noteEnd(ctx, op, err)
		return false
	}
	granted, err := b.awaitGrant(op, stream)
	if err != nil {
		b.noteEnd(ctx, op, err)
		return false
	}
	h := &borrowed{borrower: b, op: op, hold: granted.GetHoldId(), over: make(chan struct{})}
	h.ask = b.question(h.hold)
	wanted := stopWaiting()
	if !wanted {
		b.note(op, history.Event{Kind: history.Releasing})
	}
	go h.follow(func() error {
		_, err := stream.Recv()
		return err
	})
	if wanted {
		h.keep(ctx)
	}
	h.giveUp(cancel)
	return true
}

type acquireStream = grpc.ServerStreamingClient[lockv1.AcquireResponse]

func (b *borrower) awaitGrant(op int64, stream acquireStream) (*lockv1.Granted, error) {
	for {
		event, err := stream.Recv()
		if err != nil {
			return nil, err
		}
		if queued := event.GetQueued(); queued != nil {
			b.note(op, history.Event{Kind: history.Queued, Position: int(queued.GetPosition())})
		}
		if granted := event.GetGranted(); granted != nil {
			b.note(op, history.Event{Kind: history.Granted, Token: granted.GetFencingToken()})
			return granted, nil
		}
	}
}

// A borrowed hold is one that its caller counts on by itself.
type borrowed struct {
	*borrower

	op   int64
	hold string
	ask  func(context.Context) (time.Duration, error) // Check
	over chan struct{}                                // closed when its stream has ended

	mu    sync.Mutex
	until history.Instant // it may be counted on; 0 before the first answer
	ended bool            // it may be counted on no more
}

// follow reads the stream to its end. The time at which it has read it counts.
func (h *borrowed) follow(receive func() error) {
	defer close(h.over)
	for {
		err := receive()
		read := history.Now()
		if err != nil {
			h.learn(read)
			h.note(h.op, ending(err))
			return
		}
	}
}

// learn notes that the caller knows since then that the hold is over.
func (h *borrowed) learn(since history.Instant) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.ended && h.until != 0 {
		h.note(h.op, history.Event{Kind: history.Told, To: min(since, h.until)})
	}
	h.ended = true
}

// count notes that the caller may count on the hold until then, unless its time was over before it heard so.
func (h *borrowed) count(asked, until history.Instant) {
	if !h.counts() || until <= h.until {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.ended {
		h.until = until
		h.note(h.op, history.Event{Kind: history.Told, From: asked, To: until})
	}
}

// counts says whether the caller may still count on the hold, or has not been told of any time yet.
func (h *borrowed) counts() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ended = h.ended || h.until != 0 && history.Now() > h.until
	return !h.ended
}

// keep asks again and again, until the hold is over or has been kept for long enough.
func (h *borrowed) keep(ctx context.Context) {
	enough := time.NewTimer(h.between(h.order.Timeout/2, 2*h.order.Timeout))
	defer enough.Stop()
	h.check(ctx)
	for h.counts() {
		select {
		case <-time.After(h.order.Timeout / askedEvery):
			h.check(ctx)
		case <-h.over:
		case <-enough.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// askedEvery is the part of a session's timeout after which a borrower asks again.
const askedEvery = 10

// check asks once. An answer that does not come is no answer.
func (h *borrowed) check(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, h.order.Timeout)
	defer cancel()
	asked := history.Now()
	validFor, err := h.ask(ctx)
	switch {
	case err == nil && validFor > 0:
		h.count(asked, asked.Add(validFor))
	case err == nil || ending(err).Reason != "":
		h.learn(history.Now())
	}
}

// question is Check of a hold over one of the ways. The lease's Check would not do: the lease may be valid, and the hold have ended.
func (b *borrower) question(hold string) func(context.Context) (time.Duration, error) {
	locks := lockv1.NewLockServiceClient(b.ways[b.dice.IntN(len(b.ways))])
	return func(ctx context.Context) (time.Duration, error) {
		answer, err := locks.Check(ctx, &lockv1.CheckRequest{HoldIds: []string{hold}})
		if err != nil {
			return 0, err
		}
		return answer.GetHolds()[0].GetValidFor().AsDuration(), nil
	}
}

// giveUp releases the hold or, where it is over already, acknowledges that.
func (h *borrowed) giveUp(cut context.CancelFunc) {
	select {
	case <-h.over:
	default:
		h.note(h.op, history.Event{Kind: history.Releasing})
	}
	h.learn(history.Now())
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	h.locks.Release(ctx, &lockv1.ReleaseRequest{HoldId: h.hold}) //nolint:errcheck // the end of the stream tells
	select {
	case <-h.over:
	case <-ctx.Done():
	}
	cut()
	<-h.over
}
