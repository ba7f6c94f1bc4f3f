package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sidekeeper/sidekeeper/recipes"
)

// Bounds of the session layer, whose sessions have small buffers.
const (
	longestPath = 1024
	mostData    = 8 << 10
)

func fits(path string, data []byte) error {
	if len(path) > longestPath || len(data) > mostData {
		return fmt.Errorf("%w: path of %d, data of %d", recipes.ErrTooLarge, len(path), len(data))
	}
	return nil
}

// Create implements recipes.MemberSession.
func (s *Session) Create(_ context.Context, path string, data []byte) (node recipes.Node, gone <-chan struct{}, err error) {
	if err := fits(path, data); err != nil {
		return recipes.Node{}, nil, err
	}
	err = s.call(context.Background(), s.over(), Operation{"Create", path}, func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.cause != nil {
			return s.cause
		}
		node, gone, err = s.ensemble().createMember(s, path, bytes.Clone(data))
		return err
	})
	if err != nil {
		return recipes.Node{}, nil, err
	}
	return node, gone, nil
}

// createMember makes the node and what lies above it. The ensemble is locked.
func (e *Ensemble) createMember(s *Session, path string, data []byte) (recipes.Node, <-chan struct{}, error) {
	if e.bytesOf(s.server.id)+len(path) > e.options.EphemeralBytes {
		return recipes.Node{}, nil, recipes.ErrTooManyBytes
	}
	above, err := parentOf(path)
	if err == nil {
		err = e.makeParents(above)
	}
	if err != nil {
		return recipes.Node{}, nil, err
	}
	var made *node
	err = e.write(caller{session: s.server.id}, func(t *transaction) (err error) {
		_, made, err = t.create(creation{path: path, data: data, acl: open, mode: Ephemeral, ttl: -1, kind: ephemeral})
		return err
	})
	if err != nil {
		return recipes.Node{}, nil, err
	}
	return made.shown(), e.own(s, path), nil
}

// Update implements recipes.MemberSession.
func (s *Session) Update(_ context.Context, path string, data []byte, version int32) (node recipes.Node, err error) {
	if err := fits(path, data); err != nil {
		return recipes.Node{}, err
	}
	err = s.call(context.Background(), s.over(), Operation{"Update", path}, func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		node, err = s.ensemble().updateMember(s, path, bytes.Clone(data), version)
		return err
	})
	if err != nil {
		return recipes.Node{}, err
	}
	return node, nil
}

func (e *Ensemble) updateMember(s *Session, path string, data []byte, version int32) (recipes.Node, error) {
	if !e.owns(s, path) {
		return recipes.Node{}, codeNoNode
	}
	var set *node
	err := e.write(caller{session: s.server.id}, func(t *transaction) (err error) {
		set, err = t.set(path, data, version)
		return err
	})
	if err != nil {
		return recipes.Node{}, err
	}
	return set.shown(), nil
}

// owns says whether a node is there and a session's. The ensemble is locked.
func (e *Ensemble) owns(s *Session, path string) bool {
	n, err := e.tree.find(path)
	return err == nil && n.stat.owner == s.server.id
}

// Delete implements recipes.MemberSession.
func (s *Session) Delete(_ context.Context, path string) {
	for {
		err := s.call(context.Background(), s.over(), Operation{"Delete", path}, func() error {
			s.mu.Lock()
			defer s.mu.Unlock()
			if !s.ensemble().owns(s, path) {
				return nil
			}
			return s.ensemble().dequeue(s, path)
		})
		if err == nil || errors.Is(err, recipes.ErrNoNode) || errors.Is(err, recipes.ErrSessionEnded) {
			return
		}
		_ = pause(context.Background(), s.over(), 10*time.Millisecond)
	}
}
