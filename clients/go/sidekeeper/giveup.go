package sidekeeper

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
)

const (
	giveUpAttempts = 3
	giveUpTimeout  = 5 * time.Second // for each attempt
)

// confirmed asks the sidecar to take something back, and asks again when the reply was lost: ask must be idempotent.
func confirmed(ctx context.Context, ask func(context.Context) error) error {
	var err error
	for range giveUpAttempts {
		if err = once(ctx, ask); err == nil || !isUnanswered(err) || ctx.Err() != nil {
			break
		}
	}
	return err
}

func once(ctx context.Context, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, giveUpTimeout)
	defer cancel()
	return fromStatus(ask(ctx))
}

func isUnanswered(err error) bool {
	e := (*Error)(nil)
	return errors.As(err, &e) && e.Reason == "" && (e.Code == codes.Unavailable || e.Code == codes.DeadlineExceeded)
}

// givenUp is what the caller is told when the sidecar was asked to take the claim back. Its error never matches what went wrong: a caller that
// retries a call that failed must not repeat the work.
func (c *claim) givenUp(err error) error {
	e := (*Error)(nil)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &e) && e.Code == codes.Aborted:
		return fmt.Errorf("%s %w: %w", c.what, ErrLost, err)
	default:
		unconfirmed := ended(ErrReleaseUnconfirmed.Error(), "the work has ended, but its release is not confirmed: "+err.Error())
		return fmt.Errorf("%s: %w", c.what, unconfirmed)
	}
}
