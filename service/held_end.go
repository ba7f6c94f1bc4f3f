package service

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/caller"
	machine "github.com/sidekeeper/sidekeeper/internal/lease"
	"github.com/sidekeeper/sidekeeper/recipes"
)

// settle ends on our side what the stream had, before its status is sent: from here on Check answers that it is over.
func (s *held[P, M]) settle(why error) {
	defer func() { s.lease.drive.step(machine.Event{Kind: machine.Ended, Of: s.id, Parting: s.parting}) }() // also after a panic
	// Before a caller learns of the end: one that does may end the stream for that alone.
	s.parting = partingOf(s.stream, s.caller, s.began, why)
	if s.parting != machine.Forced {
		why = nil
	}
	if s.counts() {
		why = s.endHold(why)
	} else {
		s.lease.drive.step(machine.Event{Kind: machine.Ended, Of: s.id, Free: true})
	}
	if s.recipe.again != nil {
		s.lease.yield(s.recipe.resource)
	} else {
		s.lease.drop(s.resources...)
	}
	if s.single { // the lease is this stream's alone, and ends before the status too
		s.lease.end(endOfLease(why))
	}
}

// endHold ends what the caller may count on, and returns why that was.
func (s *held[P, M]) endHold(why error) error {
	if mayNotHear(s.stream, s.caller, why) {
		why = cmp.Or(why, errLeaseLost) // it asked for nothing, and Check must not say that it did
	}
	if s.begun {
		s.endForCaller(why)
	} else {
		s.claim.of.endClaim(why)
	}
	if place, taken := s.took(); taken { // what is claimed is taken again at once, or never
		defer s.disregard(place)
	}
	if !s.untold && mayNotHear(s.stream, s.caller, why) { // it may count on anything, whether it was told or not
		s.lease.drive.tell(s.id, s.caller, s.lease.session.ValidFor())
	}
	nothing := (s.untold || !s.begun) && len(s.claim.standing) == 0 // is there any more that a caller counts on
	s.lease.drive.step(machine.Event{
		Kind: machine.Ended, Of: s.id, Parting: s.parting, Asked: why == nil,
		Free: s.taken || nothing || s.recipe.awaited != nil && s.recipe.awaited(why),
	})
	return why
}

func (s *held[P, M]) endForCaller(why error) {
	if s.hold != nil {
		s.services.endHold(s.hold, why)
	} else {
		s.recipe.end(why)
	}
}

// isHanded is when the end was handed to the transport.
func (s *held[P, M]) isHanded() {
	if s.stands {
		s.lease.drive.step(machine.Event{Kind: machine.Handed, Of: s.id})
	}
}

// giveUp lets go of the place, after the end was told, and when no caller counts on the hold any more. Where places have names, the lease can
// take one under the same name when that is done, and not before: the name alone would not tell the new one from the old. then is called when
// the place is gone.
func (s *held[P, M]) giveUp(then func()) {
	if !s.stands {
		then()
		return
	}
	s.lease.drive.afterLeft(s.id, func() {
		if !s.mayLeaveAtOnce() {
			go func() {
				s.letGo()
				s.isLeft(then)
			}()
			return
		}
		s.lease.streams.leave()
		any(s.place).(promptPlace).LeaveThen(s.call, func() { s.isLeft(then) })
	})
}

// mayLeaveAtOnce says whether nothing need be waited for but the answer to one request.
func (s *held[P, M]) mayLeaveAtOnce() bool {
	_, prompt := any(s.place).(promptPlace)
	return prompt && s.begun && !s.single && s.recipe.letGo == nil && s.recipe.atEnd == nil && s.lease.over.why() == nil &&
		!slices.ContainsFunc(s.calls, func(over *recipes.Signal) bool { return !over.IsGiven() })
}

// letGo returns when the place is gone.
func (s *held[P, M]) letGo() {
	ctx := context.WithoutCancel(s.call)
	s.leaveLease(ctx)
	if place, taken := s.took(); taken {
		s.free(func() { place.Leave(ctx) })
	} else {
		s.giveUpUnreturned()
	}
}

// isLeft is when the place is gone.
func (s *held[P, M]) isLeft(then func()) {
	s.lease.places.leave()
	s.forget()
	s.acknowledged.tell(nil)
	if s.hold != nil {
		s.services.forgoHold(s.hold)
	}
	if s.begun && s.recipe.gone != nil {
		s.recipe.gone()
	}
	if s.recipe.again != nil {
		s.lease.drop(s.recipe.resource)
	}
	then()
}

// disregard has the place bound the lease's validity no longer: at once if it was held, and else when no call is about to change what it
// consists of.
func (s *held[P, M]) disregard(place P) {
	calls := s.calls
	if s.begun || len(calls) == 0 {
		place.Disregard()
		return
	}
	answered := run(func() (none struct{}, _ error) {
		for _, over := range calls {
			<-over.Done()
		}
		place.Disregard()
		return none, nil
	})
	s.calls = append(slices.Clone(calls), &answered.over)
}

// took is the place that the stream took last, once that is certain.
func (s *held[P, M]) took() (place P, taken bool) {
	if s.taking == nil {
		return place, false
	}
	place, err := s.taking.wait()
	return place, err == nil
}

// mayNotHear says whether a caller whose stream ends certainly does not hear of it now: it fell silent, or does not read.
func mayNotHear(ctx context.Context, from caller.Caller, why error) bool {
	return ctx.Err() != nil && from.FellSilent() || errors.Is(why, errSlowReader)
}

// leaveLease takes the request off its lease: the lease may end then. It returns when nothing runs beside the request any more.
// A lease that was the request's alone has let go of all in the ensemble by then.
func (s *held[P, M]) leaveLease(ctx context.Context) {
	byItself := s.parting == machine.Released || s.parting == machine.Cancelled
	if s.begun && s.recipe.letGo != nil && (byItself || s.untold) {
		s.recipe.letGo(ctx)
	}
	if s.begun && s.recipe.atEnd != nil {
		s.recipe.atEnd(ctx)
	}
	s.lease.streams.leave()
	if s.single {
		s.services.leases.finish(ctx, s.lease)
	}
	for _, over := range s.calls {
		<-over.Done()
	}
}

// together is how long what stands on a lease that has ended waits for going all at once: longer if others count on something else
// that stands on it, for whom nobody waits.
const together = 50 * time.Millisecond

// free lets go of what the stream had in the ensemble: with the lease if that has ended, alone otherwise.
func (s *held[P, M]) free(letGo func()) {
	if s.lease.over.why() != nil {
		select {
		case <-s.lease.gone:
			return
		case <-after(together):
		}
	}
	letGo()
}
