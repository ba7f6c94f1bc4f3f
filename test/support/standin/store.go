package standin

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/sidekeeper/sidekeeper/internal/embedded"
	"github.com/sidekeeper/sidekeeper/recipes"
)

// Commit implements recipes.Store.
func (r *Reader) Commit(ctx context.Context, changes ...recipes.Change) ([]recipes.Node, error) {
	return r.commit(ctx, r.line, over{}, changes)
}

// MakeDirectory implements recipes.Store.
func (r *Reader) MakeDirectory(ctx context.Context, path string) error {
	return r.makeDirectory(ctx, r.line, over{}, path)
}

// Commit implements recipes.Store.
func (s *Session) Commit(ctx context.Context, changes ...recipes.Change) ([]recipes.Node, error) {
	return s.reader.commit(ctx, s.line, s.over(), changes)
}

// MakeDirectory implements recipes.Store.
func (s *Session) MakeDirectory(ctx context.Context, path string) error {
	return s.reader.makeDirectory(ctx, s.line, s.over(), path)
}

// commit does a transaction in nobody's name. A Hook sees the path of its first change.
func (r *Reader) commit(ctx context.Context, l *line, o over, changes []recipes.Change) ([]recipes.Node, error) {
	if len(changes) == 0 {
		return nil, nil
	}
	if err := fit(changes); err != nil {
		return nil, err
	}
	var nodes []recipes.Node
	var outcome error
	sent := false
	err := l.call(ctx, o, Operation{"Commit", changes[0].Path}, func() error {
		sent = true
		r.mu.Lock()
		defer r.mu.Unlock()
		nodes, outcome = r.view.ensemble.commit(changes)
		return outcome
	})
	switch {
	case err == nil:
		return nodes, nil
	case sent && !errors.Is(err, outcome) && !errors.Is(err, recipes.ErrOutcomeUnknown) && gone(ctx, o):
		return nil, fmt.Errorf("%w: %w", recipes.ErrOutcomeUnknown, err)
	}
	return nil, err
}

// gone says whether an operation was not waited for.
func gone(ctx context.Context, o over) bool {
	select {
	case <-ctx.Done():
		return true
	case <-o.done:
		return true
	default:
		return false
	}
}

// commit does the changes, or none of them. The ensemble is locked.
func (e *Ensemble) commit(changes []recipes.Change) ([]recipes.Node, error) {
	nodes := make([]recipes.Node, len(changes))
	err := e.Write(0, func(t *embedded.Transaction) (err error) {
		for i, change := range changes {
			if nodes[i], err = apply(t, change); err != nil {
				return &recipes.Refusal{Index: i, Err: err}
			}
		}
		return nil
	})
	return nodes, err
}

func apply(t *embedded.Transaction, change recipes.Change) (recipes.Node, error) {
	switch change.Kind {
	case recipes.KindCreate:
		mode := embedded.Persistent
		if change.Numbered {
			mode = embedded.PersistentSequential
		}
		_, _, err := t.Make(change.Path, change.Data, mode)
		return recipes.Node{}, err
	case recipes.KindSet:
		n, err := t.Set(change.Path, bytes.Clone(change.Data), change.Version)
		if err != nil {
			return recipes.Node{}, err
		}
		return n.Shown(), nil
	case recipes.KindDelete:
		return recipes.Node{}, t.Delete(change.Path, change.Version)
	case recipes.KindCheck:
		return recipes.Node{}, t.Check(change.Path, change.Version)
	}
	return recipes.Node{}, fmt.Errorf("change of kind %d", change.Kind)
}

// fit refuses changes that are too much for one request.
func fit(changes []recipes.Change) error {
	size := 17
	for _, change := range changes {
		if err := fits(change.Path, nil); err != nil {
			return err
		}
		size += 17 + len(change.Path)
		switch change.Kind {
		case recipes.KindCreate:
			size += 31 + len(change.Data) // with the access control list
		case recipes.KindSet:
			size += 4 + len(change.Data)
		}
	}
	if size > recipes.MostBytes {
		return fmt.Errorf("%w: %d", recipes.ErrTooLarge, size)
	}
	return nil
}

func (r *Reader) makeDirectory(ctx context.Context, l *line, o over, path string) error {
	return l.call(ctx, o, Operation{"MakeDirectory", path}, func() error {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.view.ensemble.MakeParents(path)
	})
}
