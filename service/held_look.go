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
	changed <-chan struct{} // closed when it is worth to look again; nil if the place was not read yet
}

// firstLook is how long after its grant a place is read that was granted as it was made. Most holds have ended by then.
const firstLook = 25 * time.Millisecond

// lookFirst has a place read soon that was not read yet. Whoever calls it calls what it returns when the hold is over.
func (s *heldStream[P, M]) lookFirst(state *nodeState) (stop func()) {
	if state.changed != nil {
		return func() {}
	}
	soon := make(chan struct{})
	timer := time.AfterFunc(firstLook, func() { close(soon) })
	state.changed = soon
	return func() { timer.Stop() }
}

// lookAgain asks what has become of the place.
func (s *heldStream[P, M]) lookAgain(ctx context.Context) {
	s.looking = run(func() (nodeState, error) { return s.recipe.look(ctx) })
	s.looked, s.changed = s.looking.done, nil
	s.calls = []<-chan struct{}{s.looked}
}

// consider acts on the answer to a look. An error says nothing about the hold, save ErrGone: look again later.
func (s *heldStream[P, M]) consider() error {
	seen, err := s.looking.wait()
	s.looked = nil
	switch {
	case errors.Is(err, recipes.ErrGone):
		return s.broken()
	case err != nil:
		s.changed = after(countdown)
		return nil //nolint:nilerr // the lease alone decides whether the hold stands
	}
	return s.see(seen)
}

func (s *heldStream[P, M]) see(state nodeState) error {
	s.changed = state.changed
	if state.act == nil {
		return nil
	}
	return state.act()
}
