package zookeeper

import (
	"errors"
	"fmt"

	"go.uber.org/zap"

	"github.com/sidekeeper/sidekeeper/internal/trace"
	"github.com/sidekeeper/sidekeeper/recipes"
)

// An ownership is what a session owns: its ephemeral nodes, and what may be asked of them. The session's lock guards it.
type ownership struct {
	places map[string]ownedNode
	owned  int // how many nodes it has made so far
}

// An ownedNode is what a session knows of one of its ephemeral nodes.
type ownedNode struct {
	gone   *recipes.Signal // given when somebody else deleted it; nil while it is being given up
	size   int             // what it counts of the session's bytes
	member bool            // somebody else may have made it since: Create's, not Enqueue's
	number int             // how many it had made before
}

// Owns says whether the node lives with this session.
func (s *Session) Owns(node recipes.Node) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return node.Owner != 0 && node.Owner == s.id
}

// reserve counts the bytes of a path against what one session may own: the transaction that closes a session names all of
// them, and one that is too long stops the ensemble (ZOOKEEPER-4306).
func (s *Session) reserve(size int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.err != nil:
		return s.err
	case s.closing:
		return errClosed
	case s.bytes+size > s.client.config.EphemeralBytes:
		return fmt.Errorf("%w: %d", recipes.ErrTooManyBytes, s.client.config.EphemeralBytes)
	}
	now := s.now()
	s.follow(s.stands(size, now), now)
	return nil
}

func (s *Session) unreserve(size int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bytes -= size
}

// own enters a place into the books; a member's name may be somebody else's later.
func (s *Session) own(place string, size int, member bool) *recipes.Signal {
	s.mu.Lock()
	defer s.mu.Unlock()
	gone := &recipes.Signal{}
	if _, had := s.places[place]; had { // a member of that name that is being given up
		s.forget(place)
	}
	s.places[place] = ownedNode{gone, size, member, s.owned}
	s.owned++
	return gone
}

// forget drops a place from the books. The lock is held.
func (s *Session) forget(place string) {
	s.bytes -= s.places[place].size
	delete(s.places, place)
	s.wanted = s.now()
}

// release deletes a place or a member that nobody wants any more, and forgets it when it is gone. What the ensemble refuses to
// delete (an access control list was changed, say) is tried again until it goes or the session does.
func (s *Session) release(place string, remove func() error) {
	s.markReleased(place)
	s.releaseMarked(place, remove)
}

func (s *Session) releaseMarked(place string, remove func() error) {
	for refusals := 0; ; refusals++ {
		err := remove()
		if settled(err) {
			s.tellLeft(place, err)
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

// tellLeft tells that a place is gone, if the ensemble has said so.
func (s *Session) tellLeft(place string, why error) {
	if trace.Told() && !errors.Is(why, recipes.ErrSessionEnded) {
		trace.Tell(trace.Step{Kind: trace.Left, Session: s.ID(), Place: place})
	}
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
	s.uncover(place, s.now())
	trace.Tell(trace.Step{Kind: trace.Leaving, Session: s.id, Place: place})
	if owned, mine := s.places[place]; mine {
		owned.gone = nil
		s.places[place] = owned
	}
}

// placeGone tells that somebody else deleted a place. The lock is held.
func (s *Session) placeGone(path string, gone *recipes.Signal) {
	if gone != nil && s.places[path].gone == gone {
		s.uncover(path, s.now())
		s.forget(path)
		gone.Give()
	}
}
