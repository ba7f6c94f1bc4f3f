package zookeeper

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/sidekeeper/sidekeeper/internal/trace"
	"github.com/sidekeeper/sidekeeper/recipes"
)

// Bounds of what one request of a lease may hold.
const (
	maxPathBytes = 1024
	maxPlaceData = 8 << 10
	maxACLBytes  = 2 << 10
	maxGuards    = 3 << 10 // beside the longest data
	sequenceSize = 11      // digits and sign
)

// Enqueue makes an ephemeral sequential child of dir; see recipes.Session.
func (s *Session) Enqueue(ctx context.Context, dir, marker string, data []byte, beside ...string) (recipes.Enqueued, error) {
	prefix := placePrefix(marker)
	size := len(dir) + 1 + len(prefix) + sequenceSize
	if size > maxPathBytes || len(data) > maxPlaceData {
		return recipes.Enqueued{}, fmt.Errorf("%w: path of %d, data of %d", recipes.ErrTooLarge, size, len(data))
	}
	asks, creation := asker{ctx: ctx, session: s}, recipes.Create(dir+"/"+prefix, data)
	if err := s.reserve(size); err != nil {
		return recipes.Enqueued{}, err
	}
	if err := s.client.reader.admitQuota(asks, creation); err != nil {
		s.unreserve(size)
		return recipes.Enqueued{}, err
	}
	made, unasked, err := s.create(ctx, dir, marker, data, beside)
	if err = s.client.reader.concluded(asks, err, creation); err != nil {
		s.unreserve(size)
		return recipes.Enqueued{}, err
	}
	place := dir + "/" + made.Name
	if made.Queue == nil {
		s.client.reader.expect(ctx, place)
	}
	made.Gone = s.own(place, size, false)
	s.cover(place, 0, unasked)
	return made, nil
}

// create makes the node, and finds out what became of it where a reply was lost. Nothing had been asked of it at unasked. Each attempt has
// a uuid of its own: somebody else may have deleted what an earlier one has made, and with the directory, which counts anew.
func (s *Session) create(
	ctx context.Context, dir, marker string, data []byte, beside []string,
) (made recipes.Enqueued, unasked instant, err error) {
	for {
		sent, prefix := s.now(), placePrefix(marker)
		s.tellPlace(trace.Asked, dir, prefix)
		made, err := call(ctx, s, "create", func(*zk.Conn) (recipes.Enqueued, error) { return s.createPlace(dir, prefix, data, beside) })
		switch {
		case err == nil:
			if made.Queue != nil {
				s.client.config.Observe(ctx, "getChildren", s.now().since(sent), false)
			}
			s.tellPlace(trace.Made, dir, made.Name)
			return made, sent, nil
		case errors.Is(err, recipes.ErrNoNode):
			s.tellPlace(trace.Absent, dir, prefix)
			if err := s.makeParents(ctx, dir); err != nil {
				return recipes.Enqueued{}, 0, err
			}
		case errors.Is(err, recipes.ErrOutcomeUnknown):
			if name, unasked, err := s.find(ctx, dir, prefix); name != "" || err != nil {
				return recipes.Enqueued{Name: name}, max(sent, unasked), err
			}
		default:
			return recipes.Enqueued{}, 0, err
		}
	}
}

// tellPlace tells what has become of a place of which the name, or what it begins with, is this.
func (s *Session) tellPlace(kind trace.Kind, dir, name string) {
	if trace.Told() {
		trace.Tell(trace.Step{Kind: kind, Session: s.ID(), Place: dir + "/" + name})
	}
}

// find searches until it is certain what became of a creation that was not answered: a node that nobody knows of would stand in
// the way of others.
func (s *Session) find(ctx context.Context, dir, prefix string) (name string, unasked instant, err error) {
	for refusals := 0; ; refusals++ {
		name, unasked, err := s.search(ctx, dir, prefix)
		switch {
		case err == nil && unasked != 0 && !s.promisesWithin(unasked):
			continue // what it was shown is old: callers were told of more meanwhile
		case err == nil && name != "":
			s.tellPlace(trace.Found, dir, name)
		case err == nil:
			s.tellPlace(trace.Absent, dir, prefix)
		}
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
		_, err := call(ctx, s, "delete", func(*zk.Conn) (struct{}, error) {
			return struct{}{}, s.deleteNode(place, anyVersion)
		})
		if !errors.Is(err, recipes.ErrOutcomeUnknown) {
			return err
		}
	}
}

// placePrefix is what the name of a place begins with, whatever number follows: with 128 random bits as a uuid, in its canonical form.
func placePrefix(marker string) string {
	var bits [16]byte
	rand.Read(bits[:])
	bits[6], bits[8] = bits[6]&0x0f|0x40, bits[8]&0x3f|0x80
	text := append(make([]byte, 0, 64), "_c_"...)
	begin := 0
	for _, end := range []int{4, 6, 8, 10} {
		text = append(hex.AppendEncode(text, bits[begin:end]), '-')
		begin = end
	}
	return string(append(hex.AppendEncode(text, bits[begin:]), marker...))
}
