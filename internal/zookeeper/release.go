package zookeeper

import (
	"errors"

	"go.uber.org/zap"

	"github.com/sidekeeper/sidekeeper/recipes"
)

// release deletes a place or a member that nobody wants any more, and forgets it when it is gone. What the ensemble refuses to
// delete (an access control list was changed, say) is tried again until it goes or the session does.
func (s *Session) release(place string, remove func() error) {
	s.markReleased(place)
	for refusals := 0; ; refusals++ {
		err := remove()
		if settled(err) {
			break
		}
		if refusals == 0 {
			s.log.Warn("the ensemble refuses to delete what was given up; trying again", zap.String("node", place), zap.Error(err))
		}
		s.rest(s.client.retryPause(refusals))
	}
	s.forgetReleased(place)
}

// settled says whether nothing of this session's stands there any more.
func settled(err error) bool {
	return err == nil || errors.Is(err, recipes.ErrNoNode) || errors.Is(err, recipes.ErrExists) || errors.Is(err, recipes.ErrSessionEnded)
}

// forgetReleased drops what was marked as released from the books, but not a member that was made anew.
func (s *Session) forgetReleased(place string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.places[place].gone == nil {
		s.forget(place)
	}
}

// markReleased notes that the place is being given up: whoever deletes it, it is no loss.
func (s *Session) markReleased(place string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.uncover(place)
	if owned, mine := s.places[place]; mine {
		owned.gone = nil
		s.places[place] = owned
	}
}
