package caller

import (
	"context"
	"errors"
	"time"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	"github.com/sidekeeper/sidekeeper/test/chaos/history"
)

// poolSize is how many numbers a pool has, which is fewer than its callers.
const poolSize = 10

// A numbered permit is a lock of its number.
type numbered struct{ *sidekeeper.Permits }

func (n numbered) FencingToken() int64 { return n.Token() }

// bearNumbers has a number of a pool for a while, again and again. A lost one rests for longer than its session outlives the caller's belief,
// and for 5 seconds more since clocks may be wrong.
func bearNumbers(ctx context.Context, c *caller) {
	pool := c.name("pool")
	for c.makePool(ctx, pool) != nil && ctx.Err() == nil {
		c.calm(ctx, false)
	}
	for pause(ctx, c.between(20*time.Millisecond, 200*time.Millisecond)) {
		c.calm(ctx, c.bearNumber(ctx, pool))
	}
}

func (c *caller) makePool(ctx context.Context, pool string) error {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	err := c.library.CreateSemaphore(ctx, pool, poolSize)
	if errors.Is(err, sidekeeper.ErrSemaphoreExists) {
		return nil
	}
	return err
}

// bearNumber says whether there was a number.
func (c *caller) bearNumber(ctx context.Context, pool string) bool {
	quarantine := 2 * c.order.Timeout
	op := c.begin(history.Event{Kind: history.Numbering, Pool: pool, Rest: quarantine, Resumes: c.order.Resumes})
	permits, err := c.library.AcquirePermits(ctx, pool, sidekeeper.PermitsOptions{
		Numbered: true, Quarantine: new(quarantine), Lease: c.options(ctx, c.dice.IntN(2) == 0).Lease, Owner: history.Owner(c.order.Client, op),
		OnQueued:    func(position int) { c.note(op, history.Event{Kind: history.Queued, Position: position}) },
		OnSuspended: func(time.Duration) { c.note(op, history.Event{Kind: history.Suspended}) },
		OnResumed:   func() { c.note(op, history.Event{Kind: history.Resumed}) },
	})
	if err != nil {
		c.noteEnd(ctx, op, err)
		return false
	}
	c.note(op, history.Event{Kind: history.Granted, Token: permits.Token(), Number: permits.Number()})
	h := &hold{caller: c, op: op, name: pool, lock: numbered{permits}, stop: make(chan struct{})}
	h.look()
	h.stopped.Go(h.watch)
	if c.dice.IntN(8) == 0 {
		h.stay(ctx, c.between(0, 3*time.Second))
	} else {
		h.stay(ctx, c.between(0, 40*time.Millisecond))
	}
	h.end(permits.Release)
	return true
}
