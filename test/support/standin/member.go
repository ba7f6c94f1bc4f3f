package standin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/embedded"
	"github.com/sidekeeper/sidekeeper/recipes"
)

// Bounds of the session layer, whose sessions have small buffers.
const (
	longestPath = 1024
	mostData    = 8 << 10
	mostGuards  = 3 << 10 // beside the longest data
)

func fits(path string, data []byte, guards ...recipes.Guard) error {
	checks := 0
	for _, guard := range guards {
		checks += 17 + len(guard.Path)
	}
	if len(path) > longestPath || len(data) > mostData || len(data)+checks > mostData+mostGuards {
		return fmt.Errorf("%w: path of %d, data of %d", recipes.ErrTooLarge, len(path), len(data))
	}
	return nil
}

// Create implements recipes.MemberSession.
func (s *Session) Create(
	_ context.Context, path string, data []byte, guards ...recipes.Guard,
) (node recipes.Node, gone *recipes.Signal, err error) {
	if err := fits(path, data, guards...); err != nil {
		return recipes.Node{}, nil, err
	}
	err = s.call(context.Background(), s.over(), Operation{"Create", path}, func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.cause != nil {
			return s.cause
		}
		node, gone, err = s.ensemble().createMember(s, path, data, guards)
		return err
	})
	if err != nil {
		return recipes.Node{}, nil, err
	}
	return node, gone, nil
}

// createMember makes the node and what lies above it. The ensemble is locked.
func (e *Ensemble) createMember(s *Session, path string, data []byte, guards []recipes.Guard) (recipes.Node, *recipes.Signal, error) {
	if e.bytesOf(s.id)+len(path) > e.options.EphemeralBytes {
		return recipes.Node{}, nil, recipes.ErrTooManyBytes
	}
	if err := e.MakeParents(path[:strings.LastIndexByte(path, '/')]); err != nil {
		return recipes.Node{}, nil, err
	}
	var made recipes.Node
	err := e.Write(s.id, func(t *embedded.Transaction) error {
		if err := stand(t, guards); err != nil {
			return err
		}
		_, n, err := t.Make(path, data, embedded.Ephemeral)
		if err == nil {
			made = n.Shown()
		}
		return err
	})
	if err != nil {
		return recipes.Node{}, nil, err
	}
	return made, e.own(s, path), nil
}

// stand is a *recipes.GuardLost unless the places of all the guards stand.
func stand(t *embedded.Transaction, guards []recipes.Guard) error {
	for i, check := range recipes.Checks(guards) {
		if _, err := apply(t, check); err != nil {
			return &recipes.GuardLost{Index: i}
		}
	}
	return nil
}

// Update implements recipes.MemberSession.
func (s *Session) Update(
	_ context.Context, path string, data []byte, version int32, guards ...recipes.Guard,
) (node recipes.Node, err error) {
	if err := fits(path, data, guards...); err != nil {
		return recipes.Node{}, err
	}
	err = s.call(context.Background(), s.over(), Operation{"Update", path}, func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		node, err = s.ensemble().updateMember(s, path, data, version, guards)
		return err
	})
	if err != nil {
		return recipes.Node{}, err
	}
	return node, nil
}

func (e *Ensemble) updateMember(
	s *Session, path string, data []byte, version int32, guards []recipes.Guard,
) (recipes.Node, error) {
	if !e.owns(s, path) {
		return recipes.Node{}, recipes.ErrNoNode
	}
	var written recipes.Node
	err := e.Write(s.id, func(t *embedded.Transaction) error {
		if err := stand(t, guards); err != nil {
			return err
		}
		n, err := t.Set(path, bytes.Clone(data), version)
		if err == nil {
			written = n.Shown()
		}
		return err
	})
	return written, err
}

// owns says whether a node is there and a session's. The ensemble is locked.
func (e *Ensemble) owns(s *Session, path string) bool {
	n, err := e.Tree().Find(path)
	return err == nil && n.Describe().Owner == s.id
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
