package sidekeeper

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
)

// A carried is a hold that the stream of its lease carries: permits, or leadership.
type carried struct {
	*claim
	client        *Client
	own           *Lease // that is the hold's alone; nil if it was given one
	kept          bool   // what it is for is stopped only when it is released
	request       *request
	revocations   chan Revocation
	releaseOnce   sync.Once
	releaseResult error
}

// carriedOptions are those that all such holds have.
type carriedOptions struct {
	lease       *Lease
	owner       string
	kept        bool
	onSuspended func(remaining time.Duration)
	onResumed   func()
}

// carry has a lease's stream carry what each attempt makes, until it is held: see throughAbsence.
func carry[H interface{ base() *carried }](
	ctx context.Context, c *Client, what string, wait *time.Duration, options carriedOptions, attempt func(wait *time.Duration) (H, *request),
) (held H, _ error) {
	if options.lease != nil && options.lease.client != c {
		return held, fmt.Errorf("%s: the lease is another client's", what)
	}
	var newest H
	err := c.throughAbsence(ctx, what, wait, options.lease, func(wait *time.Duration) (heard bool, err error) {
		lease, own := options.lease, (*Lease)(nil)
		if lease == nil {
			own, err = c.openOwn(ctx, what, &wait, LeaseOptions{Owner: options.owner, kept: options.kept})
			if err != nil {
				return own.isHeard(), err
			}
			defer func() { err = own.dropUnused(what, err) }()
			lease = own
		}
		var r *request
		newest, r = attempt(wait)
		made := newest.base()
		made.client, made.own, made.kept, made.revocations = c, own, options.kept, make(chan Revocation, 1)
		err = made.begin(ctx, what, wait, lease, options, r)
		return made.heard.Load() || own.isHeard(), err
	})
	if err != nil {
		return held, err
	}
	return newest, nil
}

func (h *carried) base() *carried { return h }

// begin returns when it is held.
func (h *carried) begin(
	ctx context.Context, what string, wait *time.Duration, lease *Lease, options carriedOptions, r *request,
) error {
	h.claim, _ = h.client.newClaim(ctx, what)
	r.claim, r.kept = h.claim, h.kept
	r.suspended = func(remaining *durationpb.Duration) { h.suspend(remaining, options.onSuspended) }
	r.resumed = func() { h.resume(options.onResumed) }
	h.request = lease.multiplex.carry(r)
	h.standOn(lease.claim, func() { h.lose(lease.why()) })
	stream := heldCall{claim: h.claim, wait: wait, open: h.request.open, kept: h.kept}
	if !h.kept {
		stream.after = h.acknowledge
	}
	err := stream.begin(ctx, h.client)
	if err != nil {
		h.request.stop() // the caller does not have it, and so never releases it
	}
	return err
}

// acknowledge tells the sidecar that the claim is over, unless its end was the caller's own wish, of which the sidecar knows.
func (h *carried) acknowledge() {
	if !errors.Is(context.Cause(h.context), ErrReleased) {
		h.request.stop()
	}
}

// Revocation gets the newest request to let go that has not been read. It is never closed: wait for Done with it.
func (h *carried) Revocation() <-chan Revocation { return h.revocations }

// Release gives up what is held; for the caller it is over at once. With nil others can have it. Its error wraps ErrLost if it
// was lost before. Any other is ErrReleaseUnconfirmed: the sidecar has not confirmed it. Then it is over for the caller all the same, and for
// others by the time its validity would have been. Releasing again returns the same.
func (h *carried) Release(ctx context.Context) error {
	h.releaseOnce.Do(func() {
		h.releaseResult = h.giveUp(ctx, h.request.release)
		h.acknowledge()
		h.own.closeUsed(h.releaseResult)
	})
	return h.releaseResult
}

// run runs f while holding, and releases what is held afterwards, also when f panics.
func (h *carried) run(ctx context.Context, f func(ctx context.Context) error) (err error) {
	defer func() {
		released, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTime)
		defer cancel()
		err = errors.Join(err, h.Release(released))
	}()
	held, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	unlink := h.onEnd(func() { cancel(context.Cause(h.Context())) }) //nolint:contextcheck // it ends by itself
	defer unlink()
	return f(held)
}
