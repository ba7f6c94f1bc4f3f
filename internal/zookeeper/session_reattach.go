package zookeeper

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/sidekeeper/sidekeeper/internal/jute"
	"github.com/sidekeeper/sidekeeper/recipes"
)

// mostEphemerals is how many times the bytes of the paths that a session may own their list may take, with a length before each.
const mostEphemerals = 2

// errUnreturned is why a session ends here that was not come back to: the ensemble keeps it until its timeout, or somebody comes back.
var errUnreturned = fmt.Errorf("%w: no caller has come back to it", recipes.ErrSessionEnded)

var _ recipes.Adopter = (*Session)(nil)

// Key is what another process comes back to the session with.
func (s *Session) Key() recipes.SessionKey {
	s.mu.Lock()
	defer s.mu.Unlock()
	return recipes.SessionKey{ID: s.id, Password: slices.Clone(s.password[:]), Timeout: s.negotiated}
}

// Reattach comes back to a session that another process opened and that has ended, and returns what it owns. The session is proved by then:
// a transaction of its own was committed on the connection whose handshake it counts from. Whatever the other process had asked for in vain
// has been carried out before that transaction, or is refused, since the session has moved. So what is listed behind it is all that there
// will be. But a request to close a session is carried out whoever sends it, and however late: nobody may come back to a session whose
// closing has been begun.
//
// ErrSessionEnded if the ensemble has expired it, ErrUnreachable if it does not answer within a third of the timeout: then the session is as
// it was, and may be come back to again.
func (c *Client) Reattach(ctx context.Context, key recipes.SessionKey) (*Session, []recipes.Standing, error) {
	if err := c.config.safe(key.Timeout); err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, givesUpAfter(key.Timeout), recipes.ErrUnreachable)
	defer cancel()
	leave, err := c.openings.enter(ctx.Done())
	if err != nil {
		return nil, nil, context.Cause(ctx)
	}
	defer leave()
	s := c.newSession(key.Timeout, false)
	s.id = key.ID
	copy(s.password[:], key.Password)
	s.doubtful.Store(true)                          // nobody knows what else was asked of it,
	s.ownAsked.Store(int32(s.client.upTo(1 << 30))) // nor under which numbers
	if err := s.begin(ctx); err != nil {
		return nil, nil, err
	}
	stop := context.AfterFunc(ctx, func() { s.lose(errUnreturned) })
	defer stop()
	standing, err := s.lookBack(ctx)
	if !stop() && err == nil {
		err = context.Cause(ctx)
	}
	if err == nil && !s.startPulse() {
		err = s.Err()
	}
	if err != nil {
		s.lose(errUnreturned)
		if errors.Is(s.Err(), errUnreturned) && ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, nil, err
	}
	return s, standing, nil
}

// reattaching has the first handshake of a session that another process opened name it: the library does not know of it yet.
func (s *Session) reattaching(handshake []byte) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.id == 0 || s.generation > 0 || len(handshake) < connectSessionID+8+4+passwordBytes {
		return handshake
	}
	named := slices.Clone(handshake)
	binary.BigEndian.PutUint64(named[connectSessionID:], uint64(s.id))
	copy(named[connectSessionID+8+4:], s.password[:])
	return named
}

// isReturned says whether another process has made the session, of which nodes may stand on it.
func (s *Session) isReturned() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.birth == nil
}

// lookBack lists what the session owns, behind a transaction that proves it.
func (s *Session) lookBack(ctx context.Context) ([]recipes.Standing, error) {
	if err := s.flush(ctx); err != nil {
		return nil, err
	}
	paths, err := call(ctx, s, "getEphemerals", func(*zk.Conn) ([]string, error) { return s.listEphemerals() })
	if err != nil {
		return nil, err
	}
	looked := s.now()
	if err := s.CatchUp(ctx); err != nil {
		return nil, err
	}
	standing := make([]recipes.Standing, 0, len(paths))
	for _, path := range paths {
		node, err := s.Get(ctx, path)
		switch {
		case errors.Is(err, recipes.ErrNoNode), err == nil && !s.Owns(node): // deleted by somebody since
		case err != nil:
			return nil, err
		default:
			standing = append(standing, recipes.Standing{Path: path, Node: node})
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looked = looked
	return standing, nil
}

// listEphemerals asks the server for the paths of what the session owns.
func (s *Session) listEphemerals() ([]string, error) {
	answers, err := s.askOwn(ownRequest{kind: opGetEphemerals, body: appendText(nil, "/")})
	if err != nil {
		return nil, err
	}
	list := jute.NewDecoder(answers[0].answer)
	paths := list.Texts()
	if list.Failed() {
		return nil, zk.ErrShortBuffer
	}
	return paths, nil
}

// Adopt implements recipes.Adopter. Nothing newer than what Reattach has shown had been written when it began to look.
func (s *Session) Adopt(standing recipes.Standing, named bool) (gone *recipes.Signal, err error) {
	if err := s.reserve(len(standing.Path)); err != nil {
		return nil, err
	}
	gone = s.own(standing.Path, len(standing.Path), named)
	s.mu.Lock()
	looked := s.looked
	s.mu.Unlock()
	s.cover(standing.Path, standing.Node.Version, looked)
	return gone, nil
}
