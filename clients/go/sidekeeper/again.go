package sidekeeper

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"time"

	"google.golang.org/grpc/codes"
)

// A pause is what to let pass before something is tried again: at random, and twice as long each time.
type pause struct{ next time.Duration }

const (
	firstPause   = 100 * time.Millisecond
	longestPause = 2 * time.Second
)

// reset is for what has succeeded.
func (p *pause) reset() { p.next = 0 }

// resetAfter is for an attempt that was heard for a while. A stream that is cut each time as it begins is none.
func (p *pause) resetAfter(began time.Time, heard bool) {
	if heard && time.Since(began) > longestPause {
		p.reset()
	}
}

// grow is how long to wait this time.
func (p *pause) grow() time.Duration {
	p.next = min(max(2*p.next, firstPause), longestPause)
	return p.next/2 + rand.N(p.next/2) //nolint:gosec // jitter is no secret
}

// wait waits, and fails with the cause of ctx's end.
func (p *pause) wait(ctx context.Context) error { return rest(ctx, p.grow()) }

func rest(ctx context.Context, duration time.Duration) error {
	timer := time.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// after waits if time may heal err, and returns err if not, or the cause of ctx's end.
func (p *pause) after(ctx context.Context, err error) error {
	if !isTransient(err) {
		return err
	}
	return p.wait(ctx)
}

// AbsenceTimeout is for how long Acquire, OpenLease and Join try to reach a sidecar or an ensemble that is away, if nothing says how long
// to wait.
const AbsenceTimeout = 10 * time.Second

// throughAbsence makes attempts until one succeeds or fails for a reason that time does not heal: for as long as wait says, and without
// it until nothing has been heard for AbsenceTimeout; with a lease to stand on, no longer than that lives. An attempt gets what is left of
// wait, and says whether it has heard anything.
func (c *Client) throughAbsence(
	ctx context.Context, what string, wait *time.Duration, lease *Lease, attempt func(wait *time.Duration) (heard bool, err error),
) error {
	until, err := waitedUntil(wait)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	var again pause
	for {
		began := time.Now()
		heard, err := lease.whenValid(ctx, what, func() (bool, error) { return attempt(wait) })
		err = cut(what, err, heard)
		if err == nil || c.noRetries || !isTransient(err) || lease != nil && lease.context.Err() != nil {
			return err
		}
		again.resetAfter(began, heard)
		c.tellAbsence(err)
		if wait == nil && (heard || until.IsZero()) {
			until = time.Now().Add(AbsenceTimeout)
		}
		pausing, stop := context.WithDeadline(ctx, until)
		over := again.wait(pausing)
		stop()
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("%s: %w", what, context.Cause(ctx))
		case over != nil:
			return err
		}
		if wait != nil {
			wait = new(max(time.Until(until), time.Millisecond)) // 0 would be an attempt that does not wait
		}
	}
}

func (c *Client) tellAbsence(err error) {
	if c.absent != nil {
		c.absent(err)
	}
}

// waitedUntil is when the wait is over; zero without one.
func waitedUntil(wait *time.Duration) (time.Time, error) {
	if wait == nil {
		return time.Time{}, nil
	}
	return time.Now().Add(*wait), checkTime("Wait", wait)
}

// isTransient says whether the same call may well be answered in a moment.
func isTransient(err error) bool {
	e, is := errors.AsType[*Error](err)
	return is && (e.Code == codes.Unavailable || errors.Is(e, ErrEnsembleUnreachable))
}

// cut is the error of a stream that something between the two has ended, such as a proxy: gRPC makes a status of that which has no reason.
// The caller has heard the sidecar over it, so the request itself was right, and the sidecar is away for the caller. Other errors stay.
func cut(what string, err error, heard bool) error {
	e, is := errors.AsType[*Error](err)
	if !heard || !is || e.Reason != "" || e.Code != codes.Internal && e.Code != codes.Unknown {
		return err
	}
	return fmt.Errorf("%s: %w", what, &Error{Code: codes.Unavailable, Message: "the stream was cut on the way: " + e.Message})
}

// wasCutShort says whether what was asked for ended by itself before the caller had it, such as a lease that was lost while it waited.
func wasCutShort(err error) bool {
	e, is := errors.AsType[*Error](err)
	return is && e.Code == codes.Aborted
}

// reopened is a watch that is opened again when the sidecar or the ensemble is away. It calls interrupted each time that it has ended.
// It ends with an error that time does not heal, also when ctx ends.
func reopened[T any](ctx context.Context, open func() iter.Seq2[T, error], interrupted func()) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var again pause
		for {
			var failed error
			heard := false
			for item, err := range open() {
				if failed = err; err != nil {
					break
				}
				heard = true
				again.reset()
				if !yield(item, nil) {
					return
				}
			}
			interrupted()
			if err := again.after(ctx, cut("watch", failed, heard)); err != nil {
				var none T
				yield(none, err)
				return
			}
		}
	}
}
