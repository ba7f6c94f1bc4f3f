package sidekeeper

import (
	"context"
	"iter"
	"slices"
	"strings"

	"google.golang.org/grpc"

	fencingv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/fencing/v1"
	holdv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/hold/v1"
)

// A Ticket names a hold for others, who guard with it what they write for its holder. It is no secret.
type Ticket struct {
	Lock         string
	FencingToken int64
}

// Ticket is what the holder hands on. It is good until the lock is released or lost.
func (l *Lock) Ticket() Ticket { return Ticket{strings.TrimPrefix(l.what, lockWord), l.token} }

// Guard is ctx with the lock as a guard of what its client writes with it: Config.Put, Delete and Commit, Sequence.Next unless the
// sequence is Relaxed, and Join and Membership.Update; a member that has joined stays when the lock is released. The ensemble carries that out
// only while the lock is held, in one transaction with the write, at no cost; otherwise it is ErrGuardLost, or ErrHoldNotFound after
// the sidecar has restarted. WithLock and RunWhileLeader give their functions such a context. What another Client writes is not guarded by
// it: hand on a Ticket.
func (l *Lock) Guard(ctx context.Context) context.Context {
	hold := guard{client: l.client, wire: &holdv1.Guard{Hold: &holdv1.Guard_HoldId{HoldId: l.id}}}
	if l.options.Mode != Read {
		hold.tickets = []Ticket{l.Ticket()}
	}
	return withGuard(ctx, hold)
}

// Guard is ctx with the ticket as a guard of what is written with it, through whatever Client, as with Lock.Guard. It costs the sidecar two
// reads.
func (t Ticket) Guard(ctx context.Context) context.Context {
	ticket := &holdv1.Ticket{Lock: t.Lock, FencingToken: t.FencingToken}
	return withGuard(ctx, guard{wire: &holdv1.Guard{Hold: &holdv1.Guard_Ticket{Ticket: ticket}}, tickets: []Ticket{t}})
}

// Tickets are those of the holds that guard what is written with ctx, in the order of Lock.Guard and Ticket.Guard: what package fence sends
// along to whatever else the locks protect. Locks that are held with Read have none here, since readers do not exclude each other.
func Tickets(ctx context.Context) (tickets []Ticket) {
	all, _ := ctx.Value(guardsKey{}).([]guard)
	for _, of := range all {
		for _, ticket := range of.tickets {
			if !slices.Contains(tickets, ticket) {
				tickets = append(tickets, ticket)
			}
		}
	}
	return tickets
}

// Verify says whether the ticket's hold lasts, and which fencing token its lock is held with: 0 if the lock has no holder. It is for a resource
// that is stored elsewhere and was sent the ticket. It was so at some moment of the call: a resource that can compare tokens should refuse all
// but the largest that it has seen.
func (c *Client) Verify(ctx context.Context, ticket Ticket) (held bool, current int64, err error) {
	reply, err := fencingv1.NewFencingServiceClient(c.connection).Verify(ctx, &fencingv1.VerifyRequest{
		Ticket: &holdv1.Ticket{Lock: ticket.Lock, FencingToken: ticket.FencingToken},
	})
	return reply.GetHeld(), reply.GetCurrentToken(), fromStatus(err)
}

// A CurrentToken says what a lock is held with.
type CurrentToken struct {
	Lock         string
	FencingToken int64 // that of the first holder; 0 if the lock has no holder
	Stale        bool  // the token may be out of date, as the sidecar has lost contact with the ensemble
}

// WatchTokens says what 1 to 100 locks are held with: each as soon as it is known, and again whenever it has changed. A resource that refuses
// all but the largest token that it was told keeps out earlier holders at once. Of one lock no smaller token is told after a larger one, until
// it ends: with an error, also when ctx ends or the sidecar is away. The tokens that it has told are stale from then on.
func (c *Client) WatchTokens(ctx context.Context, locks ...string) iter.Seq2[[]CurrentToken, error] {
	open := func(ctx context.Context) (grpc.ServerStreamingClient[fencingv1.WatchResponse], error) {
		return fencingv1.NewFencingServiceClient(c.connection).Watch(ctx, &fencingv1.WatchRequest{Locks: locks, Keepalive: keepaliveEvery})
	}
	from := func(wire *fencingv1.WatchResponse) ([]CurrentToken, bool) {
		return each(wire.GetTokens(), func(of *fencingv1.CurrentToken) CurrentToken {
			return CurrentToken{Lock: of.GetLock(), FencingToken: of.GetFencingToken(), Stale: of.GetStale()}
		}), true
	}
	return messages(ctx, c.clock, open, from, unheard)
}

// Unguarded is ctx without the guards of Lock.Guard and Ticket.Guard.
func Unguarded(ctx context.Context) context.Context {
	return context.WithValue(ctx, guardsKey{}, []guard(nil))
}

// A guard is for what one client writes; for all, if that is nil.
type guard struct {
	client  *Client
	wire    *holdv1.Guard
	tickets []Ticket // without those of locks of which others may have smaller or larger ones
}

type guardsKey struct{}

func withGuard(ctx context.Context, added guard) context.Context {
	before, _ := ctx.Value(guardsKey{}).([]guard)
	return context.WithValue(ctx, guardsKey{}, append(slices.Clip(before), added))
}

// guards are those that ctx has for what the client writes.
func (c *Client) guards(ctx context.Context) (wire []*holdv1.Guard) {
	all, _ := ctx.Value(guardsKey{}).([]guard)
	for _, of := range all {
		if of.client == nil || of.client == c {
			wire = append(wire, of.wire)
		}
	}
	return wire
}
