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
	prefix := placePrefix(marker)
	size := len(dir) + 1 + len(prefix) + sequenceSize
	if size > maxPathBytes || len(data) > maxPlaceData {
		return "", nil, fmt.Errorf("%w: path of %d, data of %d", recipes.ErrTooLarge, size, len(data))
	}
	asks, creation := asker{ctx: ctx, session: s}, recipes.Create(dir+"/"+prefix, data)
	if err := s.client.reader.admitQuota(asks, creation); err != nil {
		return "", nil, err
	}
	if err := s.reserve(size); err != nil {
		return "", nil, err
	}
	name, unasked, err := s.create(ctx, dir, marker, data)
	if err = s.client.reader.concluded(asks, err, creation); err != nil {
		s.unreserve(size)
		return "", nil, err
	}
	s.client.reader.expect(ctx, dir+"/"+name)
	gone := s.own(dir+"/"+name, size, false)
	s.cover(dir+"/"+name, 0, unasked)
	return name, gone, nil
}

// create makes the node, and finds out what became of it where a reply was lost. Nothing had been asked of it at unasked. Each attempt has
// a uuid of its own: somebody else may have deleted what an earlier one has made, and with the directory, which counts anew.
func (s *Session) create(ctx context.Context, dir, marker string, data []byte) (name string, unasked instant, err error) {
	for {
		sent, prefix := s.now(), placePrefix(marker)
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
			if name, unasked, err := s.find(ctx, dir, prefix); name != "" || err != nil {
				return name, max(sent, unasked), err
			}
		default:
			return "", 0, err
		}
	}
}

// find searches until it is certain what became of a creation that was not answered: a node that nobody knows of would stand in
// the way of others.
func (s *Session) find(ctx context.Context, dir, prefix string) (name string, unasked instant, err error) {
	for refusals := 0; ; refusals++ {
		name, unasked, err := s.search(ctx, dir, prefix)
		if err == nil || errors.Is(err, recipes.ErrSessionEnded) {
			return name, unasked, err
		}
		s.rest(s.client.retryPause(refusals))
	}
}

// search looks for a node whose creation was not answered. Its absence is believed only after a transaction of this
// session, before which the server has carried out or dropped whatever it had of the old connection, and then one of the
// reader's, on the connection that lists. A node whose data are as they were made was not asked for anything at unasked.
func (s *Session) search(ctx context.Context, dir, prefix string) (name string, unasked instant, err error) {
	ctx = context.WithoutCancel(ctx)
	if err := s.flush(ctx); err != nil {
		return "", 0, err
	}
	var now instant
	for caughtUp := false; !caughtUp; {
		now = s.now()
		if err := s.CatchUp(ctx); err != nil {
			return "", 0, err
		}
		caughtUp = s.now() < now.add(time.Second) // not so if the reader was away: a session is not valid for long after an old look
	}
	names, err := s.Children(ctx, dir)
	if err != nil && !errors.Is(err, recipes.ErrNoNode) {
		return "", 0, err
	}
	for _, name := range names {
		if !strings.HasPrefix(name, prefix) {
			continue
		}
		node, err := s.Get(ctx, dir+"/"+name)
		switch {
		case err == nil && s.Owns(node) && node.Version == 0:
			return name, now, nil
		case err == nil && s.Owns(node), errors.Is(err, recipes.ErrDenied): // the name holds a uuid
			return name, 0, nil
		case err != nil && !errors.Is(err, recipes.ErrNoNode):
			return "", 0, err
		}
	}
	return "", 0, s.Err()
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

// placePrefix is what the name of a place begins with, whatever number follows.
func placePrefix(marker string) string { return "_c_" + uuid() + marker }

// uuid returns 128 random bits in the canonical form.
func uuid() string {
	var b [16]byte
	rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[0:4], b[4:6], b[6:8], b[8:10], b[10:])
}
