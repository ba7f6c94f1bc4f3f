package sidekeeper

import (
	"context"
	"iter"
	"time"

	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
)

// What a sidecar shows of its locks and leases.
type (
	View      = lockv1.View      // who holds a lock and who waits for it
	Contender = lockv1.Contender // somebody who holds or waits for a lock
	LockEntry = lockv1.Lock      // one lock in a list
	LeaseInfo = leasev1.Lease    // one lease in a list
)

// Get shows who holds the lock and who waits for it.
func (c *Client) Get(ctx context.Context, name string) (*View, error) {
	reply, err := c.locks.Get(ctx, &lockv1.GetRequest{Name: name})
	return reply.GetView(), fromStatus(err)
}

// Watch shows the same as Get, at once and whenever it has changed. It ends with an error, also when ctx ends.
func (c *Client) Watch(ctx context.Context, name string) iter.Seq2[*View, error] {
	return func(yield func(*View, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		stream, err := c.locks.Watch(ctx, &lockv1.WatchRequest{Name: name})
		for err == nil {
			var next *lockv1.WatchResponse
			if next, err = stream.Recv(); err == nil && !yield(next.GetView(), nil) {
				return
			}
		}
		yield(nil, fromStatus(err))
	}
}

// List names the locks that somebody holds or waits for, in the order of names; all, or those below a prefix of whole
// segments. An error ends it.
func (c *Client) List(ctx context.Context, prefix string) iter.Seq2[*LockEntry, error] {
	return pages(func(token string) ([]*LockEntry, string, error) {
		reply, err := c.locks.List(ctx, &lockv1.ListRequest{Prefix: prefix, PageSize: pageSize, PageToken: token})
		return reply.GetLocks(), reply.GetNextPageToken(), err
	})
}

// Leases shows the leases of this sidecar, oldest first. An error ends it.
func (c *Client) Leases(ctx context.Context) iter.Seq2[*LeaseInfo, error] {
	return pages(func(token string) ([]*LeaseInfo, string, error) {
		reply, err := c.leases.List(ctx, &leasev1.ListRequest{PageSize: pageSize, PageToken: token})
		return reply.GetLeases(), reply.GetNextPageToken(), err
	})
}

const pageSize = 1000

func pages[T any](next func(token string) ([]*T, string, error)) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		for token, more := "", true; more; more = token != "" {
			var entries []*T
			var err error
			if entries, token, err = next(token); err != nil {
				yield(nil, fromStatus(err))
				return
			}
			for _, entry := range entries {
				if !yield(entry, nil) {
					return
				}
			}
		}
	}
}

// RevokeOptions say how to ask holders to let go.
type RevokeOptions struct {
	Reason string         // for the holders
	Grace  *time.Duration // when it is over the holds are ended by force: for operators; nil, never
}

// Revoke asks every present holder of the lock to let go, and says how many were asked.
func (c *Client) Revoke(ctx context.Context, name string, options RevokeOptions) (asked int, err error) {
	reply, err := c.locks.Revoke(ctx, &lockv1.RevokeRequest{
		Name: name, Reason: options.Reason, Grace: optionalDuration(options.Grace),
	})
	return int(reply.GetAsked()), fromStatus(err)
}

// BreakOptions say how to end a hold.
type BreakOptions struct {
	Reason     string         // for the holder
	ForceAfter *time.Duration // how long it is left to the holder's sidecar; nil, until its lease must have expired
}

// Break ends exactly the hold with this fencing token, for operators. It says whether the place had to be removed from
// outside: then its holder may not have known in time.
func (c *Client) Break(ctx context.Context, name string, token int64, options BreakOptions) (forced bool, err error) {
	reply, err := c.locks.Break(ctx, &lockv1.BreakRequest{
		Name: name, FencingToken: token, Reason: options.Reason, ForceAfter: optionalDuration(options.ForceAfter),
	})
	return reply.GetForced(), fromStatus(err)
}

// readiness is the health service that tells of the ensemble; the empty one tells of the process.
const readiness = "sidekeeper.readiness"

// Alive says whether the sidecar serves.
func (c *Client) Alive(ctx context.Context) (bool, error) { return c.serves(ctx, "") }

// Ready says whether the sidecar reaches the ensemble.
func (c *Client) Ready(ctx context.Context) (bool, error) { return c.serves(ctx, readiness) }

func (c *Client) serves(ctx context.Context, service string) (bool, error) {
	reply, err := c.health.Check(ctx, &healthv1.HealthCheckRequest{Service: service})
	return reply.GetStatus() == healthv1.HealthCheckResponse_SERVING, fromStatus(err)
}
