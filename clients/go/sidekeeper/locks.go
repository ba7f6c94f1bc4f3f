package sidekeeper

import (
	"context"
	"strings"
	"time"

	holdv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/hold/v1"
	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
)

// A WantedLock is one of several locks that are acquired at once.
type WantedLock struct {
	Name string
	Mode Mode
}

// AllOptions say how to acquire several locks at once. The zero value waits for ever, with a lease of their own. The functions are called one
// at a time while the stream is read: they must not block, nor release the locks.
type AllOptions struct {
	Lease    *Lease         // of the same Client, to hold the locks with; nil, a lease that lives as long as they do
	Wait     *time.Duration // how long to wait for all: 0 tries once, nil waits for ever, and AbsenceTimeout for a sidecar that is away
	Owner    string         // who the caller is, for people
	Metadata map[string]string

	// AcknowledgeOnRelease is as in LockOptions.
	AcknowledgeOnRelease bool

	OnQueued     func(ahead map[string]int) // how many are ahead, by the names of the locks that are still waited for
	OnSuspended  func(remaining time.Duration)
	OnResumed    func()
	OnRevocation func(Revocation) // of any of the locks, which asks for all
}

// Locks are several locks that the caller holds as one hold: what ends one ends all. Their holder must Release them, also after they were lost.
type Locks struct {
	carried
	wanted  []WantedLock
	tokens  map[string]int64
	options AllOptions
}

// AcquireAll waits until it is the caller's turn for each of 1 to 16 locks, and returns when all are certainly the caller's for some time to
// come. It takes its places in all queues at the same moment: callers that take what they need with one AcquireAll never wait for each other
// in a circle, whatever the order of the names. The end of ctx ends the waiting, and does not end a hold that AcquireAll has returned. Errors
// that a caller can act on, and what happens while the sidecar or the ensemble is away, are as for Acquire.
func (c *Client) AcquireAll(ctx context.Context, locks []WantedLock, options AllOptions) (*Locks, error) {
	names := make([]string, len(locks))
	for i, of := range locks {
		names[i] = of.Name
	}
	onLease := carriedOptions{options.Lease, options.Owner, options.AcknowledgeOnRelease, options.OnSuspended, options.OnResumed}
	what := "locks " + strings.Join(names, ", ")
	return carry(ctx, c, what, options.Wait, onLease, func(wait *time.Duration) (*Locks, *request) {
		options.Wait = wait
		made := &Locks{wanted: locks, options: options}
		start := &leasev1.Start{Request: &leasev1.Start_AcquireAll{AcquireAll: options.request(locks)}}
		return made, &request{start: start, handle: func(event *leasev1.Event) { made.handle(event.GetAcquireAll()) }}
	})
}

func (o AllOptions) request(locks []WantedLock) *lockv1.AcquireAllRequest {
	request := &lockv1.AcquireAllRequest{Owner: o.Owner, Metadata: o.Metadata, WaitTimeout: optionalDuration(o.Wait)}
	for _, of := range locks {
		request.Locks = append(request.Locks, &lockv1.WantedLock{Name: of.Name, Mode: holdv1.Mode(of.Mode)})
	}
	return request
}

func (l *Locks) handle(event *lockv1.AcquireAllResponse) {
	switch event := event.GetEvent().(type) {
	case *lockv1.AcquireAllResponse_Queued:
		ahead := map[string]int{}
		for _, of := range event.Queued.GetLocks() {
			ahead[of.GetName()] = int(of.GetPosition())
		}
		call(l.options.OnQueued, ahead)
	case *lockv1.AcquireAllResponse_Granted:
		if l.id == "" { // others read them by now
			l.id, l.tokens = event.Granted.GetHoldId(), map[string]int64{}
			for _, of := range event.Granted.GetLocks() {
				l.tokens[of.GetName()] = of.GetFencingToken()
			}
		}
	case *lockv1.AcquireAllResponse_RevocationRequested:
		leaveNewest(l.revocations, revocationFrom(event.RevocationRequested), l.options.OnRevocation)
	}
}

// FencingToken is as that of a Lock, of the lock with this name; 0 if that is not among these.
func (l *Locks) FencingToken(name string) int64 { return l.tokens[name] }

// Tickets are what the holder hands on, in the order of AcquireAll. They are good until the locks are released or lost.
func (l *Locks) Tickets() []Ticket {
	return each(l.wanted, func(of WantedLock) Ticket { return Ticket{of.Name, l.tokens[of.Name]} })
}

// Guard is ctx with all of the locks as one guard of what its client writes with it; see Lock.Guard.
func (l *Locks) Guard(ctx context.Context) context.Context {
	hold := guard{client: l.client, wire: &holdv1.Guard{Hold: &holdv1.Guard_HoldId{HoldId: l.id}}}
	for i, ticket := range l.Tickets() {
		if l.wanted[i].Mode != Read {
			hold.tickets = append(hold.tickets, ticket)
		}
	}
	return withGuard(ctx, hold)
}

// WithLocks runs f while holding all of the locks and releases them afterwards, also when f panics. The context of f is ctx that also ends when
// the locks are lost, with an error that wraps ErrLost as its cause; what f writes with it and this client is guarded by all of the locks (see
// Locks.Guard). WithLocks returns the error of AcquireAll, or those of f and of Release together.
func (c *Client) WithLocks(
	ctx context.Context, locks []WantedLock, options AllOptions, f func(ctx context.Context, held *Locks) error,
) error {
	held, err := c.AcquireAll(ctx, locks, options)
	if err != nil {
		return err
	}
	return held.run(ctx, func(ctx context.Context) error { return f(held.Guard(ctx), held) })
}
