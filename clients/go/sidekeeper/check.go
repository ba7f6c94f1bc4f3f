package sidekeeper

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"

	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
)

// mostHolds is how many holds one Check may name.
const mostHolds = 1000

func (c *Client) checkHolds(ctx context.Context, ids []string) ([]answer, error) {
	var answers []answer
	for len(ids) > 0 {
		some := ids[:min(len(ids), mostHolds)]
		ids = ids[len(some):]
		next, err := c.checkSome(ctx, some)
		if err != nil {
			return nil, err
		}
		answers = append(answers, next...)
	}
	return answers, nil
}

// checkSome asks about each hold alone if one of them is unknown: the sidecar does not say which.
func (c *Client) checkSome(ctx context.Context, ids []string) ([]answer, error) {
	reply, err := c.locks.Check(ctx, &lockv1.CheckRequest{HoldIds: ids})
	err = fromStatus(err)
	switch {
	case errors.Is(err, ErrHoldNotFound) && len(ids) == 1:
		return []answer{{id: ids[0], end: err}}, nil
	case errors.Is(err, ErrHoldNotFound):
		return c.checkEach(ctx, ids)
	case err != nil:
		return nil, err
	}
	answers := make([]answer, 0, len(ids))
	for _, hold := range reply.GetHolds() {
		answers = append(answers, answer{hold.GetHoldId(), hold.GetValidFor().AsDuration(), endOf(hold)})
	}
	return answers, nil
}

func (c *Client) checkEach(ctx context.Context, ids []string) ([]answer, error) {
	var answers []answer
	for i := range ids {
		next, err := c.checkSome(ctx, ids[i:i+1])
		if err != nil {
			return nil, err
		}
		answers = append(answers, next...)
	}
	return answers, nil
}

func endOf(hold *lockv1.CheckedHold) error {
	switch hold.GetReason() {
	case "":
		return nil
	case "RELEASED":
		return ErrReleased
	default:
		return ended(hold.GetReason(), "the sidecar says so")
	}
}

// carry has the validity of a lease asked for over its own stream, where an answer comes after the ends that it does not know of.
func (c *Client) carry(l *Lease) {
	c.carrying.Store(l.id, l.stream)
	l.onEnd(func() { c.carrying.Delete(l.id) })
}

// checkLeases asks for each lease over its stream: the answers count from before the first.
func (c *Client) checkLeases(ctx context.Context, ids []string) ([]answer, error) {
	answers := make([]answer, 0, len(ids))
	for _, id := range ids {
		stream, found := c.carrying.Load(id)
		if !found {
			continue // it has ended
		}
		reply, err := stream.(*multiplex).check(ctx)
		err = fromStatus(err)
		if err != nil && !isEnd(err) {
			return nil, err
		}
		answers = append(answers, answer{id, reply.GetValidFor().AsDuration(), err})
	}
	return answers, nil
}

// isEnd says whether an error means that the thing asked for has ended, and not only that there was no answer.
func isEnd(err error) bool {
	e := (*Error)(nil)
	return errors.As(err, &e) && (e.Code == codes.Aborted || e.Code == codes.NotFound)
}
