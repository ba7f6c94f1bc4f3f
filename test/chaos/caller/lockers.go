package caller

import (
	"context"
	"time"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
)

// options are those of a lock, with the process's lease or one of its own.
func (c *caller) options(ctx context.Context, shared bool) sidekeeper.LockOptions {
	var options sidekeeper.LockOptions
	if shared && c.order.Locks == Sidekeeper {
		options.Lease = c.lease.get(ctx, c.library)
	}
	return options
}

// calm lets a while pass after something that went wrong, so that a sidecar that is away is not asked in vain all the
// time.
func (c *caller) calm(ctx context.Context, well bool) {
	if !well {
		pause(ctx, c.between(100*time.Millisecond, 300*time.Millisecond))
	}
}

// wantTheSame takes the one lock that everybody wants, for a short time each, and works.
func wantTheSame(ctx context.Context, c *caller) {
	name := c.name("hot")
	for pause(ctx, c.between(0, 20*time.Millisecond)) {
		well := c.with(ctx, name, c.options(ctx, c.dice.IntN(2) == 0), func(h *hold) {
			h.stay(ctx, c.between(2*time.Millisecond, 20*time.Millisecond))
			h.work()
		})
		c.calm(ctx, well)
	}
}

// wantAny takes any of a thousand locks for a moment.
func wantAny(ctx context.Context, c *caller) {
	wait := 5 * time.Second
	for pause(ctx, c.between(50*time.Millisecond, 150*time.Millisecond)) {
		options := c.options(ctx, true)
		options.Wait = &wait
		well := c.with(ctx, c.name("cold/%d", c.dice.IntN(1000)), options, func(h *hold) {
			h.stay(ctx, c.between(0, 10*time.Millisecond))
			h.work()
		})
		c.calm(ctx, well)
	}
}

// longCallers is how many callers of a process hold locks for long.
const longCallers = 4

// holdLong holds a lock for longer than its lease could last without being proved, or until it is lost. The other
// contender of each lock is a caller of the next slot, which is that of another sidecar. Half of the callers hold
// with the process's lease.
func holdLong(ctx context.Context, c *caller) {
	pairs := c.order.Slots
	const perSlot = longCallers / 2
	slot := (c.order.Slot + c.index/perSlot) % pairs
	name := c.name("long/%d-%d", slot, c.index%perSlot)
	for pause(ctx, c.between(0, 100*time.Millisecond)) {
		well := c.with(ctx, name, c.options(ctx, c.index%perSlot == 0), func(h *hold) {
			if h.stay(ctx, c.between(0, c.order.Timeout)) {
				h.work()
			}
			h.stay(ctx, c.between(c.order.Timeout, 3*c.order.Timeout))
		})
		c.calm(ctx, well)
	}
}

// lockDelay is that of locks that have one.
const lockDelay = 300 * time.Millisecond

// holdWithDelay holds a lock that is kept from the others for a while if it is lost. The other contender is a caller of the next slot.
func holdWithDelay(ctx context.Context, c *caller) {
	const perSlot = longCallers / 2
	slot := (c.order.Slot + c.index/perSlot) % c.order.Slots
	name := c.name("late/%d-%d", slot, c.index%perSlot)
	for pause(ctx, c.between(0, 100*time.Millisecond)) {
		options := c.options(ctx, c.index%perSlot == 0)
		options.LockDelay = lockDelay
		well := c.with(ctx, name, options, func(h *hold) { h.stay(ctx, c.between(c.order.Timeout/4, 2*c.order.Timeout)) })
		c.calm(ctx, well)
	}
}

// readAndWrite takes one of two locks, three times out of four to read. Only who writes works.
func readAndWrite(ctx context.Context, c *caller) {
	for pause(ctx, c.between(20*time.Millisecond, 120*time.Millisecond)) {
		options := c.options(ctx, false)
		options.Mode = sidekeeper.Read
		if c.dice.IntN(4) == 0 {
			options.Mode = sidekeeper.Write
		}
		well := c.with(ctx, c.name("book/%d", c.index), options, func(h *hold) {
			h.stay(ctx, c.between(0, 200*time.Millisecond))
			if options.Mode == sidekeeper.Write {
				h.work()
			}
		})
		c.calm(ctx, well)
	}
}

// giveUp asks for locks that are often held, and gives up while it waits, as soon as it has them, or in between.
func giveUp(ctx context.Context, c *caller) {
	for pause(ctx, c.between(80*time.Millisecond, 320*time.Millisecond)) {
		options := c.options(ctx, c.dice.IntN(2) == 0)
		switch wait := c.between(0, 30*time.Millisecond); c.dice.IntN(4) {
		case 0:
			wait = 0 // try once
			options.Wait = &wait
		case 1:
			options.Wait = &wait
		}
		waiting, cancel := context.WithTimeout(ctx, c.between(0, 40*time.Millisecond))
		c.with(waiting, c.name("impatient/%d", c.dice.IntN(3)), options, func(h *hold) {
			h.work()
			h.stay(ctx, c.between(0, 20*time.Millisecond))
		})
		cancel()
	}
}

// churnLeases opens a lease, takes a lock with it, and closes the lease before the lock.
func churnLeases(ctx context.Context, c *caller) {
	for pause(ctx, c.between(200*time.Millisecond, 800*time.Millisecond)) {
		lease, err := c.library.OpenLease(ctx, sidekeeper.LeaseOptions{})
		if err != nil {
			c.calm(ctx, false)
			continue
		}
		c.closeUnderLock(ctx, lease)
	}
}

func (c *caller) closeUnderLock(ctx context.Context, lease *sidekeeper.Lease) {
	wait := time.Second
	h := c.acquire(ctx, c.name("churn/%d", c.order.Slot/2), sidekeeper.LockOptions{Lease: lease, Wait: &wait})
	if h == nil {
		closing, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		lease.Close(closing)
		return
	}
	h.work()
	h.stay(ctx, c.between(0, 50*time.Millisecond))
	h.end(func(ctx context.Context) error {
		err := lease.Close(ctx)
		h.lock.Release(ctx) //nolint:errcheck // it has ended with the lease
		return err
	})
}
