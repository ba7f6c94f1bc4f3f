package service

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sidekeeper/sidekeeper/recipes"
)

// begin begins the request. It tells once what it has ended with, and must be given up after that. What it has to wait for it waits for in wait,
// which is nil if there is nothing.
func (s *held[P, M]) begin(ended func(err error)) (wait func()) {
	s.tells = ended
	if s.started == nil || !s.joinsAtOnce() {
		return s.wait
	}
	s.wait()
	return nil
}

// wait takes a lease and a place, and returns when the place is granted or refused, or will be without it.
func (s *held[P, M]) wait() {
	err := contained(s.start)
	switch {
	case err != nil && s.stands: // after a panic
		s.do(func() { s.finish(err) })
	case err != nil:
		s.do(func() { s.refuse(err) })
	case s.joinsAtOnce():
		s.do(s.join)
	default:
		s.awaitIt()
	}
}

// joinsAtOnce says whether the place is taken in no goroutine. On a lease's stream nothing else has to be waited for then.
func (s *held[P, M]) joinsAtOnce() bool { return s.recipe.prompt != nil && s.claim == fresh }

// start has the request stand on a lease.
func (s *held[P, M]) start() error {
	s.boundWait()
	if err := s.mayBeGranted(); err != nil {
		return err
	}
	if err := s.takeLease(s.waits); err != nil {
		return err
	}
	s.stands = true
	s.comeBack()
	if s.started != nil { // otherwise serve heeds it
		heed := context.AfterFunc(s.over.ctx, func() { s.do(s.isOver) })
		s.ends.Store(&heed)
	}
	s.beginWait()
	return nil
}

// boundWait gives the waiting an end of its own, without touching the request's. Who held before the sidecar was started does not wait.
func (s *held[P, M]) boundWait() {
	if s.bound() {
		s.waits, s.stopWaiting = context.WithTimeoutCause(s.over.ctx, *s.recipe.heldParams.wait, errWaitTimeout)
		return
	}
	s.waits, s.stopWaiting = context.WithCancel(s.over.ctx) //nolint:gosec // finish calls it, or refuse
}

func (s *held[P, M]) bound() bool { return s.recipe.heldParams.wait != nil && !s.claim.held() }

// beginWait counts the wait, until endWait.
func (s *held[P, M]) beginWait() {
	if s.recipe.wait == nil {
		return
	}
	ctx, span := tracerOf(s.call).Start(s.waits, "wait "+s.recipe.waitsFor)
	s.waits = ctx
	s.services.options.Events.WaitBegun(s.kind())
	s.waited = func(granted bool) {
		s.services.options.Events.WaitEnded(s.kind(), s.recipe.resource.name, granted, time.Since(s.began))
		span.End()
		s.recipe.wait.leave()
	}
}

// endWait says that the wait is over, once.
func (s *held[P, M]) endWait(granted bool) {
	waited := s.waited
	s.waited = func(bool) {}
	waited(granted)
}

// refuse ends a request that has never stood on a lease.
func (s *held[P, M]) refuse(err error) {
	s.phase = ended
	s.stopWaiting()
	s.recipe.wait.leave()
	s.tells(err)
}

// join takes a place in no goroutine.
func (s *held[P, M]) join() {
	s.phase = joining
	switch why := s.whyNotWait(); { // which nothing has heeded so far
	case why != nil:
		s.turnedAtOnce(why)
		return
	case s.lease.drain.hasBegun():
		s.turnedAtOnce(errStopping)
		return
	}
	forget := func() bool { return true }
	if s.bound() {
		forget = context.AfterFunc(s.waits, func() { s.do(s.isOver) })
	}
	about, taking := s.about(), &call[P]{done: make(chan struct{})}
	s.taking = taking
	var once sync.Once
	then := func(place P, err error) {
		once.Do(func() {
			taking.value, taking.err = place, err
			close(taking.done)
			forget()
			s.do(s.joined)
		})
	}
	if err := tried(func() { s.recipe.prompt.joinThen(about, then) }); err != nil {
		var none P
		then(none, err)
	}
}

// whyNotWait says why the waiting has ended; nil before. The request's own end is known before what depends on it hears of it.
func (s *held[P, M]) whyNotWait() error { return cmp.Or(s.over.why(), context.Cause(s.waits)) }

// joined goes on with a place that may be held at once, or has to wait.
func (s *held[P, M]) joined() {
	if s.phase != joining {
		return // giveUp finds the place
	}
	var err error
	if s.place, err = s.taking.wait(); err == nil && !s.recipe.prompt.atOnce() {
		s.phase = waiting
		go s.awaitIt()
		return
	}
	s.turnedAtOnce(err)
}

func (s *held[P, M]) turnedAtOnce(err error) {
	s.endWait(err == nil)
	if err == nil {
		err = s.mayBeGranted()
	}
	s.turned(err)
}

// awaitIt waits until the place may be held, or must not be.
func (s *held[P, M]) awaitIt() {
	err := contained(func() error { return s.recipe.awaitTurn(s.waits) })
	s.endWait(err == nil)
	if err == nil && !s.recipe.early {
		err = s.mayBeGranted()
	}
	if !s.counts() && (errors.Is(err, recipes.ErrKindMismatch) || s.recipe.refused != nil && errors.Is(err, s.recipe.refused)) {
		s.leaveFirst(s.waits)
	}
	s.do(func() { s.turned(err) })
}

// turned is when the waiting is over.
func (s *held[P, M]) turned(err error) {
	if err = s.meaning(err); err != nil {
		s.finish(err)
		return
	}
	s.isGranted()
}

// meaning says what an error means to a caller that holds nothing yet: a lease of its own that is lost took nothing
// along, so that it can try again.
func (s *held[P, M]) meaning(err error) error {
	lost := s.lease.lost()
	switch {
	case lost == nil:
		return err
	case errors.Is(err, errHoldStopped) && !s.counts():
		return errStopping
	case !errors.Is(err, recipes.ErrSessionEnded) && !errors.Is(err, recipes.ErrGone) && !errors.Is(err, errLeaseLost):
		return err
	case s.single:
		return errEnsembleLost
	}
	return lost
}

// isGranted tells the caller that it holds, and has everything followed that may end that.
func (s *held[P, M]) isGranted() {
	announcement, first := s.recipe.begin(s.call)
	s.begun, s.phase = true, holding
	s.claim.settled()
	s.tell(topicPlace, func() M { return announcement })
	if s.holds != nil {
		close(s.holds)
	}
	s.forgetGone = s.place.Gone().Then(func() { s.do(s.isGone) })
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

// isOver is when the request has come to an end that its recipe has no part in.
func (s *held[P, M]) isOver() {
	switch s.phase {
	case joining:
		if why := s.whyNotWait(); why != nil {
			s.turnedAtOnce(why)
		}
	case holding:
		if why := s.over.why(); why != nil { // otherwise the wait was over as it was granted what it waited for
			s.finish(why)
		}
	case waiting, ended:
	}
}

// stopping is when the sidecar begins to stop.
func (s *held[P, M]) stopping() {
	s.do(func() {
		switch s.phase {
		case joining:
			s.turnedAtOnce(errStopping)
		case holding:
			s.askForStop()
		case waiting, ended:
		}
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

// giveUpNow ends the request for its caller, at once and in the caller's goroutine if nothing else has.
func (s *held[P, M]) giveUpNow(why error) {
	heed := s.ends.Swap(nil)
	mine := heed != nil && (*heed)()
	s.over.end(why)
	if mine {
		s.do(s.isOver)
	}
}

// finish ends the request; why is nil if its caller gave up what it had.
func (s *held[P, M]) finish(why error) {
	if s.phase == ended {
		return
	}
	if s.phase == holding && errors.Is(why, errGivenUp) {
		why = nil
	}
	s.phase = ended
	if heed := s.ends.Swap(nil); heed != nil {
		(*heed)()
	}
	if s.stopLooks != nil {
		s.stopLooks()
	}
	s.endWait(false)
	s.sleep()
	s.forgetGone()
	s.stopGrace()
	if err := tried(func() { s.settle(why) }); err != nil {
		why = err
	}
	s.stopWaiting()
	s.tells(why)
}
