package sidekeeper

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	holdv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/hold/v1"
	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
)

// lockWord stands before the name of a lock in errors.
const lockWord = "lock "

// Mode is how a lock is held.
type Mode int32

// The modes of a lock. A name is used either with Exclusive or with Read and Write. In options, the zero Mode is Exclusive.
const (
	Exclusive Mode = iota + 1 // one holder at a time
	Read                      // any number of readers at a time, while no writer holds
	Write                     // alone
)

func (m Mode) String() string {
	switch m {
	case 0, Exclusive:
		return "exclusive"
	case Read:
		return "read"
	case Write:
		return "write"
	default:
		return fmt.Sprintf("mode %d", int32(m))
	}
}

// LockOptions say how to acquire a lock. The zero value waits for ever for an exclusive lock with a lease of its own.
// The functions are called one at a time while the stream is read: they must not block, nor release the lock.
type LockOptions struct {
	Mode     Mode
	Lease    *Lease         // to hold the lock with; nil, a lease that lives as long as the lock
	Wait     *time.Duration // how long to wait for the grant: 0 tries once, nil waits for ever, and AbsenceTimeout for a sidecar that is away
	Owner    string         // who the caller is, for people
	Metadata map[string]string

	// LockDelay is for how long no caller is granted the lock after this hold, unless Release ends it: at most a minute, in milliseconds, and
	// not with Read. In this time what the holder has sent before arrives, for resources that cannot compare fencing tokens.
	LockDelay time.Duration

	// DetectDeadlock has Acquire end with ErrDeadlock if Lease waits in a circle: for a lock whose holder waits for another one, and so on, until
	// one waits for a lock of Lease. Of those that ask, the one that began to wait last is told, within three seconds. Set it where nothing else
	// goes on with the Lease meanwhile: it counts as one caller. Without a Lease it does nothing.
	DetectDeadlock bool

	// SuspensionGrace is for how long the lock may be suspended until WithLock and RunWhileLeader stop the function; nil, until
	// it is lost.
	SuspensionGrace *time.Duration

	// AcknowledgeOnRelease is for a holder that stops what the lock is for only after it was lost, as by ending a process. The client tells
	// the sidecar that nothing of it goes on when the holder calls Release, and not as soon as the lock is over. Until then the lock's stream
	// stays open, and the sidecar keeps the lock from others, at most for as long as the lock was valid when it ended.
	AcknowledgeOnRelease bool

	OnQueued     func(Queued)
	OnSuspended  func(remaining time.Duration) // contact with the ensemble is lost, the lock is not; about once a second
	OnResumed    func()
	OnRevocation func(Revocation)
}

// Queued says who is ahead in the queue of a lock.
type Queued struct {
	Position  int           // how many are ahead: at least 1, or 0 while the delay of an earlier hold is kept
	Holders   []*Contender  // who holds the lock now, at most 16 of them
	LockDelay time.Duration // with position 0, for how long the delay is still kept
}

// A Revocation asks the holder to release the lock soon.
type Revocation struct {
	RequestedBy, Reason string
	To                  string    // of an election: the candidate that shall lead instead; empty if the request names none
	Deadline            time.Time // when the hold is ended by force; zero if it never will be
}

// A Lock is a hold. Its holder must Release it, also after it was lost.
type Lock struct {
	*claim
	client        *Client
	token         int64
	options       LockOptions
	own           *Lease   // that is the lock's alone; nil if it was given one, or its stream is its lease
	request       *request // on its lease's stream; nil, it has a stream of its own
	revocations   chan Revocation
	releaseOnce   sync.Once
	releaseResult error
}

// Acquire waits for its turn and returns when the lock is certainly the caller's for some time to come. The end of ctx
// ends the waiting, and does not end a hold that Acquire has returned. Errors that a caller can act on: ErrLockHeld,
// ErrWaitTimeout, ErrLockKindMismatch, ErrEnsembleUnreachable.
//
// While the sidecar or the ensemble is away, Acquire tries again, at the queue's end: for as long as options.Wait says, without it for
// AbsenceTimeout each time, and not at all WithoutRepetition. What an attempt was granted ends before the next one.
func (c *Client) Acquire(ctx context.Context, name string, options LockOptions) (*Lock, error) {
	if err := checkTime("SuspensionGrace", options.SuspensionGrace); err != nil {
		return nil, fmt.Errorf("%s%s: %w", lockWord, name, err)
	}
	var lock *Lock
	err := c.throughAbsence(ctx, lockWord+name, options.Wait, options.Lease, func(wait *time.Duration) (heard bool, err error) {
		options.Wait = wait
		lock, err = c.acquire(ctx, name, options)
		return lock.heard.Load() || lock.own.isHeard(), err
	})
	if err != nil {
		return nil, err
	}
	return lock, nil
}

// TryLock acquires the lock if the sidecar grants it at once, and says whether it did: it does not wait for its turn, and tries once. Bound it
// with ctx, since an ensemble that is silent holds up its answer. options.Wait does not count. Errors are those of Acquire except ErrLockHeld.
func (c *Client) TryLock(ctx context.Context, name string, options LockOptions) (lock *Lock, granted bool, err error) {
	options.Wait = new(time.Duration)
	lock, err = c.Acquire(ctx, name, options)
	if errors.Is(err, ErrLockHeld) {
		return nil, false, nil
	}
	return lock, err == nil, err
}

// acquire makes one attempt. It returns the lock also with an error. Over a Unix socket the lock gets a lease that outlives the sidecar's
// process, where that can be; elsewhere its stream is its lease, which costs a message less.
func (c *Client) acquire(ctx context.Context, name string, options LockOptions) (_ *Lock, err error) {
	claim, streaming := c.newClaim(ctx, lockWord+name)
	l := &Lock{claim: claim, client: c, options: options, revocations: make(chan Revocation, 1)}
	if options.Lease == nil && c.resumes {
		l.own, err = c.openOwn(ctx, l.what, &options.Wait, LeaseOptions{
			Owner: options.Owner, Metadata: options.Metadata, kept: options.AcknowledgeOnRelease,
		})
		if err != nil {
			return l, err
		}
		options.Lease = l.own
		defer func() { err = l.own.dropUnused(l.what, err) }()
	}
	err = l.begin(ctx, streaming, name, options)
	return l, err
}

// begin returns when the lock is granted.
func (l *Lock) begin(ctx, streaming context.Context, name string, options LockOptions) error {
	c, lease := l.client, options.Lease
	stream := heldCall{claim: l.claim, keeper: c.holdKeeper, kept: options.AcknowledgeOnRelease, wait: options.Wait}
	stream.open = single(func() (grpc.ServerStreamingClient[lockv1.AcquireResponse], error) {
		request := options.request(name)
		request.Keepalive = keepaliveEvery
		return c.locks.Acquire(streaming, request)
	}, l.handle)
	if lease != nil && lease.client == c {
		l.carried(lease.multiplex, options.request(name))
		stream.keeper, stream.open = nil, l.request.open
	}
	if lease != nil {
		l.standOn(lease.claim, func() { l.lose(lease.why()) })
	}
	if !options.AcknowledgeOnRelease {
		stream.after = l.acknowledge
	}
	err := stream.begin(ctx, c)
	if err != nil && options.AcknowledgeOnRelease && l.id != "" { // the caller does not have it, and so never releases it
		c.following.Go(l.acknowledge)
	}
	return err
}

// carried has the lease's stream carry the lock.
func (l *Lock) carried(by *multiplex, acquire *lockv1.AcquireRequest) {
	acquire.LeaseId = ""
	l.request = by.carry(&request{
		claim: l.claim, kept: l.options.AcknowledgeOnRelease, start: &leasev1.Start{Request: &leasev1.Start_Acquire{Acquire: acquire}},
		handle:    func(event *leasev1.Event) { l.handle(event.GetAcquire()) },
		suspended: func(remaining *durationpb.Duration) { l.suspend(remaining, l.options.OnSuspended) },
		resumed:   func() { l.resume(l.options.OnResumed) },
	})
}

func (o LockOptions) request(name string) *lockv1.AcquireRequest {
	request := &lockv1.AcquireRequest{
		Name: name, Mode: holdv1.Mode(o.Mode), Owner: o.Owner, Metadata: o.Metadata, WaitTimeout: optionalDuration(o.Wait),
		DetectDeadlock: o.DetectDeadlock,
	}
	if o.LockDelay != 0 {
		request.LockDelay = durationpb.New(o.LockDelay)
	}
	if o.Lease != nil {
		request.LeaseId = o.Lease.id
	}
	return request
}

func optionalDuration(d *time.Duration) *durationpb.Duration {
	if d == nil {
		return nil
	}
	return durationpb.New(*d)
}

// acknowledge tells the sidecar that the claim is over, unless its end was the caller's own wish, of which the sidecar knows.
func (l *Lock) acknowledge() {
	if errors.Is(context.Cause(l.context), ErrReleased) {
		return
	}
	if l.request != nil {
		l.request.stop() // the stream may have ended, too
	}
	l.client.endings.acknowledge(l.id) //nolint:contextcheck // see acknowledge
}

func (l *Lock) handle(event *lockv1.AcquireResponse) {
	switch event := event.GetEvent().(type) {
	case *lockv1.AcquireResponse_Queued:
		call(l.options.OnQueued, queuedFrom(event.Queued))
	case *lockv1.AcquireResponse_Granted:
		if l.id == "" { // others read them by now
			l.id, l.token = event.Granted.GetHoldId(), event.Granted.GetFencingToken()
		}
	case *lockv1.AcquireResponse_Suspended:
		l.suspend(event.Suspended.GetRemaining(), l.options.OnSuspended)
	case *lockv1.AcquireResponse_Resumed:
		l.resume(l.options.OnResumed)
	case *lockv1.AcquireResponse_RevocationRequested:
		leaveNewest(l.revocations, revocationFrom(event.RevocationRequested), l.options.OnRevocation)
	}
}

func queuedFrom(event *holdv1.Queued) Queued {
	return Queued{int(event.GetPosition()), each(event.GetHolders(), contenderFrom), event.GetLockDelay().AsDuration()}
}

func call[T any](f func(T), argument T) {
	if f != nil {
		f(argument)
	}
}

// A revocationRequest is how a holder is told of one.
type revocationRequest interface {
	GetRequestedBy() string
	GetReason() string
	GetGrace() *durationpb.Duration
}

func revocationFrom(event revocationRequest) Revocation {
	revocation := Revocation{RequestedBy: event.GetRequestedBy(), Reason: event.GetReason()}
	if event.GetGrace() != nil {
		revocation.Deadline = time.Now().Add(event.GetGrace().AsDuration())
	}
	return revocation
}

// leaveNewest leaves the newest request in the channel, and tells of it.
func leaveNewest(revocations chan Revocation, newest Revocation, tell func(Revocation)) {
	select {
	case <-revocations:
	default:
	}
	revocations <- newest
	call(tell, newest)
}

// FencingToken orders the grants of this lock: it is larger than that of every earlier grant that this one excludes.
func (l *Lock) FencingToken() int64 { return l.token }

// HoldID is what Check and Release call this hold. It is a secret.
func (l *Lock) HoldID() string { return l.id }

// Revocation gets the newest request to let go that has not been read. It is never closed: wait for Done with it.
func (l *Lock) Revocation() <-chan Revocation { return l.revocations }

// Release gives the lock up; for the caller it is over at once. With nil the next waiter can have it. Its error wraps
// ErrLost if the lock was lost before. Any other is ErrReleaseUnconfirmed: the sidecar has not confirmed the release. Then the lock is
// over for the caller all the same, and for others by the time its validity would have been. Releasing again
// returns the same.
func (l *Lock) Release(ctx context.Context) error {
	l.releaseOnce.Do(func() { l.releaseResult = l.release(ctx) })
	return l.releaseResult
}

func (l *Lock) release(ctx context.Context) error {
	err := l.giveUp(ctx, func(ctx context.Context) error {
		if l.request != nil {
			return l.request.release(ctx)
		}
		_, err := l.client.locks.Release(ctx, &lockv1.ReleaseRequest{HoldId: l.id}, grpc.WaitForReady(true))
		return err
	})
	if l.options.AcknowledgeOnRelease {
		l.acknowledge() //nolint:contextcheck // see there
	}
	l.own.closeUsed(err)
	return err
}
