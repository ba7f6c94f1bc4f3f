package sidekeeper

import (
	"context"
	"errors"
	"time"

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

// checkLeases asks on each lease's own stream: all ends that are told before an answer have been read when it is. A lease whose stream
// has ended has ended.
func (c *Client) checkLeases(ctx context.Context, ids []string) ([]answer, error) {
	asked := make(map[*multiplex]<-chan time.Duration, len(ids))
	for _, id := range ids {
		if m, open := c.multiplexes.Load(id); open {
			asked[m.(*multiplex)] = m.(*multiplex).ask()
		}
	}
	answers := make([]answer, 0, len(ids))
	for m, validity := range asked {
		if a, answered := m.answered(ctx, validity); answered {
			answers = append(answers, a)
		}
	}
	if len(answers) == 0 && len(asked) > 0 {
		return nil, context.Cause(ctx)
	}
	return answers, nil // one that is silent keeps the others from nothing
}

// answered is what was answered before ctx's end, if anything was.
func (m *multiplex) answered(ctx context.Context, validity <-chan time.Duration) (a answer, answered bool) {
	select {
	case validFor := <-validity:
		return answer{id: m.lease.id, validFor: validFor}, true
	case <-m.done:
		return answer{id: m.lease.id, end: m.lease.why()}, true
	case <-ctx.Done():
	}
	select { // of an answer and the end, the one above takes either
	case validFor := <-validity:
		return answer{id: m.lease.id, validFor: validFor}, true
	default:
		return answer{}, false
	}
}
