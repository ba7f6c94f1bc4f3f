package sidekeeper

import (
	"context"
	"time"

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

	// Numbered has the permit bear a number: see Permits.Number. It goes with one permit. Quarantine is for how long the number rests if it is
	// lost: 0 to 24 hours; nil, 1 minute. A number that its holder releases is free at once.
	Numbered   bool
	Quarantine *time.Duration

	// AcknowledgeOnRelease is as in LockOptions.
	AcknowledgeOnRelease bool

	OnQueued     func(position int) // how many wait ahead: 0 for the first, who waits for free permits
	OnSuspended  func(remaining time.Duration)
	OnResumed    func()
	OnRevocation func(Revocation)
}

// Permits are what the caller holds of a semaphore. Their holder must Release them, also after they were lost.
type Permits struct {
	carried
	token   int64
	number  int
	options PermitsOptions
}

// AcquirePermits waits for its turn and returns when the permits are certainly the caller's for some time to come. The end of ctx ends the
// waiting, and does not end a hold that AcquirePermits has returned. Errors that a caller can act on: ErrSemaphoreFull, ErrTooManyPermits,
// ErrWaitTimeout, ErrSemaphoreNotFound, ErrEnsembleUnreachable. While the sidecar or the ensemble is away, it tries again, as Acquire does.
func (c *Client) AcquirePermits(ctx context.Context, semaphore string, options PermitsOptions) (*Permits, error) {
	onLease := carriedOptions{options.Lease, options.Owner, options.AcknowledgeOnRelease, options.OnSuspended, options.OnResumed}
	return carry(ctx, c, "permits of "+semaphore, options.Wait, onLease, func(wait *time.Duration) (*Permits, *request) {
		options.Wait = wait
		made := &Permits{options: options, number: -1}
		start := &leasev1.Start{Request: &leasev1.Start_AcquirePermits{AcquirePermits: options.request(semaphore)}}
		return made, &request{start: start, handle: func(event *leasev1.Event) { made.handle(event.GetAcquirePermits()) }}
	})
}

func (o PermitsOptions) request(semaphore string) *semaphorev1.AcquireRequest {
	return &semaphorev1.AcquireRequest{
		Name: semaphore, Permits: bounded32(o.Permits), Owner: o.Owner, Metadata: o.Metadata, WaitTimeout: optionalDuration(o.Wait),
		Numbered: o.Numbered, Quarantine: optionalDuration(o.Quarantine),
	}
}

func (p *Permits) handle(event *semaphorev1.AcquireResponse) {
	switch event := event.GetEvent().(type) {
	case *semaphorev1.AcquireResponse_Queued:
		call(p.options.OnQueued, int(event.Queued.GetPosition()))
	case *semaphorev1.AcquireResponse_Granted:
		if p.id == "" { // others read them by now
			p.id, p.token = event.Granted.GetHoldId(), event.Granted.GetToken()
			if event.Granted.Number != nil {
				p.number = int(event.Granted.GetNumber())
			}
		}
	case *semaphorev1.AcquireResponse_RevocationRequested:
		leaveNewest(p.revocations, revocationFrom(event.RevocationRequested), p.options.OnRevocation)
	}
}

// Token tells these permits from all others of the semaphore. It is no fencing token: others hold permits at the same time.
func (p *Permits) Token() int64 { return p.token }

// Number is the number that the permit bears, from 0 to the semaphore's limit - 1; -1 without PermitsOptions.Numbered. No other caller has it
// while the permit is valid: ask Valid before each use. Do not keep it after the loss.
func (p *Permits) Number() int { return p.number }

// WithPermits runs f while holding permits and releases them afterwards, also when f panics. The context of f is ctx that also ends when the
// permits are lost, with an error that wraps ErrLost as its cause. WithPermits returns the error of AcquirePermits, or those of f and of
// Release together.
func (c *Client) WithPermits(
	ctx context.Context, semaphore string, options PermitsOptions, f func(ctx context.Context, permits *Permits) error,
) error {
	permits, err := c.AcquirePermits(ctx, semaphore, options)
	if err != nil {
		return err
	}
	return permits.run(ctx, func(ctx context.Context) error { return f(ctx, permits) })
}
