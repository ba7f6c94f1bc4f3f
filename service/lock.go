package service

import (
	"context"
	"errors"
	"strconv"

	"google.golang.org/protobuf/types/known/durationpb"

	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	"github.com/sidekeeper/sidekeeper/internal/caller"
	"github.com/sidekeeper/sidekeeper/recipes"
)

// lockService answers sidekeeper.lock.v1.LockService.
type lockService struct {
	lockv1.UnsafeLockServiceServer

	services  *Services
	directory directory
}

func (l *lockService) Check(ctx context.Context, request *lockv1.CheckRequest) (*lockv1.CheckResponse, error) {
	ids := request.GetHoldIds()
	if len(ids) == 0 || len(ids) > mostHolds {
		return nil, invalid("hold_ids", strconv.Itoa(len(ids))+" ids", "from 1 to 1000 ids")
	}
	response := &lockv1.CheckResponse{}
	for _, id := range ids {
		checked, err := l.checked(ctx, id)
		if err != nil {
			return nil, err
		}
		response.Holds = append(response.Holds, checked)
	}
	return response, nil
}

// checked answers for one hold, which lives or has ended. What is told is noted first, and then the hold is looked up again: one
// that ends just then either has what was told in its account, or is told to have ended.
func (l *lockService) checked(ctx context.Context, id string) (*lockv1.CheckedHold, error) {
	found, ended, err := l.findHold(ctx, "hold_ids", id)
	if err == nil && ended == nil {
		token, validFor := found.token, found.tell(caller.Of(ctx))
		why := found.lease.lost()
		if _, ended, err = l.findHold(ctx, "hold_ids", id); err == nil && ended == nil {
			if why == nil {
				return &lockv1.CheckedHold{HoldId: id, ValidFor: durationpb.New(validFor), FencingToken: token}, nil
			}
			ended = &tombstone{why: why, token: token}
		}
	}
	if err != nil {
		return nil, err
	}
	return &lockv1.CheckedHold{
		HoldId: id, ValidFor: durationpb.New(0), FencingToken: ended.token, Reason: endOf(ended.why),
	}, nil
}

func (l *lockService) Release(ctx context.Context, request *lockv1.ReleaseRequest) (*lockv1.ReleaseResponse, error) {
	found, ended, err := l.findHold(ctx, "hold_id", request.GetHoldId())
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
	if _, ended, err = l.findHold(ctx, "hold_id", request.GetHoldId()); err != nil {
		return nil, err
	}
	return &lockv1.ReleaseResponse{}, ended.why
}

// findHold returns the caller's hold with this id, or how it has ended.
func (l *lockService) findHold(ctx context.Context, field, id string) (*hold, *tombstone, error) {
	if err := parseID(field, id); err != nil {
		return nil, nil, err
	}
	found, ended, ok := l.services.holds.find(id, caller.Of(ctx).Identity)
	if !ok {
		return nil, nil, errHoldNotFound
	}
	return found, ended, nil
}

func (l *lockService) Revoke(ctx context.Context, request *lockv1.RevokeRequest) (*lockv1.RevokeResponse, error) {
	asked, err := parseName("name", request.GetName())
	if err != nil {
		return nil, err
	}
	if err := parseText("reason", request.GetReason(), longestReason); err != nil {
		return nil, err
	}
	grace, err := parseDuration("grace", request.GetGrace(), 0, longestGrace)
	if err != nil {
		return nil, err
	}
	from := caller.Of(ctx)
	if grace != nil && !caller.MayOperate(ctx) {
		return nil, ErrOperatorOnly
	}
	reached, err := l.directory.lock(asked).Revoke(ctx, l.services.ensemble, from.Identity, request.GetReason(), grace)
	l.services.audit.revoked(from, asked, request.GetReason(), grace, reached, err)
	if err != nil {
		return nil, err
	}
	return &lockv1.RevokeResponse{Asked: int32(reached)}, nil
}

func (l *lockService) Break(ctx context.Context, request *lockv1.BreakRequest) (*lockv1.BreakResponse, error) {
	from := caller.Of(ctx)
	if !caller.MayOperate(ctx) {
		return nil, ErrOperatorOnly
	}
	broken, err := parseName("name", request.GetName())
	if err != nil {
		return nil, err
	}
	if request.GetFencingToken() <= 0 {
		return nil, invalid("fencing_token", strconv.FormatInt(request.GetFencingToken(), 10), "a hold's, from Get: larger than 0")
	}
	if err := parseText("reason", request.GetReason(), longestReason); err != nil {
		return nil, err
	}
	forceAfter, err := parseDuration("force_after", request.GetForceAfter(), 0, longestGrace)
	if err != nil {
		return nil, err
	}
	forced, err := l.directory.lock(broken).Break(ctx, l.services.ensemble, request.GetFencingToken(), from.Identity,
		request.GetReason(), l.services.forceAfter(forceAfter))
	l.services.audit.broken(from, broken, request.GetFencingToken(), request.GetReason(), forced, err)
	if err != nil {
		return nil, err
	}
	return &lockv1.BreakResponse{Forced: forced}, nil
}

func (l *lockService) List(ctx context.Context, request *lockv1.ListRequest) (response *lockv1.ListResponse, err error) {
	response = &lockv1.ListResponse{}
	response.Locks, response.NextPageToken, err = listPage(ctx, l.services.ensemble, l.directory, request, l.listed)
	return response, err
}

// listed leaves out directories in which there is no contender.
func (l *lockService) listed(ctx context.Context, found name) (*lockv1.Lock, error) {
	contenders, err := l.directory.lock(found).Contenders(ctx, l.services.ensemble)
	if errors.Is(err, recipes.ErrDirectory) || err == nil && contenders == 0 {
		return nil, nil
	}
	return &lockv1.Lock{Name: found.text, Contenders: int32(contenders)}, err
}

// endOf is how a hold's end is told by Check and in metrics.
func endOf(why error) string {
	if why == nil || errors.Is(why, context.Canceled) {
		return "RELEASED"
	}
	return ReasonOf(why)
}
