package zookeeper

import (
	"errors"

	"go.uber.org/zap"

	"github.com/sidekeeper/sidekeeper/recipes"
)

// giveAway deletes a place or a member that nobody wants any more, and strikes it from the books when it is gone. What the ensemble
// refuses to delete (an access control list was changed, say) is owed, and tried again until it goes or the session does.
func (s *Session) giveAway(place string, remove func() error) {
	s.disown(place)
	for refusals := 0; ; refusals++ {
		err := remove()
		if settled(err) {
			break
		}
		if refusals == 0 {
			s.log.Warn("the ensemble refuses to delete what was given up; trying again", zap.String("node", place), zap.Error(err))
		}
		s.rest(s.client.forbearance(refusals))
	}
	s.strike(place)
}

// settled says whether nothing of this session's stands there any more.
func settled(err error) bool {
	return err == nil || errors.Is(err, recipes.ErrNoNode) || errors.Is(err, recipes.ErrExists) || errors.Is(err, recipes.ErrSessionEnded)
}

// strike drops what was disowned from the books, but not a member that was made anew.
func (s *Session) strike(place string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.places[place].gone == nil {
		s.forget(place)
	}
}

// disown notes that the place is being given up: whoever deletes it, it is no loss.
func (s *Session) disown(place string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.uncover(place)
	if owned, mine := s.places[place]; mine {
		owned.gone = nil
		s.places[place] = owned
	}
}
