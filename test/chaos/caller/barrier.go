package caller

import (
	"context"
	"time"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	"github.com/sidekeeper/sidekeeper/test/chaos/history"
)

// What there is at barriers: processes, and callers who enter the double barrier together, of which twice as many come.
const (
	barrierSlots = 6
	barrierSize  = 3
)

// standAtBarriers sets a barrier and removes it, or waits at it, or enters a double barrier, as the second caller of a process.
func standAtBarriers(ctx context.Context, c *caller) {
	for pause(ctx, c.between(20*time.Millisecond, 200*time.Millisecond)) {
		switch {
		case c.index > 0:
			c.calm(ctx, c.enterBarrier(ctx))
		case c.order.Slot > 0:
			c.calm(ctx, c.passBarrier(ctx))
		default:
			well := c.changeBarrier(history.Setting, c.library.SetBarrier)
			pause(ctx, c.between(0, 400*time.Millisecond))
			c.calm(ctx, c.changeBarrier(history.Removing, c.library.RemoveBarrier) && well)
		}
	}
}

// changeBarrier sets the barrier or removes it. It is not cut short when callers are to stop.
func (c *caller) changeBarrier(kind history.Kind, change func(context.Context, string) error) bool {
	ctx, cancel := context.WithTimeout(context.Background(), callTime)
	defer cancel()
	name := c.name("gate")
	op := c.begin(history.Event{Kind: kind, Barrier: name})
	err := change(ctx, name)
	c.note(op, ending(err))
	return err == nil
}

func (c *caller) passBarrier(ctx context.Context) bool {
	name := c.name("gate")
	op := c.begin(history.Event{Kind: history.Awaiting, Barrier: name})
	err := c.library.AwaitBarrier(ctx, name, func() { c.note(op, history.Event{Kind: history.Queued}) })
	c.noteEnd(ctx, op, err)
	return err == nil
}

// enterBarrier enters the double barrier with others, and leaves it with them, or gives up if they do not come.
func (c *caller) enterBarrier(ctx context.Context) bool {
	name, wait := c.name("together"), 2*c.order.Timeout
	op := c.begin(history.Event{Kind: history.Entering, Barrier: name, Count: barrierSize, Resumes: c.order.Resumes})
	entry, err := c.library.EnterBarrier(ctx, name, barrierSize, sidekeeper.BarrierOptions{
		Wait: &wait, Owner: history.Owner(c.order.Client, op),
		OnSuspended: func(time.Duration) { c.note(op, history.Event{Kind: history.Suspended}) },
		OnResumed:   func() { c.note(op, history.Event{Kind: history.Resumed}) },
	})
	if err != nil {
		c.noteEnd(ctx, op, err)
		return false
	}
	c.note(op, history.Event{Kind: history.Entered, Round: entry.Round()})
	h := &hold{caller: c, op: op, name: name, lock: inside{entry}, stop: make(chan struct{})}
	h.look()
	h.stopped.Go(h.watch)
	h.stay(ctx, c.between(0, 300*time.Millisecond))
	h.end(entry.Leave)
	return true
}

// inside is an entry as what a hold keeps.
type inside struct{ *sidekeeper.BarrierEntry }

func (i inside) FencingToken() int64 { return i.Round() }
