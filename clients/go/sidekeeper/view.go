package sidekeeper

import (
	"context"
	"iter"
	"time"

	"google.golang.org/grpc"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	holdv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/hold/v1"
	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
)

// A View is who holds a lock and who waits for it.
type View struct {
	Name           string
	Holders        []*Contender // in the order of their grants
	Waiters        []*Contender // in the order of their turn
	WaitersOmitted int          // how many waiters were left out because there are too many for one message
	LostHold       *LostHold    // whose delay is kept, so that the lock has no holder; nil if there is none
	Stale          bool         // from Watch: the ensemble is out of contact, so that the view may be out of date
}

// A LostHold is a hold that has ended otherwise than by its holder's own hand, and whose delay is kept.
type LostHold struct {
	FencingToken int64
	LockDelay    time.Duration // the whole of it
}

// A Contender holds a lock or waits for it.
type Contender struct {
	Mode                Mode
	Identity            string            // as the sidecar that made it verified it; empty where callers are not told apart
	Owner               string            // as given to Acquire; of one that is foreign, what it wrote about itself, if that is text
	Metadata            map[string]string // as given to Acquire
	FencingToken        int64             // with which it holds the lock, or will
	Age                 time.Duration     // how long it has been in the queue, by the ensemble's clock
	Foreign             bool              // a client of the ensemble that is not Sidekeeper's
	RevocationRequested bool              // it has been asked to let go
	LockDelay           time.Duration     // of a holder, which follows its hold unless it releases it
	Claim               *Reservation      // of a claim, which has no process; nil of others
}

// A Reservation is what a claim says of itself, for people.
type Reservation struct {
	Reason string
	Until  time.Time // by the clock of the sidecar that has granted or extended it; zero while it waits
}

// A LockEntry is one lock in a list.
type LockEntry struct {
	Name       string
	Contenders int // how many hold it or wait for it
	Claims     int // how many of them are claims, which have no process
}

// A LeaseInfo is one lease in a list.
type LeaseInfo struct {
	Identity    string            // as the sidecar verified it; empty where callers are not told apart
	Owner       string            // as given to OpenLease, or to the call that the lease is for
	Metadata    map[string]string // as given there
	Suspended   bool              // a heartbeat is late: what it owns is the caller's until the validity runs out
	Sleeping    bool              // nothing stands on it, so that it is kept and not proved: ValidFor is 0
	Age         time.Duration     // how long it has been open
	ValidFor    time.Duration     // for how long it was certainly still the caller's when the list was made
	TTL         time.Duration     // the timeout that the ensemble granted
	Possessions []Possession      // what it holds and waits for, at most 100 of them
}

// A Possession is what a lease holds or waits for.
type Possession struct {
	Kind, Name string // the kind is `lock`, `semaphore` or `member`
	Held       bool   // or it waits for it
}

func viewFrom(wire *lockv1.View) *View {
	var lost *LostHold
	if of := wire.GetLostHold(); of != nil {
		lost = &LostHold{FencingToken: of.GetFencingToken(), LockDelay: of.GetLockDelay().AsDuration()}
	}
	return &View{
		Name: wire.GetName(), Holders: each(wire.GetHolders(), contenderFrom), Waiters: each(wire.GetWaiters(), contenderFrom),
		WaitersOmitted: int(wire.GetWaitersOmitted()), LostHold: lost,
	}
}

func contenderFrom(wire *holdv1.Contender) *Contender {
	contender := &Contender{
		Mode: Mode(wire.GetMode()), Identity: wire.GetIdentity(), Owner: wire.GetOwner(), Metadata: wire.GetMetadata(),
		FencingToken: wire.GetToken(), Age: wire.GetAge().AsDuration(), Foreign: wire.GetForeign(),
		RevocationRequested: wire.GetRevocationRequested(), LockDelay: wire.GetLockDelay().AsDuration(),
	}
	if claim := wire.GetClaim(); claim != nil {
		contender.Claim = &Reservation{Reason: claim.GetReason()}
		if until := claim.GetUntil(); until != nil {
			contender.Claim.Until = until.AsTime()
		}
	}
	return contender
}

func lockEntryFrom(wire *lockv1.Lock) *LockEntry {
	return &LockEntry{Name: wire.GetName(), Contenders: int(wire.GetContenders()), Claims: int(wire.GetClaims())}
}

func leaseInfoFrom(wire *leasev1.Lease) *LeaseInfo {
	return &LeaseInfo{
		Identity: wire.GetIdentity(), Owner: wire.GetOwner(), Metadata: wire.GetMetadata(),
		Suspended: wire.GetState() == leasev1.State_STATE_SUSPENDED, Sleeping: wire.GetState() == leasev1.State_STATE_SLEEPING,
		Age:      wire.GetAge().AsDuration(),
		ValidFor: wire.GetValidFor().AsDuration(), TTL: wire.GetTtl().AsDuration(),
		Possessions: each(wire.GetPossessions(), func(wire *leasev1.Possession) Possession {
			return Possession{Kind: wire.GetKind(), Name: wire.GetName(), Held: wire.GetHeld()}
		}),
	}
}

// Get shows who holds the lock and who waits for it.
func (c *Client) Get(ctx context.Context, name string) (*View, error) {
	reply, err := c.locks.Get(ctx, &lockv1.GetRequest{Name: name})
	if err != nil {
		return nil, fromStatus(err)
	}
	return viewFrom(reply.GetView()), nil
}

// Watch shows the same as Get, at once and whenever it has changed. It ends with an error, also when ctx ends or the sidecar is away: what it
// has shown may then be out of date.
func (c *Client) Watch(ctx context.Context, name string) iter.Seq2[*View, error] {
	open := func(ctx context.Context) (grpc.ServerStreamingClient[lockv1.WatchResponse], error) {
		return c.locks.Watch(ctx, &lockv1.WatchRequest{Name: name, Keepalive: keepaliveEvery})
	}
	from := func(wire *lockv1.WatchResponse) (*View, bool) {
		view := viewFrom(wire.GetView())
		view.Stale = wire.GetStale()
		return view, true
	}
	return messages(ctx, c.clock, open, from, unheard)
}

// List names the locks that are held or waited for, in the order of names; all, or those below a prefix of whole
// segments. An error ends it.
func (c *Client) List(ctx context.Context, prefix string) iter.Seq2[*LockEntry, error] {
	return pages(lockEntryFrom, func(token string) ([]*lockv1.Lock, string, error) {
		reply, err := c.locks.List(ctx, &lockv1.ListRequest{Prefix: prefix, PageSize: pageSize, PageToken: token})
		return reply.GetLocks(), reply.GetNextPageToken(), err
	})
}

// Leases shows the leases of this sidecar, oldest first. An error ends it.
func (c *Client) Leases(ctx context.Context) iter.Seq2[*LeaseInfo, error] {
	return pages(leaseInfoFrom, func(token string) ([]*leasev1.Lease, string, error) {
		reply, err := c.leases.List(ctx, &leasev1.ListRequest{PageSize: pageSize, PageToken: token})
		return reply.GetLeases(), reply.GetNextPageToken(), err
	})
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
	Reason     string         // required: why, for the holder and the audit
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
