package caller

import (
	"context"
	"time"
)

// What each process has of the workload whose callers stand on leases for most of the time: locks, each of which two other processes want,
// beside other sidecars and mostly in other languages, and a member. The programs in ../callers do the same.
const (
	standers      = 5
	standingLocks = 16
)

// stand holds a lock for a while, again and again, or is a member, as the last caller of a process.
func stand(ctx context.Context, c *caller) {
	if c.index == standers-1 {
		for pause(ctx, c.between(0, 200*time.Millisecond)) {
			c.calm(ctx, c.attend(ctx))
		}
		return
	}
	name := c.name("stand/%d", (c.order.Slot*(standers-1)+c.index)%standingLocks)
	for pause(ctx, c.between(0, 200*time.Millisecond)) {
		well := c.with(ctx, name, c.options(ctx, c.index == 0), func(h *hold) {
			h.stay(ctx, c.between(200*time.Millisecond, 3*time.Second))
		})
		c.calm(ctx, well)
	}
}
