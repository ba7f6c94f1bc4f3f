package service

import (
	"cmp"
	"context"
	"errors"
	"time"

	machine "github.com/sidekeeper/sidekeeper/internal/lease"
	"github.com/sidekeeper/sidekeeper/recipes"
)

// begin begins the request. It tells once what it has ended with, and must be given up after that. A call of its own may have to wait for a
// lease here.
func (s *held[P, M]) begin(ended func(err error)) {
	s.tells = ended
	err := contained(s.start)
	if s.bound() {
		s.unbound = context.AfterFunc(s.waits, s.isEnded)
	}
	s.do(func() {
		if err != nil {
			s.finish(err)
			return
		}
		s.enter()
	})
}

// start takes a lease.
func (s *held[P, M]) start() error {
	s.boundWait()
	if err := s.mayBeGranted(); err != nil {
		return err
	}
	return s.takeLease(s.waits)
}

// boundWait gives the waiting an end of its own, without touching the request's. Who held before the sidecar was started does not wait.
func (s *held[P, M]) boundWait() {
	s.waits = s.over.ctx
	if s.bound() {
		s.waits, s.stopWaiting = context.WithTimeoutCause(s.waits, *s.recipe.heldParams.wait, errWaitTimeout)
	}
}

// untilTurned is the context of what is asked while the request waits, once it has a place. It ends with the waiting.
func (s *held[P, M]) untilTurned() context.Context {
	if s.stopWaiting == nil {
		s.waits, s.stopWaiting = context.WithCancel(s.waits) //nolint:gosec // finish calls it
	}
	return s.waits
}

func (s *held[P, M]) bound() bool { return s.recipe.heldParams.wait != nil && !s.claim.held() }

// beginWait counts the wait, until endWait.
func (s *held[P, M]) beginWait() {
	if s.recipe.wait == nil {
		return
	}
	s.waits, s.span = beginSpan(s.call, s.waits, s.recipe.waitsFor)
	s.services.options.Events.WaitBegun(s.kind())
}

// endWait says that the wait is over, once.
func (s *held[P, M]) endWait(granted bool) {
	s.unbound()
	s.rests.stop()
	span := s.span
	if s.span = nil; span == nil {
		return
	}
	s.services.options.Events.WaitEnded(s.kind(), s.recipe.resource.name, granted, time.Since(s.began))
	span.End()
	s.recipe.wait.leave()
}

// whyNotWait says why the waiting must end; nil if it need not. The request's own end is known before what depends on it hears of it.
func (s *held[P, M]) whyNotWait() error {
	if why := cmp.Or(s.over.why(), context.Cause(s.waits)); why != nil {
		return why
	}
	if s.lease.drain.hasBegun() && !s.claim.held() { // which goes on until its lease ends, as holds do
		return errStopping
	}
	return nil
}

// turned is when the waiting is over.
func (s *held[P, M]) turned(err error) {
	s.endWait(err == nil)
	if err == nil && !s.recipe.early {
		err = s.mayBeGranted()
	}
	if err = s.meaning(err); err != nil {
		s.finish(err)
		return
	}
	s.isGranted()
}

// meaning says what an error means to a caller that holds nothing yet: a lease of its own that is lost took nothing
// along, so that it can try again.
func (s *held[P, M]) meaning(err error) error {
	if err != nil && s.recipe.means != nil {
		err = s.recipe.means(err)
	}
	lost := s.lease.lost()
	switch {
	case lost == nil:
		return err
	case errors.Is(err, errHoldStopped) && (s.untold || !s.counts()):
		return errStopping
	case !errors.Is(err, recipes.ErrSessionEnded) && !errors.Is(err, recipes.ErrGone) && !errors.Is(err, errLeaseLost):
		return err
	case s.single:
		return errEnsembleLost
	}
	return lost
}

// isGranted is when the caller is to hold. It does not know before that is recorded.
func (s *held[P, M]) isGranted() {
	missing := s.services.audit.missing()
	announcement, first := s.recipe.begin(s.call)
	s.begun, s.phase = true, recording
	s.whenRecorded(missing, func() { s.beginHolding(announcement, first) })
}

// beginHolding tells the caller that it holds, and has everything followed that may end that.
func (s *held[P, M]) beginHolding(announcement M, first nodeState) {
	s.phase = holding
	s.claim.settled()
	s.put(topicPlace, func() (M, bool) { return announcement, s.mayTell() })
	if s.holds != nil {
		close(s.holds)
	}
	s.ifGone = s.place.Gone().Then(func() { s.do(s.isGone) })
	if why := s.over.why(); why != nil { // since before it has held
		s.finish(why)
		return
	}
	if first.changed == nil {
		s.lookIn(firstLook)
	}
	s.see(first)
	if s.phase == holding && s.lease.drain.hasBegun() {
		s.askForStop()
	}
}

// isEnded is when over has ended, or the waiting.
func (s *held[P, M]) isEnded() { s.do(s.isOver) }

// isOver is when the request has come to an end that its recipe has no part in.
func (s *held[P, M]) isOver() {
	switch s.phase {
	case waiting:
		if why := s.whyNotWait(); why != nil {
			s.turned(why)
		}
	case recording, holding:
		if why := s.over.why(); why != nil { // otherwise the wait was over as it was granted what it waited for
			s.finish(why)
		}
	case beginning, ended: // begin goes on with enter, which looks
	}
}

// stopping is when the sidecar begins to stop.
func (s *held[P, M]) stopping() {
	s.do(func() {
		if s.phase == holding {
			s.askForStop()
		}
		s.isOver()
	})
}

// isGone is when the session has found that another hand has removed the place.
func (s *held[P, M]) isGone() {
	if s.phase == holding {
		s.finish(s.broken())
	}
}

// broken says why the place is gone: with the session, or by another hand.
func (s *held[P, M]) broken() error {
	s.taken = true
	if why := s.lease.lost(); why != nil {
		return why
	}
	return s.recipe.removed
}

// isGivenUp is called when the caller gives the request up, which ends it at once, or acknowledges its end.
func (s *held[P, M]) isGivenUp() {
	s.lease.drive.step(machine.Event{Kind: machine.Acknowledged, Of: s.id})
	s.over.end(errGivenUp)
	s.isEnded()
}

// finish ends the request; why is nil if its caller gave up what it had.
func (s *held[P, M]) finish(why error) {
	if s.phase == ended {
		return
	}
	if s.begun && errors.Is(why, errGivenUp) {
		why = nil
	}
	s.untold = s.phase == recording
	s.phase = ended
	if err := tried(func() { s.clean(why) }); err != nil {
		why = err
	}
	if s.untold {
		why = s.meaning(why)
	}
	if s.stopWaiting != nil {
		s.stopWaiting()
	}
	s.tells(why)
}

// clean has nothing follow any more, and ends what the request has on our side.
func (s *held[P, M]) clean(why error) {
	if s.stopLooks != nil {
		s.stopLooks()
	}
	defer func() {
		if s.stands {
			s.settle(why)
		} else {
			s.forget()
		}
		s.recipe.wait.leave()
	}()
	s.endWait(false)
	s.ifGone.Drop()
	s.stopGrace()
}
