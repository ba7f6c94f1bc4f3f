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

// A placing is a place that is being made.
type placing struct {
	*Session

	ctx         context.Context //nolint:containedctx // says on whose behalf
	dir, marker string
	data        []byte
	beside      []string

	prefix   string    // of the name that the newest attempt gives it
	sent     instant   // when that was made
	began    time.Time // then, for who measures
	size     int       // that its path may have
	creation recipes.Change
}

// Enqueue makes an ephemeral sequential child of dir; see recipes.Session.
func (s *Session) Enqueue(
	ctx context.Context, dir, marker string, data []byte, beside ...string,
) (made recipes.Enqueued, err error) {
	answered := make(chan struct{})
	s.EnqueueThen(ctx, dir, marker, data, func(its recipes.Enqueued, failure error) {
		made, err = its, failure
		close(answered)
	}, beside...)
	<-answered
	return made, err
}

// EnqueueThen is Enqueue for those who must not wait; see recipes.Session. What is unusual is found out in a goroutine of its own.
func (s *Session) EnqueueThen(
	ctx context.Context, dir, marker string, data []byte, then func(recipes.Enqueued, error), beside ...string,
) {
	p := &placing{Session: s, ctx: ctx, dir: dir, marker: marker, data: data, beside: beside, prefix: placePrefix(marker)}
	if err := p.admit(); err != nil {
		then(recipes.Enqueued{}, err)
		return
	}
	if s.client.quotas.IsNear(p.creation) {
		go func() { then(p.enterWithin()) }()
		return
	}
	p.ask()
	answered := func(b *batch) { p.answered(b, then) }
	if !s.askAtOnce(ctx, "create", answered, s.placeRequests(dir, p.prefix, data, beside)...) {
		go func() { then(p.enter(p.create())) }()
	}
}

// answered goes on with what has come of the first attempt.
func (p *placing) answered(b *batch, then func(recipes.Enqueued, error)) {
	var made recipes.Enqueued
	err := b.requests[0].err
	if err == nil {
		made, err = placeIn(b.requests, p.dir, p.prefix)
	}
	if err = b.asked.answered(err); err != nil {
		go p.goOn(err, then)
		return
	}
	made, unasked, _, err := p.conclude(made, nil)
	then(p.enter(made, unasked, err))
}

// goOn is for an attempt that has failed so.
func (p *placing) goOn(err error, then func(recipes.Enqueued, error)) { then(p.enter(p.tryAgain(err))) }

// enterWithin makes the place if that is within its quotas.
func (p *placing) enterWithin() (recipes.Enqueued, error) {
	if err := p.client.reader.admitQuota(asker{ctx: p.ctx, session: p.Session}, p.creation); err != nil {
		p.unreserve(p.size)
		return recipes.Enqueued{}, err
	}
	p.ask()
	return p.enter(p.create())
}

// admit makes room for the place, if there is some.
func (p *placing) admit() error {
	p.size, p.creation = len(p.dir)+1+len(p.prefix)+sequenceSize, recipes.Create(p.dir+"/"+p.prefix, p.data)
	if p.size > maxPathBytes || len(p.data) > maxPlaceData {
		return fmt.Errorf("%w: path of %d, data of %d", recipes.ErrTooLarge, p.size, len(p.data))
	}
	return p.reserve(p.size)
}

// enter has the place that was made be the session's. Nothing had been asked of it at unasked.
func (p *placing) enter(made recipes.Enqueued, unasked instant, err error) (recipes.Enqueued, error) {
	if err = p.client.reader.concluded(asker{ctx: p.ctx, session: p.Session}, err, p.creation); err != nil {
		p.unreserve(p.size)
		return recipes.Enqueued{}, err
	}
	if made.Queue == nil {
		p.client.reader.expect(p.ctx, made.Path)
	}
	made.Gone = p.own(made.Path, p.size, false)
	p.cover(made.Path, 0, unasked)
	return made, nil
}

// ask is what is told when an attempt begins.
func (p *placing) ask() {
	p.sent, p.began = p.now(), time.Now()
	p.tellPlace(trace.Asked, p.dir, p.prefix)
}

// create makes the node, and finds out what became of it where a reply was lost. Each attempt has a uuid of its own: somebody else may have
// deleted what an earlier one has made, and with the directory, which counts anew.
func (p *placing) create() (made recipes.Enqueued, unasked instant, err error) {
	for again := true; again; {
		made, err = call(p.ctx, p.Session, "create", func(*zk.Conn) (recipes.Enqueued, error) {
			return p.createPlace(p.dir, p.prefix, p.data, p.beside)
		})
		if made, unasked, again, err = p.conclude(made, err); again {
			p.askAnew()
		}
	}
	return made, unasked, err
}

// askAnew begins another attempt.
func (p *placing) askAnew() {
	p.prefix = placePrefix(p.marker)
	p.ask()
}

// tryAgain goes on after an attempt that has failed so.
func (p *placing) tryAgain(err error) (recipes.Enqueued, instant, error) {
	switch {
	case errors.Is(err, errThrottled): // nothing was done
		p.rest(p.client.retryPause(0))
		return p.create()
	case errors.Is(err, recipes.ErrOutcomeUnknown):
		p.rest(lostRequestPause)
	}
	made, unasked, again, err := p.conclude(recipes.Enqueued{}, err)
	if !again {
		return made, unasked, err
	}
	p.askAnew()
	return p.create()
}

// conclude finds out what an attempt has come to, and whether there has to be another one. It waits for nothing unless there was an error.
func (p *placing) conclude(made recipes.Enqueued, err error) (_ recipes.Enqueued, unasked instant, again bool, _ error) {
	switch {
	case err == nil:
		if made.Queue != nil {
			p.client.config.Observe(p.ctx, "getChildren", time.Since(p.began), false)
		}
		p.tellPlace(trace.Made, p.dir, made.Name)
		return made, p.sent, false, nil
	case errors.Is(err, recipes.ErrNoNode):
		p.tellPlace(trace.Absent, p.dir, p.prefix)
		err = p.makeParents(p.ctx, p.dir)
		return recipes.Enqueued{}, 0, err == nil, err
	case errors.Is(err, recipes.ErrOutcomeUnknown):
		name, unasked, err := p.find(p.ctx, p.dir, p.prefix)
		return recipes.Enqueued{Path: p.dir + "/" + name, Name: name}, max(p.sent, unasked), name == "" && err == nil, err
	}
	return recipes.Enqueued{}, 0, false, err
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
	_, _, err := s.flushThen(ctx)
	return err
}

// flushThen is flush, and makes the others in the same write, at sent. The server carries them out behind that transaction, and answers each for
// itself.
func (s *Session) flushThen(ctx context.Context, others ...ownRequest) (answered []ownRequest, sent time.Time, _ error) {
	for refusals := 0; ; {
		_, err := call(ctx, s, "check", func(*zk.Conn) (_ struct{}, err error) {
			sent = time.Now()
			answered, err = s.commitThen("/", others...)
			return struct{}{}, err
		})
		switch {
		case errors.Is(err, recipes.ErrSessionEnded):
			return nil, sent, err
		case err == nil, errors.Is(err, recipes.ErrNoNode), errors.Is(err, recipes.ErrDenied):
			return answered, sent, nil // committed, with whatever verdict
		case !errors.Is(err, recipes.ErrOutcomeUnknown):
			s.rest(s.client.retryPause(refusals))
			refusals++
		}
	}
}

// Dequeue deletes a place; see recipes.Session.
func (s *Session) Dequeue(ctx context.Context, place string) {
	gone := make(chan struct{})
	s.DequeueThen(ctx, place, func() { close(gone) })
	<-gone
}

// DequeueThen is Dequeue for those who must not wait; see recipes.Session.
func (s *Session) DequeueThen(ctx context.Context, place string, then func()) {
	s.markReleased(place)
	answered := func(b *batch) {
		err := b.outcome()
		if !settled(err) {
			go s.dequeueMarked(ctx, place, then)
			return
		}
		s.tellLeft(place, err)
		s.forgetReleased(place)
		then()
	}
	if !s.askAtOnce(ctx, "delete", answered, operation{kind: opDelete, path: place, number: anyVersion}.request()) {
		go s.dequeueMarked(ctx, place, then)
	}
}

func (s *Session) dequeueMarked(ctx context.Context, place string, then func()) {
	s.releaseMarked(place, func() error { return s.delete(ctx, place) })
	then()
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
