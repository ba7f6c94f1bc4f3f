package sidekeeper

import (
	"context"
	"time"

	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
)

// An Explanation is why a lock or a lease waits: for which locks, and for which of their holders.
type Explanation struct {
	Locks      []*ExplainedLock // first the one that was asked for, or those that the lease waits for, then those that callers there wait for
	Cycles     [][]*Link        // who waits in a circle: each for the next, and the last for the first
	Incomplete bool             // there was more than could be looked at
}

// An ExplainedLock is a lock with those at it.
type ExplainedLock struct {
	Name           string
	Holders        []*Party
	Waiters        []*Party // the first 16, and after them those that are in a circle
	WaitersOmitted int
	UsualHold      *UsualHold // nil if the sidecar has seen none end
}

// A UsualHold is for how long a lock was held through the sidecar, of the newest holds.
type UsualHold struct {
	Holds           int
	Median, Longest time.Duration
}

// A Party is a caller at a lock.
type Party struct {
	*Contender
	Lease     string   // the number of its lease, as it stands in its sidecar's log; empty if it is unknown
	WaitsFor  []string // the other locks that its lease waits for
	Suspended *bool    // whether its lease is; nil if it is unknown
}

// A Link is one lease in a circle.
type Link struct {
	Lease, Owner string
	WaitsFor     string        // the lock that it waits for, where the next one is ahead of it
	FencingToken int64         // with which it would hold that
	Age          time.Duration // for how long it has been waiting
}

// Explain shows who is at a lock, what else they wait for, who is there, and so on.
func (c *Client) Explain(ctx context.Context, name string) (*Explanation, error) {
	return c.explain(ctx, &lockv1.ExplainRequest{Name: name})
}

// ExplainLease shows the same of what a lease waits for, by its number: 8 hexadecimal digits, as they stand in the sidecar's log.
func (c *Client) ExplainLease(ctx context.Context, number string) (*Explanation, error) {
	return c.explain(ctx, &lockv1.ExplainRequest{Lease: number})
}

func (c *Client) explain(ctx context.Context, request *lockv1.ExplainRequest) (*Explanation, error) {
	reply, err := c.locks.Explain(ctx, request)
	if err != nil {
		return nil, fromStatus(err)
	}
	return &Explanation{
		Locks: each(reply.GetLocks(), explainedFrom), Incomplete: reply.GetIncomplete(),
		Cycles: each(reply.GetCycles(), func(wire *lockv1.Cycle) []*Link { return each(wire.GetLinks(), linkFrom) }),
	}, nil
}

func explainedFrom(wire *lockv1.ExplainedLock) *ExplainedLock {
	lock := &ExplainedLock{
		Name: wire.GetName(), Holders: each(wire.GetHolders(), partyFrom), Waiters: each(wire.GetWaiters(), partyFrom),
		WaitersOmitted: int(wire.GetWaitersOmitted()),
	}
	if usual := wire.GetUsualHold(); usual != nil {
		lock.UsualHold = &UsualHold{int(usual.GetHolds()), usual.GetMedian().AsDuration(), usual.GetLongest().AsDuration()}
	}
	return lock
}

func partyFrom(wire *lockv1.Party) *Party {
	return &Party{
		Contender: contenderFrom(wire.GetContender()), Lease: wire.GetLease(), WaitsFor: wire.GetWaitsFor(), Suspended: wire.Suspended,
	}
}

func linkFrom(wire *lockv1.Link) *Link {
	return &Link{wire.GetLease(), wire.GetOwner(), wire.GetWaitsFor(), wire.GetFencingToken(), wire.GetAge().AsDuration()}
}
