package recipes

import (
	"context"
	"errors"
)

// A nodeState is what a look at a key's path has shown.
type nodeState struct {
	node  Node
	there bool // whether there is a node
}

func readState(ctx context.Context, tree Tree, path string) (nodeState, error) {
	node, err := tree.Get(ctx, path)
	if errors.Is(err, ErrNoNode) {
		return nodeState{}, nil
	}
	return nodeState{node, err == nil}, err
}

// isKey says whether the path is one of a key.
func (s nodeState) isKey() bool { return s.there && !s.node.Bare }

// meets says whether the key meets a precondition.
func (s nodeState) meets(require Precondition) bool {
	switch require.Demand {
	case DemandVersion:
		return s.isKey() && s.node.Version == require.Version
	case DemandMissing:
		return !s.isKey()
	case DemandExists:
		return s.isKey()
	default:
		return true
	}
}

// plan makes the changes of one operation, such that the ensemble refuses them unless what was seen is still so. deleted are
// the paths that the same transaction deletes before.
func (e *step) plan(ctx context.Context, tree Tree, seen nodeState, deleted map[string]bool) ([]Change, error) {
	switch {
	case e.Action == ActionDelete && !seen.isKey():
		return nil, e.failure(ErrNoKey, seen)
	case !seen.meets(e.Require):
		return nil, e.failure(ErrPrecondition, seen)
	case e.Action == ActionPut:
		return e.planPut(seen), nil
	case e.Action == ActionCheck:
		return e.planCheck(seen), nil
	}
	below, err := e.planBelow(ctx, tree, seen, deleted)
	if errors.Is(err, ErrKeyHasChildren) {
		return nil, e.failure(err, seen)
	}
	return append(below, Delete(e.path, seen.node.Version)), err
}

// planPut writes the value.
func (e *step) planPut(seen nodeState) []Change {
	value := e.Value
	if value == nil {
		value = []byte{} // without data, it would be no key
	}
	if !seen.there { // it is made and then set, since only a Set tells what it has made of a node
		e.set = e.first + 1
		return []Change{Create(e.path, []byte{}), Set(e.path, value, 0)}
	}
	e.set = e.first
	version := seen.node.Version
	switch hopeless := e.hopeless(seen); {
	case !seen.node.Bare && !hopeless:
		return []Change{Set(e.path, value, version)}
	case hopeless:
		version = -1
	}
	keep := Create(e.path+"/"+pin, nil)
	if e.pinned {
		keep = Check(keep.Path, -1)
	}
	return []Change{Set(e.path, value, version), keep}
}

// hopeless says whether a key is written so often by others that the version cannot be met. If any will do it is written
// nevertheless: with its pin it is kept, even if another program has put a container in its place.
func (e *step) hopeless(seen nodeState) bool {
	return e.beaten > 2 && e.Require.Demand == DemandNothing && seen.node.Owner == 0
}

// planCheck has the ensemble see that nothing has changed. That a node is missing is seen by making it.
func (e *step) planCheck(seen nodeState) []Change {
	if !seen.there {
		return []Change{Create(e.path, nil), Delete(e.path, -1)}
	}
	return []Change{Check(e.path, seen.node.Version)}
}

// planBelow deletes what lies in a key's node and is no key: its pin, and containers that are empty.
func (e *step) planBelow(ctx context.Context, tree Tree, seen nodeState, deleted map[string]bool) ([]Change, error) {
	if seen.node.Children == 0 && !e.crowded {
		return nil, nil
	}
	return clearing(ctx, tree, e.path, deleted)
}

// clearing deletes what lies in a node, from the bottom up, save for what is deleted before. ErrKeyHasChildren if there is a
// key in it.
func clearing(ctx context.Context, tree Tree, path string, deleted map[string]bool) ([]Change, error) {
	names, err := tree.Children(ctx, path)
	if err != nil && !errors.Is(err, ErrNoNode) {
		return nil, err
	}
	var changes []Change
	for _, name := range names {
		below := path + "/" + name
		if deleted[below] {
			continue
		}
		seen, err := readState(ctx, tree, below)
		switch {
		case err != nil:
			return nil, err
		case seen.isKey():
			return nil, ErrKeyHasChildren
		case !seen.there:
			continue
		}
		inside, err := clearing(ctx, tree, below, deleted)
		if err != nil {
			return nil, err
		}
		changes = append(append(changes, inside...), Delete(below, seen.node.Version))
	}
	return changes, nil
}

func (e *step) failure(err error, seen nodeState) error {
	return &Failure{Operation: e.index, Err: err, Key: e.Key, Exists: seen.isKey(), Version: seen.node.Version}
}
