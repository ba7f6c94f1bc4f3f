package service

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sidekeeper/sidekeeper/recipes"
)

// A turn is how a place stands that is waited for, or at.
type turn struct {
	granted bool              // it may be held
	moved   bool              // it was given up, and another one is to be taken
	tell    func()            // tells the caller how it stands; nil for nothing
	changed []*recipes.Signal // it is worth to ask again when one of them is given,
	pause   time.Duration     // and after that time in any case; never if it is 0
}

// A notYet is why a request has no place: something stands in its way. It is worth to try again when that may have gone.
type notYet struct {
	changed *recipes.Signal
	pause   time.Duration
}

func (*notYet) Error() string { return "there is no place yet" }

// enter has the request stand on its lease and take a place, once what it is about is free there.
func (s *held[P, M]) enter() {
	if s.phase == ended {
		return
	}
	s.phase = waiting
	if why := s.whyNotWait(); why != nil { // which nothing has heeded so far
		s.turned(why)
		return
	}
	if !s.stands {
		leaving, err := s.stand()
		if err != nil {
			s.finish(err)
			return
		}
		if leaving != nil {
			s.rest(s.enter, turn{changed: []*recipes.Signal{leaving}})
			return
		}
	}
	s.comeBack()
	s.beginWait()
	s.join()
}

// rests are what a request rests until.
type rests struct {
	timer   *time.Timer
	signals []*recipes.Sequel
}

func (r *rests) stop() {
	if r.timer != nil {
		r.timer.Stop()
	}
	for _, each := range r.signals {
		each.Drop()
	}
	*r = rests{}
}

// rest has something done when a turn says so.
func (s *held[P, M]) rest(then func(), until turn) {
	s.rests.stop()
	var once sync.Once
	wake := func() { once.Do(func() { s.do(then) }) }
	for _, changed := range until.changed {
		s.rests.signals = append(s.rests.signals, changed.Then(wake))
	}
	if until.pause > 0 {
		s.rests.timer = time.AfterFunc(until.pause, wake)
	}
}

// join takes a place. That cannot be cancelled: if the waiting ends first, giveUp waits for the place to leave it.
func (s *held[P, M]) join() {
	if s.phase != waiting {
		return
	}
	s.rests.stop()
	again, taking := s.taking != nil, new(call[P])
	s.taking = taking
	then := func(place P, err error) {
		switch {
		case taking.conclude(place, err):
			s.do(s.joined)
		case err == nil: // after a panic
			go place.Leave(context.WithoutCancel(s.call))
		}
	}
	if s.recipe.prompt == nil || s.claim != fresh {
		s.untilTurned()
		go func() { then(answerOf(func() (P, error) { return s.take(again) })) }()
		return
	}
	var err error
	defer func() {
		if err != nil {
			var none P
			then(none, err)
		}
	}()
	defer contain(&err)
	s.recipe.prompt.joinThen(s.about(), then)
}

// joined goes on with a place that may be held at once, or has to wait.
func (s *held[P, M]) joined() {
	if s.phase != waiting {
		return // giveUp finds the place
	}
	place, err := s.taking.wait()
	s.place = place
	switch later, is := errors.AsType[*notYet](err); {
	case is:
		s.rest(s.join, turn{changed: []*recipes.Signal{later.changed}, pause: later.pause})
	case err != nil:
		s.turned(cmp.Or(s.whyNotWait(), err))
	case s.recipe.prompt != nil && s.recipe.prompt.atOnce():
		s.turned(nil)
	default:
		s.ask()
	}
}

// ask asks whose turn it is, beside the waiting, which can end before there is an answer.
func (s *held[P, M]) ask() {
	if s.phase != waiting {
		return
	}
	s.rests.stop()
	waits := s.untilTurned()
	s.calls = []*recipes.Signal{runThen(func() (turn, error) { return s.recipe.ask(waits) }, func(shown turn, err error) {
		s.do(func() { s.answered(shown, err) })
	})}
}

// answered goes on with an answer. Where the ensemble gave none the request tries again: what it has is kept for as long as its lease lives.
func (s *held[P, M]) answered(shown turn, err error) {
	switch {
	case s.phase != waiting:
	case errors.Is(err, recipes.ErrUnreachable):
		s.rest(s.ask, turn{pause: countdown})
	case !s.counts() && s.isRefused(err):
		s.leaveFirst(err)
	case err != nil:
		s.turned(cmp.Or(s.whyNotWait(), err))
	case shown.granted:
		s.turned(nil)
	case shown.moved:
		s.join()
	default:
		if shown.tell != nil {
			shown.tell()
		}
		s.rest(s.ask, shown)
	}
}

func (s *held[P, M]) isRefused(err error) bool {
	return errors.Is(err, recipes.ErrKindMismatch) || isRefusedOnce(err) || s.recipe.refused != nil && errors.Is(err, s.recipe.refused)
}

// leaveFirst gives up a place at which the caller is refused before the caller hears of that, unless the ensemble takes too long for it: once it
// has heard, no request that comes later is refused on account of the place.
func (s *held[P, M]) leaveFirst(err error) {
	place, waits, left := s.place, s.untilTurned(), &recipes.Signal{}
	s.calls = []*recipes.Signal{&run(func() (none struct{}, _ error) {
		defer left.Give()
		place.Leave(waits)
		return none, nil
	}).over}
	s.rest(func() { s.turned(err) }, turn{changed: []*recipes.Signal{left}, pause: countdown})
}
