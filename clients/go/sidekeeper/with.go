package sidekeeper

import (
	"context"
	"errors"
	"time"
)

// releaseTime bounds how long WithLock waits for the sidecar to confirm the release.
const releaseTime = 10 * time.Second

// WithLock runs f while holding the lock and releases it afterwards, also when f panics. The context of f is ctx that
// also ends when the lock is lost, with an error that wraps ErrLost as its cause, or with ErrSuspended when it has been suspended for
// longer than options.SuspensionGrace. WithLock returns the error of Acquire, or those of f and of Release together:
// errors.Is(err, ErrLost) says that f may have gone on without the lock, and ErrReleaseUnconfirmed that only the release went wrong: do
// not run f again for it. What f writes with its context and this client is guarded by the lock
// (see Lock.Guard); Unguarded makes it not so.
func (c *Client) WithLock(
	ctx context.Context, name string, options LockOptions, f func(ctx context.Context, lock *Lock) error,
) (err error) {
	held, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	lock, err := c.Acquire(ctx, name, options.stoppingAfter(func() { cancel(ErrSuspended) }))
	if err != nil {
		return err
	}
	defer func() {
		released, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTime)
		defer cancel()
		err = errors.Join(err, lock.Release(released))
	}()
	unlink := lock.onEnd(func() { cancel(context.Cause(lock.Context())) }) //nolint:contextcheck // the lock ends by itself
	defer unlink()
	return f(lock.Guard(held), lock)
}

// stoppingAfter are the same options, with which stop is called when the lock has been suspended for as long as the grace.
func (o LockOptions) stoppingAfter(stop func()) LockOptions {
	if o.SuspensionGrace == nil {
		return o
	}
	var timer *time.Timer // only the reader of the stream has it
	onSuspended, onResumed := o.OnSuspended, o.OnResumed
	o.OnSuspended = func(remaining time.Duration) {
		if timer == nil {
			timer = time.AfterFunc(*o.SuspensionGrace, stop)
		}
		call(onSuspended, remaining)
	}
	o.OnResumed = func() {
		if timer != nil {
			timer.Stop()
			timer = nil
		}
		if onResumed != nil {
			onResumed()
		}
	}
	return o
}
