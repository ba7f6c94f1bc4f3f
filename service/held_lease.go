package service

import (
	"context"
	"errors"

	"github.com/sidekeeper/sidekeeper/internal/caller"
	"github.com/sidekeeper/sidekeeper/recipes"
)

// takeLease finds the lease that the request names or, if it names none, begins one for this request alone.
func (s *held[P, M]) takeLease(ctx context.Context) (err error) {
	if s.services.drain.hasBegun() && !s.claim.goesOn() {
		return errStopping
	}
	switch {
	case s.lease != nil && s.recipe.leaseID != "":
		return invalid("lease_id", s.recipe.leaseID, "empty: the request stands on the lease of its stream")
	case s.lease != nil:
	case s.recipe.leaseID == "":
		s.single = true
		s.lease, err = s.services.leases.begin(ctx, s.caller, s.recipe.about, s.services.options.SessionTimeout)
		if err == nil {
			s.lease.heedDrain()
			s.lease.begin(s.resources, s.left)
			s.id, s.forget = s.lease.drive.begin(s.caller, false), s.over.endWith(s.lease)
			s.stands = true
		}
		return err
	default:
		if s.lease, err = s.services.leases.find(ctx, s.recipe.leaseID); err != nil {
			return err
		}
		s.forget = s.over.endWith(s.lease)
	}
	caller.CallOf(ctx).StandsOn(s.lease.logID)
	return nil
}

// stand has the request stand on the lease, once what it is about is free there. Until leaving is given it is not.
func (s *held[P, M]) stand() (leaving *recipes.Signal, err error) {
	err = s.lease.enter(s.resources, s.left, s.recipe.asks)
	if errors.Is(err, errAlreadyContending) && s.recipe.again != nil {
		leaving = s.lease.leaving(s.recipe.resource)
		return leaving, s.recipe.again(leaving != nil)
	}
	if err == nil && s.id == 0 {
		s.id = s.lease.drive.begin(s.caller, false)
	}
	s.stands = err == nil
	return nil, err
}

// about is what the caller says about itself in its request, and for the rest what it said of its lease.
func (s *held[P, M]) about() recipes.About {
	about := s.recipe.about
	about.Identity = s.caller.Distinct()
	if about.Owner == "" {
		about.Owner = s.lease.about.Owner
	}
	if len(about.Metadata) == 0 {
		about.Metadata = s.lease.about.Metadata
	}
	about.Timeout = s.lease.session.Timeout()
	if s.lease.resumable() {
		about.Request = s.number
	}
	return about
}
