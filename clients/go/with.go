package sidekeeper

import (
	"context"
	"errors"
	"time"
)

// releaseTime bounds how long WithLock waits for the sidecar to confirm the release.
const releaseTime = 10 * time.Second

// WithLock runs f while holding the lock and releases it afterwards, also when f panics. The context of f is ctx that
// also ends when the lock is lost, with an error that wraps ErrLost as its cause. WithLock returns the error of Acquire,
// or those of f and of Release together: errors.Is(err, ErrLost) says that f may have gone on without the lock.
func (c *Client) WithLock(
	ctx context.Context, name string, options LockOptions, f func(ctx context.Context, lock *Lock) error,
) (err error) {
	lock, err := c.Acquire(ctx, name, options)
	if err != nil {
		return err
	}
	defer func() {
		released, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTime)
		defer cancel()
		err = errors.Join(err, lock.Release(released))
	}()
	held, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	unlink := context.AfterFunc(lock.Context(), func() { //nolint:contextcheck // the lock ends by itself
		cancel(context.Cause(lock.Context()))
	})
	defer unlink()
	return f(held, lock)
}
