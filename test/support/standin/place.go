package standin

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/embedded"
	"github.com/sidekeeper/sidekeeper/recipes"
)

// A place is a node that a Session has enqueued or created.
type place struct {
	session *Session
	gone    *recipes.Signal
	leaving bool // its own session is deleting it
}

// Enqueue implements recipes.Session.
func (s *Session) Enqueue(_ context.Context, dir, marker string, data []byte, beside ...string) (made recipes.Enqueued, err error) {
	prefix := dir + "/_c_" + uuid() + marker
	err = s.call(context.Background(), s.over(), Operation{"Enqueue", dir}, func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.cause != nil {
			return s.cause
		}
		made, err = s.ensemble().enqueue(s, dir, prefix, data, beside)
		return err
	})
	if err != nil {
		return recipes.Enqueued{}, err
	}
	return made, nil
}

// EnqueueThen implements recipes.Session.
func (s *Session) EnqueueThen(
	ctx context.Context, dir, marker string, data []byte, then func(recipes.Enqueued, error), beside ...string,
) {
	go func() { then(s.Enqueue(ctx, dir, marker, data, beside...)) }()
}

// DequeueThen implements recipes.Session.
func (s *Session) DequeueThen(ctx context.Context, path string, then func()) {
	go func() {
		s.Dequeue(ctx, path)
		then()
	}()
}

// enqueue makes the node and what lies above it, and lists the directory. The ensemble is locked.
func (e *Ensemble) enqueue(s *Session, dir, prefix string, data []byte, beside []string) (recipes.Enqueued, error) {
	if e.bytesOf(s.id)+len(prefix)+len("0000000000") > e.options.EphemeralBytes {
		return recipes.Enqueued{}, recipes.ErrTooManyBytes
	}
	if err := e.MakeParents(dir); err != nil {
		return recipes.Enqueued{}, err
	}
	var path string
	err := e.Write(s.id, func(t *embedded.Transaction) (err error) {
		path, _, err = t.Make(prefix, data, embedded.EphemeralSequential)
		return err
	})
	if err != nil {
		return recipes.Enqueued{}, err
	}
	made := recipes.Enqueued{Path: path, Name: path[len(dir)+1:], Gone: e.own(s, path)}
	if node, err := e.Tree().Read(path); err == nil {
		made.Czxid = node.Czxid
	}
	if queue, err := e.Tree().Find(dir); err == nil && queue.Readable() == nil {
		made.Queue = queue.Names()
		directory, _ := e.Tree().Read(dir)
		made.HasData = len(directory.Data) > 0
		for _, node := range beside {
			found, _ := e.Tree().Read(node)
			made.Beside = found.Data
		}
	}
	return made, nil
}

// EnqueueAll implements recipes.Session.
func (s *Session) EnqueueAll(_ context.Context, ends []recipes.QueueEnd, data []byte) (made []recipes.Enqueued, err error) {
	unique := "/_c_" + uuid()
	err = s.call(context.Background(), s.over(), Operation{"EnqueueAll", ends[0].Dir}, func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.cause != nil {
			return s.cause
		}
		made, err = s.ensemble().enqueueAll(s, ends, unique, data)
		return err
	})
	return made, err
}

// enqueueAll makes the nodes in one transaction, and what lies above them. The ensemble is locked.
func (e *Ensemble) enqueueAll(s *Session, ends []recipes.QueueEnd, unique string, data []byte) (made []recipes.Enqueued, err error) {
	size := e.bytesOf(s.id)
	for _, end := range ends {
		size += len(end.Dir) + len(unique) + len(end.Marker) + len("0000000000")
		if err := e.MakeParents(end.Dir); err != nil {
			return nil, err
		}
	}
	if size > e.options.EphemeralBytes {
		return nil, recipes.ErrTooManyBytes
	}
	err = e.Write(s.id, func(t *embedded.Transaction) error {
		for _, end := range ends {
			path, _, err := t.Make(end.Dir+unique+end.Marker, data, embedded.EphemeralSequential)
			if err != nil {
				return err
			}
			made = append(made, recipes.Enqueued{Path: path, Name: path[len(end.Dir)+1:]})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for i, end := range ends {
		made[i].Gone = e.own(s, end.Dir+"/"+made[i].Name)
	}
	return made, nil
}

// own enters a node of a session's into the books.
func (e *Ensemble) own(s *Session, path string) (gone *recipes.Signal) {
	p := &place{session: s, gone: &recipes.Signal{}}
	e.places[path] = p
	return p.gone
}

// Adopt implements recipes.Adopter: from now on whoever has come back to the session is told of what becomes of the node.
func (s *Session) Adopt(standing recipes.Standing, _ bool) (gone *recipes.Signal, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cause != nil {
		return nil, s.cause
	}
	return s.ensemble().own(s, standing.Path), nil
}

// bytesOf is the length of all paths a session owns.
func (e *Ensemble) bytesOf(session int64) int {
	total := 0
	for _, path := range e.OwnedBy(session) {
		total += len(path)
	}
	return total
}

// Dequeue implements recipes.Session.
func (s *Session) Dequeue(_ context.Context, path string) {
	for {
		err := s.call(context.Background(), s.over(), Operation{"Dequeue", path}, func() error {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.ensemble().dequeue(s, path)
		})
		if err == nil || errors.Is(err, recipes.ErrNoNode) || errors.Is(err, recipes.ErrSessionEnded) {
			return
		}
		_ = pause(context.Background(), s.over(), 10*time.Millisecond)
	}
}

func (e *Ensemble) dequeue(s *Session, path string) error {
	if p := e.places[path]; p != nil && p.session == s {
		p.leaving = true
	}
	return e.Write(s.id, func(t *embedded.Transaction) error { return t.Delete(path, -1) })
}

// noticeDeleted tells the session that had enqueued a node. The ensemble is locked.
func (e *Ensemble) noticeDeleted(path string) {
	p := e.places[path]
	if p == nil || !e.Alive(p.session.id) { // one that ends forgets its places
		return
	}
	delete(e.places, path)
	switch {
	case p.leaving:
	case p.session.suspended:
		p.session.missed = append(p.session.missed, p.gone)
	default:
		p.gone.Give()
	}
}

// deliverGone tells a session that is in contact again that others have deleted nodes of its meanwhile.
func (s *Session) deliverGone() {
	for _, gone := range s.missed {
		gone.Give()
	}
	s.missed = nil
}

// forgetPlaces forgets the places of a session that has ended: what becomes of them is not told.
func (e *Ensemble) forgetPlaces(session int64) {
	for path, p := range e.places {
		if p.session.id == session {
			delete(e.places, path)
		}
	}
}

// uuid is a random one, version 4, in its usual form.
func uuid() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
