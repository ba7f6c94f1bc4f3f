package service

import (
	"context"
	"errors"
	"time"

	"github.com/sidekeeper/sidekeeper/recipes"
)

// A nodeState is what a look at a place has shown.
type nodeState struct {
	act     func() error    // acts on it, and says why the hold must end, if it must; may be nil
	changed *recipes.Signal // given when it is worth to look again; nil if the place was not read yet
}

// firstLook is how long after its grant a place is read that was granted as it was made. Most holds have ended by then.
const firstLook = 25 * time.Millisecond

// lookIn has the place looked at after a time.
func (s *held[P, M]) lookIn(pause time.Duration) {
	s.rests.timer = time.AfterFunc(pause, func() { s.do(s.lookAgain) })
}

// lookAgain asks what has become of the place.
func (s *held[P, M]) lookAgain() {
	if s.phase != holding {
		return
	}
	s.rests.stop()
	if s.looks == nil {
		s.looks, s.stopLooks = context.WithCancel(s.over.ctx) //nolint:gosec // finish calls it
	}
	looks := s.looks
	s.calls = []*recipes.Signal{runThen(func() (nodeState, error) { return s.recipe.look(looks) }, func(seen nodeState, err error) {
		s.do(func() { s.consider(seen, err) })
	})}
}

// consider acts on the answer to a look. An error says nothing about the hold, save ErrGone: look again later.
func (s *held[P, M]) consider(seen nodeState, err error) {
	switch {
	case s.phase != holding:
	case errors.Is(err, recipes.ErrGone):
		s.finish(s.broken())
	case err != nil:
		s.lookIn(countdown) // the lease alone decides whether the hold stands
	default:
		s.see(seen)
	}
}

func (s *held[P, M]) see(state nodeState) {
	if state.changed != nil {
		s.rests.signals = append(s.rests.signals, state.changed.Then(func() { s.do(s.lookAgain) }))
	}
	if state.act == nil {
		return
	}
	if why := state.act(); why != nil {
		s.finish(why)
	}
}
