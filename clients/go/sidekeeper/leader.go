package sidekeeper

import (
	"context"
	"iter"
)

// RunWhileLeader runs f whenever the caller holds the lock, until f returns and has not lost it, and returns its error. The
// context of f ends when the lock is lost; f is run again after the next grant. It waits for a sidecar or an ensemble that is away.
// The end of ctx ends it.
func (c *Client) RunWhileLeader(
	ctx context.Context, name string, options LockOptions, f func(ctx context.Context, lock *Lock) error,
) error {
	var again pause
	for {
		var lead *Lock
		err := c.WithLock(ctx, name, options, func(ctx context.Context, lock *Lock) error {
			lead = lock
			again.reset()
			return f(ctx, lock)
		})
		if ctx.Err() != nil || !options.worthAnother(lead, err) {
			return err
		}
		if err := again.wait(ctx); err != nil {
			return err
		}
	}
}

// worthAnother says whether who led, or did not come to lead, may lead in a moment.
func (o LockOptions) worthAnother(lead *Lock, err error) bool {
	if lead != nil {
		return lead.Err() != nil
	}
	return isTransient(err) || wasCutShort(err) && (o.Lease == nil || o.Lease.Valid() || o.Lease.context.Err() == nil)
}

// WatchLeader says who holds the lock, or holds it first, and nil if it is free: at once and whenever that has changed, also across
// restarts of the sidecar. It does not say when that may be out of date; Observe does. It ends with an error, also when ctx ends.
func (c *Client) WatchLeader(ctx context.Context, name string) iter.Seq2[*Contender, error] {
	views := reopened(ctx, func() iter.Seq2[*View, error] { return c.Watch(ctx, name) }, func() {})
	return func(yield func(*Contender, error) bool) {
		told := int64(-1)
		for view, err := range views {
			if err == nil && view.Stale {
				continue
			}
			leader, token := first(view)
			if (err != nil || token != told) && !yield(leader, err) {
				return
			}
			told = token
		}
	}
}

// first is the first holder with its fencing token, which is 0 if there is none.
func first(view *View) (*Contender, int64) {
	if view == nil || len(view.Holders) == 0 {
		return nil, 0
	}
	return view.Holders[0], view.Holders[0].FencingToken
}
