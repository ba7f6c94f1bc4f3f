package service

import (
	"context"
	"errors"

	"github.com/sidekeeper/sidekeeper/internal/caller"
	machine "github.com/sidekeeper/sidekeeper/internal/lease"
	"github.com/sidekeeper/sidekeeper/recipes"
)

// takeLease finds the lease that the stream names or, if it names none, begins one for this stream alone.
func (s *held[P, M]) takeLease(ctx context.Context) (err error) {
	if s.services.drain.hasBegun() && !s.claim.goesOn() {
		return errStopping
	}
	switch {
	case s.started != nil:
		if s.recipe.leaseID != "" {
			return invalid("lease_id", s.recipe.leaseID, "empty: the request stands on the lease of its stream")
		}
		s.lease = s.started.lease
	case s.recipe.leaseID == "":
		s.single = true
		s.lease, err = s.services.leases.begin(ctx, s.caller, s.recipe.about, s.services.options.SessionTimeout)
		if err == nil {
			s.lease.heedDrain()
			s.lease.begin(s.recipe.all(), s.left)
			s.id, s.forget = s.lease.drive.begin(s.caller, false), s.over.endWith(s.lease)
		}
		return err
	default:
		if s.lease, err = s.services.leases.find(ctx, s.recipe.leaseID); err != nil {
			return err
		}
	}
	caller.CallOf(ctx).StandsOn(s.lease.logID)
	if s.started != nil {
		return s.enter(ctx)
	}
	s.forget = s.over.endWith(s.lease)
	if err = s.enter(ctx); err != nil {
		s.forget()
		return err
	}
	s.id = s.lease.drive.begin(s.caller, false)
	return nil
}

// enter has the stream stand on the lease, once what it is about is free there.
func (s *held[P, M]) enter(ctx context.Context) error {
	for {
		err := s.lease.enter(s.recipe.all(), s.left)
		if !errors.Is(err, errAlreadyContending) || s.recipe.again == nil {
			return err
		}
		leaving := s.lease.leaving(s.recipe.resource)
		if refused := s.recipe.again(leaving != nil); refused != nil {
			return refused
		}
		if err := s.pause(ctx, wakers{leaving}); err != nil {
			return err
		}
	}
}

// isGivenUp is called when the caller of a stream of its own gives up what it holds, or acknowledges its end.
func (s *held[P, M]) isGivenUp() {
	s.over.end(errGivenUp)
	s.lease.drive.step(machine.Event{Kind: machine.Acknowledged, Of: s.id})
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
	if s.started != nil && s.lease.resumable() {
		about.Request = s.started.id
	}
	return about
}
