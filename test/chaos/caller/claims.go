package caller

import (
	"context"
	"strconv"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	"github.com/sidekeeper/sidekeeper/test/chaos/history"
)

// Claiming is the workload of locks that are claimed, and nothing else.
const Claiming = "W20"

// How many locks are claimed, by how many callers of each process beside as many that hold them; for how long a claim stands, which is the
// least.
const (
	claimedLocks = 24
	claimants    = 1
	claimTime    = time.Minute
)

// claimLocks claims locks or, as the last caller of a process, holds them as others do.
func claimLocks(ctx context.Context, c *caller) {
	var left []*claimed // to run out
	for pause(ctx, c.between(0, 500*time.Millisecond)) {
		name := c.name("claimed/%d", c.dice.IntN(claimedLocks))
		if c.index == claimants {
			wait := 5 * time.Second
			options := c.options(ctx, c.dice.IntN(2) == 0)
			options.Wait = &wait
			c.calm(ctx, c.with(ctx, name, options, func(h *hold) {
				h.work()
				h.stay(ctx, c.between(0, time.Second))
			}))
			continue
		}
		claim := c.claim(ctx, name)
		if c.calm(ctx, claim != nil); claim != nil && !claim.use(ctx) {
			left = append(left, claim)
		}
	}
	for _, claim := range left { // since the round is to end
		_ = claim.release()
	}
}

// A claimed is a lock that is held without a process.
type claimed struct {
	*sidekeeper.Claim

	caller *caller
	op     int64
	name   string
}

// claim returns nil if the lock was not granted, as far as the caller knows.
func (c *caller) claim(ctx context.Context, name string) *claimed {
	op := c.begin(history.Event{Kind: history.Called, Lock: name, Mode: history.Exclusive, Rest: claimTime})
	wait := c.between(time.Second, 10*time.Second)
	claim, err := c.library.Claim(ctx, name, sidekeeper.ClaimOptions{
		ReserveFor: claimTime, Reason: "a fault test", Wait: &wait, Owner: history.Owner(c.order.Client, op),
	})
	if err != nil {
		c.noteEnd(ctx, op, err)
		return nil
	}
	c.note(op, history.Event{Kind: history.Granted, Token: claim.FencingToken()})
	of := &claimed{claim, c, op, name}
	of.count()
	return of
}

// count notes that the caller counts on the claim until its time is over. All clocks of the round are one.
func (c *claimed) count() { c.caller.note(c.op, history.Event{Kind: history.Told, To: c.end()}) }

func (c *claimed) end() history.Instant { return history.Now().Add(time.Until(c.Until())) }

// use writes under the claim and extends it for a while, and releases it, or leaves it to run out. It says whether it was released.
func (c *claimed) use(ctx context.Context) (released bool) {
	for range c.caller.dice.IntN(3) {
		pause(ctx, c.caller.between(0, 3*time.Second))
		c.put()
		if c.caller.dice.IntN(3) == 0 && c.extend() == nil {
			c.count()
		}
	}
	if c.caller.dice.IntN(4) > 0 {
		c.caller.note(c.op, ending(c.release()))
		return true
	}
	c.caller.note(c.op, history.Event{Kind: history.Ended, Code: codes.Aborted.String(), Reason: "CLAIM_ENDED"})
	return false
}

func (c *claimed) extend() error {
	ctx, cancel := context.WithTimeout(context.Background(), callTime)
	defer cancel()
	return c.Extend(ctx, claimTime)
}

// put writes the token to a key of the configuration that the claim guards. What becomes of it stands in the logs.
func (c *claimed) put() {
	ctx, cancel := context.WithTimeout(context.Background(), callTime)
	defer cancel()
	value := []byte(strconv.FormatInt(c.FencingToken(), 10))
	_, _ = c.caller.library.Config().Put(c.Ticket().Guard(ctx), history.GuardedKey(c.name), value)
}

// release gives the claim up. The caller counts on it no more, whatever becomes of the call.
func (c *claimed) release() error {
	c.caller.note(c.op, history.Event{Kind: history.Told, To: min(history.Now(), c.end())})
	c.caller.note(c.op, history.Event{Kind: history.Releasing})
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return c.Release(ctx)
}
