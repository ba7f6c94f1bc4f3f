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
	response, claims := &lockv1.CheckResponse{}, request.GetClaimIds()
	var err error
	if len(claims) > mostClaimIDs {
		return nil, invalid("claim_ids", strconv.Itoa(len(claims))+" ids", "at most 16 ids")
	}
	if len(claims) == 0 || len(request.GetHoldIds()) > 0 {
		response.Holds, err = checkEach(ctx, request.GetHoldIds(), l.checked)
	}
	if err == nil {
		response.Claims, err = l.checkClaims(ctx, claims)
	}
	return response, err
}

// checked answers for one hold.
func (l *lockService) checked(ctx context.Context, id string) (*lockv1.CheckedHold, error) {
	token, validFor, reason, err := l.services.checkHold(ctx, kindLock, id)
	if err != nil {
		return nil, err
	}
	return &lockv1.CheckedHold{HoldId: id, ValidFor: durationpb.New(validFor), FencingToken: token, Reason: reason}, nil
}

func (l *lockService) Release(ctx context.Context, request *lockv1.ReleaseRequest) (*lockv1.ReleaseResponse, error) {
	if id := request.GetClaimId(); id != "" {
		if request.GetHoldId() != "" {
			return nil, invalid("claim_id", "", "empty where hold_id is set")
		}
		return &lockv1.ReleaseResponse{}, l.releaseClaim(ctx, id)
	}
	why, err := l.services.releaseHold(ctx, kindLock, request.GetHoldId())
	if err != nil {
		return nil, err
	}
	return &lockv1.ReleaseResponse{}, why
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
	if err := parseRequired("reason", request.GetReason(), longestReason); err != nil {
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
	contenders, claims, err := l.directory.lock(found).Contenders(ctx, l.services.ensemble)
	if errors.Is(err, recipes.ErrDirectory) || isUnreadable(err, found) || err == nil && contenders == 0 {
		return nil, nil
	}
	return &lockv1.Lock{Name: found.text, Contenders: int32(contenders), Claims: int32(claims)}, err
}
