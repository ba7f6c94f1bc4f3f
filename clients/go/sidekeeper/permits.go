package sidekeeper

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	semaphorev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/semaphore/v1"
)

// PermitsOptions say how to acquire permits of a semaphore. The zero value waits for ever for one permit with a lease of its own. The
// functions are called one at a time while the stream is read: they must not block, nor release the permits.
type PermitsOptions struct {
	Permits  int            // how many, all at once: 1 to 64; 0, one
	Lease    *Lease         // of the same Client, to hold the permits with; nil, a lease that lives as long as they do
	Wait     *time.Duration // how long to wait for the grant: 0 tries once, nil waits for ever, and AbsenceTimeout for a sidecar that is away
	Owner    string         // who the caller is, for people
	Metadata map[string]string

	// AcknowledgeOnRelease is as in LockOptions.
	AcknowledgeOnRelease bool

	OnQueued     func(position int) // how many wait ahead: 0 for the first, who waits for free permits
	OnSuspended  func(remaining time.Duration)
	OnResumed    func()
	OnRevocation func(Revocation)
}

// Permits are what the caller holds of a semaphore. Their holder must Release them, also after they were lost.
type Permits struct {
	*claim
	client        *Client
	lease         *Lease
	own           *Lease // the same, if it is that of the permits alone; otherwise nil
	request       *request
	semaphore     string
	token         int64
	options       PermitsOptions
	revocations   chan Revocation
	releaseOnce   sync.Once
	releaseResult error
}

// AcquirePermits waits for its turn and returns when the permits are certainly the caller's for some time to come. The end of ctx ends the
// waiting, and does not end a hold that AcquirePermits has returned. Errors that a caller can act on: ErrSemaphoreFull, ErrTooManyPermits,
// ErrWaitTimeout, ErrSemaphoreNotFound, ErrEnsembleUnreachable. While the sidecar or the ensemble is away, it tries again, as Acquire does.
func (c *Client) AcquirePermits(ctx context.Context, semaphore string, options PermitsOptions) (*Permits, error) {
	if options.Lease != nil && options.Lease.client != c {
		return nil, fmt.Errorf("permits of %s: the lease is another client's", semaphore)
	}
	var p *Permits
	err := c.throughAbsence(ctx, "permits of "+semaphore, options.Wait, options.Lease, func(wait *time.Duration) (heard bool, err error) {
		options.Wait = wait
		p = &Permits{client: c, lease: options.Lease, semaphore: semaphore, options: options, revocations: make(chan Revocation, 1)}
		err = p.begin(ctx)
		return p.heard(), err
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}

// begin makes one attempt.
func (p *Permits) begin(ctx context.Context) (err error) {
	p.claim, _ = p.client.newClaim(ctx, "permits of "+p.semaphore)
	if p.lease == nil {
		p.own, err = p.client.openOwn(ctx, p.what, &p.options.Wait, LeaseOptions{
			Owner: p.options.Owner, Metadata: p.options.Metadata, kept: p.options.AcknowledgeOnRelease,
		})
		if err != nil {
			return err
		}
		p.lease = p.own
		defer func() { err = p.own.dropUnused(p.what, err) }()
	}
	p.request = p.lease.multiplex.carry(&request{
		claim: p.claim, start: &leasev1.Start{Request: &leasev1.Start_AcquirePermits{AcquirePermits: p.options.request(p.semaphore)}},
		handle:    func(event *leasev1.Event) { p.handle(event.GetAcquirePermits()) },
		suspended: func(remaining *durationpb.Duration) { p.suspend(remaining, p.options.OnSuspended) },
		resumed:   func() { p.resume(p.options.OnResumed) },
	})
	p.standOn(p.lease.claim, func() { p.lose(p.lease.why()) })
	stream := heldStream{claim: p.claim, wait: p.options.Wait, open: p.request.open, kept: p.options.AcknowledgeOnRelease}
	if !p.options.AcknowledgeOnRelease {
		stream.after = p.acknowledge
	}
	if err = stream.begin(ctx, p.client); err == nil {
		return nil
	}
	p.request.stop() // nobody will release what nobody has had
	return err
}

// heard says whether the sidecar has said anything since begin.
func (p *Permits) heard() bool { return p.claim.heard.Load() || p.own.isHeard() }

func (o PermitsOptions) request(semaphore string) *semaphorev1.AcquireRequest {
	return &semaphorev1.AcquireRequest{
		Name: semaphore, Permits: bounded32(o.Permits), Owner: o.Owner, Metadata: o.Metadata, WaitTimeout: optionalDuration(o.Wait),
	}
}

func (p *Permits) handle(event *semaphorev1.AcquireResponse) {
	switch event := event.GetEvent().(type) {
	case *semaphorev1.AcquireResponse_Queued:
		call(p.options.OnQueued, int(event.Queued.GetPosition()))
	case *semaphorev1.AcquireResponse_Granted:
		if p.id == "" { // others read them by now
			p.id, p.token = event.Granted.GetHoldId(), event.Granted.GetToken()
		}
	case *semaphorev1.AcquireResponse_RevocationRequested:
		leaveNewest(p.revocations, revocationFrom(event.RevocationRequested), p.options.OnRevocation)
	}
}

// acknowledge tells the sidecar that the claim is over, unless its end was the caller's own wish, of which the sidecar knows.
func (p *Permits) acknowledge() {
	if !errors.Is(context.Cause(p.context), ErrReleased) {
		p.request.stop()
	}
}

// Token tells these permits from all others of the semaphore. It is no fencing token: others hold permits at the same time.
func (p *Permits) Token() int64 { return p.token }

// Revocation gets the newest request to let go that has not been read. It is never closed: wait for Done with it.
func (p *Permits) Revocation() <-chan Revocation { return p.revocations }

// Release gives all of the permits up; for the caller they are over at once. With nil others can have them. Its error wraps ErrLost if they
// were lost before. Any other error says that the sidecar has not confirmed it: then they are over for the caller all the same, and for
// others by the time their validity would have been. Releasing again returns the same.
func (p *Permits) Release(ctx context.Context) error {
	p.releaseOnce.Do(func() {
		p.releaseResult = p.giveUp(ctx, p.request.release)
		p.acknowledge()
		p.own.closeUsed(p.releaseResult)
	})
	return p.releaseResult
}

// WithPermits runs f while holding permits and releases them afterwards, also when f panics. The context of f is ctx that also ends when the
// permits are lost, with an error that wraps ErrLost as its cause. WithPermits returns the error of AcquirePermits, or those of f and of
// Release together.
func (c *Client) WithPermits(
	ctx context.Context, semaphore string, options PermitsOptions, f func(ctx context.Context, permits *Permits) error,
) (err error) {
	permits, err := c.AcquirePermits(ctx, semaphore, options)
	if err != nil {
		return err
	}
	defer func() {
		released, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTime)
		defer cancel()
		err = errors.Join(err, permits.Release(released))
	}()
	held, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	unlink := permits.onEnd(func() { cancel(context.Cause(permits.Context())) }) //nolint:contextcheck // they end by themselves
	defer unlink()
	return f(held, permits)
}
