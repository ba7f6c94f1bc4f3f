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
	lease         *Lease
	single        bool // the lease is that of the hold alone
	kept          bool // what it is for is stopped only when it is released
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
		var r *request
		newest, r = attempt(wait)
		made := newest.base()
		made.client, made.lease, made.kept, made.revocations = c, options.lease, options.kept, make(chan Revocation, 1)
		err = made.begin(ctx, what, wait, options, r)
		return made.heard(), err
	})
	if err != nil {
		return held, err
	}
	return newest, nil
}

func (h *carried) base() *carried { return h }

// begin makes one attempt.
func (h *carried) begin(ctx context.Context, what string, wait *time.Duration, options carriedOptions, r *request) (err error) {
	if h.lease == nil {
		h.single = true
		if h.lease, err = h.client.openLease(ctx, LeaseOptions{Owner: options.owner, Wait: wait, kept: h.kept}); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
	h.claim, _ = h.client.newClaim(ctx, what)
	r.claim = h.claim
	r.suspended = func(remaining *durationpb.Duration) { h.suspend(remaining, options.onSuspended) }
	r.resumed = func() { h.resume(options.onResumed) }
	h.request = h.lease.multiplex.carry(r)
	h.standOn(h.lease.claim, func() { h.lose(h.lease.why()) })
	stream := heldStream{claim: h.claim, wait: wait, open: h.request.open, kept: h.kept}
	if !h.kept {
		stream.after = h.acknowledge
	}
	if err = stream.begin(ctx, h.client); err == nil {
		return nil
	}
	h.request.stop() // nobody will release what nobody has had
	if h.single {
		h.lease.end(ErrReleased)
		h.lease.cut()
		<-h.lease.followed
	}
	return err
}

// heard says whether the sidecar has said anything since begin.
func (h *carried) heard() bool {
	return h.single && h.lease.heard.Load() || h.claim != nil && h.claim.heard.Load()
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
// was lost before. Any other error says that the sidecar has not confirmed it: then it is over for the caller all the same, and for
// others by the time its validity would have been. Releasing again returns the same.
func (h *carried) Release(ctx context.Context) error {
	h.releaseOnce.Do(func() {
		h.releaseResult = h.giveUp(ctx, h.request.release)
		h.acknowledge()
		if h.single {
			if closed := h.lease.Close(ctx); h.releaseResult == nil {
				h.releaseResult = closed
			}
		}
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
