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
	again   time.Duration     // and after that time in any case; never if it is 0
}

// A blocked request can take no place before something goes. It is worth to try again when that may have happened.
type blocked struct {
	changed *recipes.Signal
	again   time.Duration
}

func (*blocked) Error() string { return "there is no place yet" }

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
			s.wait(s.enter, turn{changed: []*recipes.Signal{leaving}})
			return
		}
	}
	s.comeBack()
	s.beginWait()
	s.join()
}

// wait has something done when a turn says so.
func (s *held[P, M]) wait(then func(), until turn) {
	var once sync.Once
	wake := func() { once.Do(func() { s.do(then) }) }
	stops := make([]func(), 0, len(until.changed)+1)
	for _, changed := range until.changed {
		stops = append(stops, changed.Then(wake))
	}
	if until.again > 0 {
		timer := time.AfterFunc(until.again, wake)
		stops = append(stops, func() { timer.Stop() })
	}
	s.sleep = func() {
		for _, stop := range stops {
			stop()
		}
	}
}

// join takes a place. That cannot be cancelled: if the waiting ends first, giveUp waits for the place to leave it.
func (s *held[P, M]) join() {
	if s.phase != waiting {
		return
	}
	s.sleep()
	first, taking := s.taking == nil, &call[P]{done: make(chan struct{})}
	s.taking = taking
	if s.recipe.prompt == nil || s.claim != fresh {
		go func() {
			taking.answer(func() (P, error) { return s.take(first) })
			s.do(s.joined)
		}()
		return
	}
	var once sync.Once
	then := func(place P, err error) {
		once.Do(func() {
			taking.value, taking.err = place, err
			close(taking.done)
			s.do(s.joined)
		})
	}
	if err := tried(func() { s.recipe.prompt.joinThen(s.about(), then) }); err != nil {
		var none P
		then(none, err)
	}
}

// joined goes on with a place that may be held at once, or has to wait.
func (s *held[P, M]) joined() {
	if s.phase != waiting {
		return // giveUp finds the place
	}
	place, err := s.taking.wait()
	s.place = place
	switch later, is := errors.AsType[*blocked](err); {
	case is:
		s.wait(s.join, turn{changed: []*recipes.Signal{later.changed}, again: later.again})
	case err != nil, s.recipe.prompt != nil && s.recipe.prompt.atOnce():
		s.turned(err)
	default:
		s.ask()
	}
}

// ask asks whose turn it is, beside the waiting, which can end before there is an answer.
func (s *held[P, M]) ask() {
	if s.phase != waiting {
		return
	}
	s.sleep()
	s.calls = []<-chan struct{}{runThen(s.askFirst, func(shown turn, err error) {
		s.do(func() { s.answered(shown, err) })
	})}
}

// askFirst gives up a place at which the caller is refused, before the caller hears of that: once it has heard, no request that comes later is
// refused on account of the place.
func (s *held[P, M]) askFirst() (turn, error) {
	shown, err := s.recipe.ask(s.waits)
	if !s.counts() && (errors.Is(err, recipes.ErrKindMismatch) || s.recipe.refused != nil && errors.Is(err, s.recipe.refused)) {
		s.leaveFirst(s.waits)
	}
	return shown, err
}

// leaveFirst gives the place up, and waits for that unless the ensemble takes too long.
func (s *held[P, M]) leaveFirst(ctx context.Context) {
	left := run(func() (none struct{}, _ error) {
		s.place.Leave(ctx) // and giveUp waits for its end
		return none, nil
	})
	select {
	case <-left.done:
	case <-ctx.Done():
	case <-after(countdown):
	}
}

// answered goes on with an answer. A request that waits tries again if the ensemble did not give one: what it has is kept for as long as its lease
// lives.
func (s *held[P, M]) answered(shown turn, err error) {
	switch {
	case s.phase != waiting:
	case errors.Is(err, recipes.ErrUnreachable):
		s.wait(s.ask, turn{again: countdown})
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
		s.wait(s.ask, shown)
	}
}
