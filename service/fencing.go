package service

import (
	"context"
	"errors"

	configv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/config/v1"
	fencingv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/fencing/v1"
	"github.com/sidekeeper/sidekeeper/recipes"
)

// fencingService answers sidekeeper.fencing.v1.FencingService.
type fencingService struct {
	fencingv1.UnsafeFencingServiceServer

	services *Services
}

func (f *fencingService) Verify(ctx context.Context, request *fencingv1.VerifyRequest) (*fencingv1.VerifyResponse, error) {
	asked, err := parseTicket("ticket", request.GetTicket())
	if err != nil {
		return nil, err
	}
	latest := request.GetConsistency() == configv1.Consistency_CONSISTENCY_UNSPECIFIED
	if !latest {
		if latest, err = parseConsistency(request.GetConsistency()); err != nil {
			return nil, err
		}
	}
	if latest {
		if err := f.services.ensemble.CatchUp(ctx); err != nil {
			return nil, err
		}
	}
	lock := f.services.lockDirectory().lock(asked.lock)
	_, err = lock.Guard(ctx, f.services.ensemble, asked.token)
	if err == nil {
		return &fencingv1.VerifyResponse{Held: true, CurrentToken: asked.token}, nil
	}
	var view recipes.View
	if errors.Is(err, recipes.ErrTokenMismatch) { // or its node has a name that no guard may rely on
		view, err = lock.View(ctx, f.services.ensemble)
	}
	if err != nil || len(view.Holders) == 0 {
		return &fencingv1.VerifyResponse{}, err
	}
	for _, holder := range view.Holders {
		if holder.Token == asked.token {
			return &fencingv1.VerifyResponse{Held: true, CurrentToken: asked.token}, nil
		}
	}
	if err := view.Readable(); err != nil {
		return nil, err
	}
	return &fencingv1.VerifyResponse{CurrentToken: view.Holders[0].Token}, nil
}
