package zookeeper

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/sidekeeper/sidekeeper/recipes"
)

// Bounds of what is handed to the library, far below the size of its buffers: a request that ends exactly at the end of
// one ends the process.
const (
	maxPathBytes = 1024
	maxPlaceData = 8 << 10
	maxACLBytes  = 2 << 10
	sequenceSize = 11 // digits and sign
)

// Enqueue makes an ephemeral sequential child of dir; see recipes.Session.
func (s *Session) Enqueue(ctx context.Context, dir, marker string, data []byte) (string, <-chan struct{}, error) {
	prefix := "_c_" + uuid() + marker
	size := len(dir) + 1 + len(prefix) + sequenceSize
	if size > maxPathBytes || len(data) > maxPlaceData {
		return "", nil, fmt.Errorf("%w: path of %d, data of %d", recipes.ErrTooLarge, size, len(data))
	}
	if err := s.reserve(size); err != nil {
		return "", nil, err
	}
	name, sent, err := s.create(ctx, dir, prefix, data)
	if err != nil {
		s.unreserve(size)
		return "", nil, err
	}
	s.client.reader.expect(ctx, dir+"/"+name)
	gone := s.own(dir+"/"+name, size, false)
	s.cover(dir+"/"+name, 0, sent)
	return name, gone, nil
}

// create makes the node, and finds out what became of it where a reply was lost. It was not there before sent.
func (s *Session) create(ctx context.Context, dir, prefix string, data []byte) (name string, sent instant, err error) {
	for {
		sent = s.now()
		made, err := call(ctx, s, "create", func(c *zk.Conn) (string, error) {
			return c.Create(dir+"/"+prefix, data, zk.FlagEphemeralSequential, s.client.config.acl)
		})
		switch {
		case err == nil:
			return path.Base(made), sent, nil
		case errors.Is(err, recipes.ErrNoNode):
			if err := s.makeParents(ctx, dir); err != nil {
				return "", 0, err
			}
		case errors.Is(err, recipes.ErrOutcomeUnknown):
			if name, err := s.find(ctx, dir, prefix); name != "" || err != nil {
				return name, sent, err
			}
		default:
			return "", 0, err
		}
	}
}

// find searches until it is certain what became of a creation that was not answered: a node that nobody knows of would stand in
// the way of others.
func (s *Session) find(ctx context.Context, dir, prefix string) (name string, err error) {
	for refusals := 0; ; refusals++ {
		name, err := s.search(ctx, dir, prefix)
		if err == nil || errors.Is(err, recipes.ErrSessionEnded) {
			return name, err
		}
		s.rest(s.client.retryPause(refusals))
	}
}

// search looks for a node whose creation was not answered. Its absence is believed only after a transaction of this
// session, before which the server has carried out or dropped whatever it had of the old connection, and then one of the
// reader's, on the connection that lists.
func (s *Session) search(ctx context.Context, dir, prefix string) (name string, err error) {
	ctx = context.WithoutCancel(ctx)
	if err := s.flush(ctx); err != nil {
		return "", err
	}
	if err := s.CatchUp(ctx); err != nil {
		return "", err
	}
	names, err := s.Children(ctx, dir)
	if err != nil && !errors.Is(err, recipes.ErrNoNode) {
		return "", err
	}
	for _, name := range names {
		if !strings.HasPrefix(name, prefix) {
			continue
		}
		node, err := s.Get(ctx, dir+"/"+name)
		switch {
		case err == nil && s.Owns(node), errors.Is(err, recipes.ErrDenied): // the name holds a uuid
			return name, nil
		case err != nil && !errors.Is(err, recipes.ErrNoNode):
			return "", err
		}
	}
	return "", s.Err()
}

// flush returns when a transaction of this session that was begun after the call has been committed.
func (s *Session) flush(ctx context.Context) error {
	for refusals := 0; ; {
		_, err := call(ctx, s, "check", func(c *zk.Conn) (struct{}, error) {
			return struct{}{}, s.commit("/")
		})
		switch {
		case errors.Is(err, recipes.ErrSessionEnded):
			return err
		case err == nil, errors.Is(err, recipes.ErrNoNode), errors.Is(err, recipes.ErrDenied):
			return nil // committed, with whatever verdict
		case !errors.Is(err, recipes.ErrOutcomeUnknown):
			s.rest(s.client.retryPause(refusals))
			refusals++
		}
	}
}

// makeParents makes dir and what it lies in, as containers, which vanish by themselves once they are empty: also while
// this is being done.
func (s *Session) makeParents(ctx context.Context, dir string) error {
	for {
		err := s.makeContainer(ctx, dir)
		parent := path.Dir(dir)
		if !errors.Is(err, recipes.ErrNoNode) || parent == "/" {
			return err
		}
		if err := s.makeParents(ctx, parent); err != nil {
			return err
		}
	}
}

// makeContainer makes one container, or a plain node where the ensemble has no containers. That somebody else made it is
// as good.
func (s *Session) makeContainer(ctx context.Context, dir string) error {
	if s.client.permanent[dir] {
		return s.makePlain(ctx, dir)
	}
	for {
		err := s.makeNode(ctx, "createContainer", func(c *zk.Conn) (string, error) {
			select {
			case s.making <- struct{}{}:
			case <-s.done:
				return "", zk.ErrClosing
			}
			defer func() { <-s.making }()
			return c.CreateContainer(dir, nil, zk.FlagContainer, s.client.config.acl)
		})
		switch {
		case errors.Is(err, errRefused):
			return s.makePlain(ctx, dir)
		case !errors.Is(err, recipes.ErrOutcomeUnknown):
			return err
		}
	}
}

// makePlain makes a node that stays.
func (s *Session) makePlain(ctx context.Context, dir string) error {
	for {
		err := s.makeNode(ctx, "create", func(c *zk.Conn) (string, error) {
			return c.Create(dir, nil, zk.FlagPersistent, s.client.config.acl)
		})
		if !errors.Is(err, recipes.ErrOutcomeUnknown) {
			return err
		}
	}
}

func (s *Session) makeNode(ctx context.Context, operation string, create func(*zk.Conn) (string, error)) error {
	_, err := call(ctx, s, operation, create)
	if errors.Is(err, recipes.ErrExists) {
		return nil
	}
	return err
}

// Dequeue deletes a place; see recipes.Session.
func (s *Session) Dequeue(ctx context.Context, place string) {
	s.release(place, func() error { return s.delete(ctx, place) })
}

// delete deletes a place, once or, where replies are lost, until it is certain what became of it. The name holds a uuid, so that
// it can be no other node's.
func (s *Session) delete(ctx context.Context, place string) error {
	for {
		_, err := call(ctx, s, "delete", func(c *zk.Conn) (struct{}, error) {
			return struct{}{}, c.Delete(place, -1)
		})
		if !errors.Is(err, recipes.ErrOutcomeUnknown) {
			return err
		}
	}
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
	s.bytes += size
	return nil
}

func (s *Session) unreserve(size int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bytes -= size
}

// An ownedNode is what a session knows of one of its ephemeral nodes.
type ownedNode struct {
	gone   chan struct{} // closed when somebody else deleted it; nil while it is being given up
	size   int           // what it counts of the session's bytes
	member bool          // somebody else may have made it since: Create's, not Enqueue's
}

// own enters a place into the books; a member's name may be somebody else's later.
func (s *Session) own(place string, size int, member bool) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	gone := make(chan struct{})
	s.forget(place) // a member of that name that is being given up
	s.places[place] = ownedNode{gone, size, member}
	return gone
}

// forget drops a place from the books. The lock is held.
func (s *Session) forget(place string) {
	s.bytes -= s.places[place].size
	delete(s.places, place)
}

// Close gives up all the session owns and ends it. It returns when that is confirmed, or when the session has ended. What the
// ensemble refuses to delete goes with the session. One that was lost is closed at the ensemble as soon as that can be reached, which is
// not waited for: so Close it once nobody takes what it owned for his own.
func (s *Session) Close(ctx context.Context) {
	defer s.closeLost()
	places, members := s.ownedPaths()
	for _, member := range members {
		_ = s.deleteOwn(ctx, member)
	}
	for len(places) > 0 {
		n := fitting(places)
		s.deleteAll(ctx, places[:n])
		places = places[n:]
	}
	select {
	case <-s.done:
	default:
		s.hangUp()
	}
}

// ownedPaths begins the end: the session may own nothing new.
func (s *Session) ownedPaths() (places, members []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closing = true
	for place, owned := range s.places {
		if owned.member {
			members = append(members, place)
		} else {
			places = append(places, place)
		}
	}
	return places, members
}

// fitting is how many of the places one request of bounded size names, at least one.
func fitting(places []string) int {
	size := 0
	for i, place := range places {
		size += len(place)
		if i > 0 && size > maxPlaceData {
			return i
		}
	}
	return len(places)
}

// deleteAll deletes in one transaction, and one by one where that does not go.
func (s *Session) deleteAll(ctx context.Context, places []string) {
	if len(places) > 1 {
		operations := make([]any, len(places))
		for i, place := range places {
			operations[i] = &zk.DeleteRequest{Path: place, Version: -1}
		}
		_, err := call(ctx, s, "multi", func(c *zk.Conn) ([]zk.MultiResponse, error) {
			return c.Multi(operations...)
		})
		if err == nil {
			places = nil
		}
	}
	for _, place := range places {
		_ = s.delete(ctx, place)
	}
}

// hangUp tells the ensemble that the session is over, if there is a connection to tell it on.
func (s *Session) hangUp() {
	s.mu.Lock()
	connected := s.connected
	s.mu.Unlock()
	if connected {
		s.quit()
	}
	s.lose(errClosed)
}

// quit closes the library's connection, but not while it makes a container: if it is closed then, it reads the reply that it
// may still be writing. A request that has no connection to be answered on is not waited for.
func (s *Session) quit() {
	if s.quitting.Swap(true) {
		<-s.quitted // and not on a mutex, for which virtual time does not wait
		return
	}
	defer close(s.quitted)
	patience := time.NewTimer(quitTimeout)
	defer patience.Stop()
	select {
	case s.making <- struct{}{}:
	case <-patience.C:
	}
	s.conn.Close()
}

const quitTimeout = 2 * time.Second

// uuid returns 128 random bits in the canonical form.
func uuid() string {
	var b [16]byte
	rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[0:4], b[4:6], b[6:8], b[8:10], b[10:])
}
