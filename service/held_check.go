package service

import (
	"context"
	"errors"
	"strconv"
	"time"
)

// checkEach checks the holds that a request names.
func checkEach[C any](ctx context.Context, ids []string, check func(context.Context, string) (*C, error)) (checked []*C, _ error) {
	if len(ids) == 0 || len(ids) > mostHolds {
		return nil, invalid("hold_ids", strconv.Itoa(len(ids))+" ids", "from 1 to 1000 ids")
	}
	for _, id := range ids {
		one, err := check(ctx, id)
		if err != nil {
			return nil, err
		}
		checked = append(checked, one)
	}
	return checked, nil
}

// checkHold answers for one hold, which lives or has ended. What is told is noted first, and then the hold is looked up again: one
// that ends just then either has what was told in its account, or is told to have ended.
func (s *Services) checkHold(ctx context.Context, kind, id string) (token int64, validFor time.Duration, reason string, _ error) {
	found, ended, err := s.findHold(ctx, kind, "hold_ids", id)
	if err == nil && ended == nil {
		validFor, unknown := found.tell(ctx)
		token, why := found.token, found.lease.lost()
		if _, ended, err = s.findHold(ctx, kind, "hold_ids", id); err == nil && ended == nil {
			if why == nil {
				return token, validFor, "", unknown
			}
			ended = &tombstone{why: why, token: token}
		}
	}
	if err != nil {
		return 0, 0, "", err
	}
	return ended.token, 0, endOf(ended.why), nil
}

// releaseHold has a hold given up, or its end acknowledged, and returns when its place is gone. why is how it ended if that was not asked for.
func (s *Services) releaseHold(ctx context.Context, kind, id string) (why, _ error) {
	found, ended, err := s.findHold(ctx, kind, "hold_id", id)
	if err != nil {
		return nil, err
	}
	if ended == nil {
		ended = &tombstone{released: found.released, gone: found.gone}
	}
	ended.released.close() // of a hold that has ended: nobody counts on it any more
	select {
	case <-ended.gone:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if _, ended, err = s.findHold(ctx, kind, "hold_id", id); err != nil {
		return nil, err
	}
	return ended.why, nil
}

// findHold returns the caller's hold of this kind with this id, or how it has ended.
func (s *Services) findHold(ctx context.Context, kind, field, id string) (*hold, *tombstone, error) {
	if err := parseID(field, id); err != nil {
		return nil, nil, err
	}
	found, ended, ok, err := lookUp(ctx, s.leases.returns, &s.holds, id, digest{})
	if err != nil {
		return nil, nil, err
	}
	if !ok || ended == nil && found.kind != kind || ended != nil && ended.kind != kind {
		return nil, nil, errHoldNotFound
	}
	return found, ended, nil
}

// endOf is how a hold's end is told by Check and in metrics.
func endOf(why error) string {
	if why == nil || errors.Is(why, context.Canceled) {
		return "RELEASED"
	}
	return ReasonOf(why)
}
