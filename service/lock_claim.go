package service

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"go.uber.org/zap"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	"github.com/sidekeeper/sidekeeper/internal/caller"
	"github.com/sidekeeper/sidekeeper/recipes"
)

const (
	shortestClaim  = time.Minute
	claimTolerance = 5 * time.Second // of clocks
	mostClaimIDs   = 16              // that one Check asks about
)

func (s *Services) claims() recipes.Claims {
	root := s.options.ClaimRoot
	return recipes.Claims{
		Path: root, Clock: root + "/=clock", Tolerance: claimTolerance,
		Expired: func(lock string, token int64) { s.audit.expired(s.lockDirectory().called(lock), token) },
	}
}

// parseClaim checks a ClaimRequest.
func parseClaim(request *lockv1.ClaimRequest) (asked name, wanted recipes.ClaimRequest, wait *time.Duration, err error) {
	if asked, err = parseName("name", request.GetName()); err != nil {
		return asked, wanted, nil, err
	}
	wanted.ID = request.GetClaimId()
	if wanted.Mode, err = parseMode(request.GetMode()); err == nil {
		err = parseID("claim_id", wanted.ID)
	}
	if err != nil {
		return asked, wanted, nil, err
	}
	if wanted.For, err = parseReserve(request.GetReserveFor()); err != nil {
		return asked, wanted, nil, err
	}
	if wait, err = parseDuration("wait_timeout", request.GetWaitTimeout(), 0, longestWait); err != nil {
		return asked, wanted, nil, err
	}
	wanted.Reason = request.GetReason()
	wanted.About, err = parseAbout(request.GetOwner(), request.GetMetadata())
	return asked, wanted, wait, cmp.Or(err, parseRequired("reason", wanted.Reason, longestReason))
}

func parseReserve(span *durationpb.Duration) (time.Duration, error) {
	parsed, err := parseDuration("reserve_for", span, shortestClaim, recipes.MaxClaimSpan)
	if err == nil && parsed == nil {
		err = invalid("reserve_for", "", "from 1 minute to 30 days")
	}
	if err != nil {
		return 0, err
	}
	return *parsed, nil
}

// Claim waits in the call's goroutine. The call holds nothing: what it has made stands without it.
func (l *lockService) Claim(ctx context.Context, request *lockv1.ClaimRequest) (*lockv1.ClaimResponse, error) {
	asked, wanted, wait, err := parseClaim(request)
	if err != nil {
		return nil, err
	}
	if err := l.services.audit.refuses(); err != nil {
		return nil, err
	}
	from := caller.Of(ctx)
	wanted.About.Identity, wanted.May = from.Distinct(), l.services.audit.refuses
	waits, err := l.services.waiters.enter(false, resource{kindLock, asked.text})
	if err != nil {
		return nil, err
	}
	defer waits.leave()
	ctx, release := l.services.drain.bound(ctx)
	defer release()
	var late <-chan struct{} // for ever
	if wait != nil {
		waiting, stop := context.WithTimeout(context.WithoutCancel(ctx), *wait)
		defer stop()
		late = waiting.Done()
	}
	l.services.admitClaim(from, &wanted)
	of, err := l.services.claims().Claim(ctx, l.services.ensemble, l.directory.lock(asked), wanted, late)
	if errors.Is(err, recipes.ErrClaimWaits) && *wait == 0 {
		err = errLockHeld
	}
	err = meaningOfClaim(err)
	l.services.audit.wrote(from, kindClaim, "claim", asked.text, err, zap.Int64("fencing_token", of.Token), zap.String("why", wanted.Reason),
		zap.Duration("reserve_for", wanted.For))
	if err != nil {
		return nil, err
	}
	return &lockv1.ClaimResponse{FencingToken: of.Token, Until: timestamppb.New(of.Until)}, nil
}

func (l *lockService) Extend(ctx context.Context, request *lockv1.ExtendRequest) (*lockv1.ExtendResponse, error) {
	if err := parseID("claim_id", request.GetClaimId()); err != nil {
		return nil, err
	}
	span, err := parseReserve(request.GetReserveFor())
	if err == nil {
		err = l.services.audit.refuses()
	}
	if err != nil {
		return nil, err
	}
	of, err := l.services.claims().Extend(ctx, l.services.ensemble, request.GetClaimId(), span)
	err = meaningOfClaim(err)
	l.services.audit.wrote(caller.Of(ctx), kindClaim, "extend", l.directory.called(of.Lock), err, zap.Int64("fencing_token", of.Token),
		zap.Duration("reserve_for", span))
	if err != nil {
		return nil, err
	}
	return &lockv1.ExtendResponse{Until: timestamppb.New(of.Until), ValidFor: durationpb.New(of.Valid)}, nil
}

// releaseClaim is Release of a claim.
func (l *lockService) releaseClaim(ctx context.Context, id string) error {
	if err := parseID("claim_id", id); err != nil {
		return err
	}
	of, err := l.services.claims().Release(ctx, l.services.ensemble, id)
	err = meaningOfClaim(err)
	l.services.audit.wrote(caller.Of(ctx), kindClaim, "release", l.directory.called(of.Lock), err, zap.Int64("fencing_token", of.Token))
	return err
}

// checkClaims is Check of claims.
func (l *lockService) checkClaims(ctx context.Context, ids []string) (checked []*lockv1.CheckedClaim, _ error) {
	for _, id := range ids {
		if err := parseID("claim_ids", id); err != nil {
			return nil, err
		}
	}
	for _, id := range ids {
		of, err := l.services.claims().Check(ctx, l.services.ensemble, id)
		switch err = meaningOfClaim(err); {
		case errors.Is(err, recipes.ErrNoClaim), errors.Is(err, recipes.ErrClaimEnded), errors.Is(err, recipes.ErrMalformedRecord):
			checked = append(checked, &lockv1.CheckedClaim{Reason: ReasonOf(err)})
		case err != nil:
			return nil, err
		default:
			checked = append(checked, &lockv1.CheckedClaim{
				FencingToken: of.Token, Until: optionalTime(of.Until), ValidFor: durationpb.New(of.Valid),
			})
		}
	}
	return checked, nil
}

// called is the name of the lock that lies at a path; the path, if it is one of another root.
func (d directory) called(at string) string {
	relative, ok := strings.CutPrefix(at, d.root+"/")
	if found, named := d.name(relative); ok && named {
		return found.text
	}
	return at
}

// meaningOfClaim says of an error what its caller is to know.
func meaningOfClaim(err error) error {
	switch {
	case errors.Is(err, recipes.ErrClaimWaits):
		return errWaitTimeout
	case errors.Is(err, recipes.ErrOtherClaim):
		return invalid("claim_id", "", "the id of no claim of another lock or mode")
	}
	return err
}
