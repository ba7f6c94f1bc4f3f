package recipes

import (
	"context"
	"errors"
	"path"
)

// ErrBarrierInUse means that callers stand at the double barrier of this name.
var ErrBarrierInUse = errors.New("callers stand at the double barrier")

// Barrier is a node, at which callers wait for as long as it is there: Curator's DistributedBarrier and kazoo's Barrier. Or it is a double
// barrier, at which a number of callers begin together and end together: Curator's DistributedDoubleBarrier, kazoo's DoubleBarrier and that of
// ZooKeeper's manual. See Entrant.
type Barrier struct {
	Path string
}

// Set sets the barrier. It is as good if it is set. ErrBarrierInUse.
func (b Barrier) Set(ctx context.Context, store Store) error {
	return b.write(ctx, store, func(found Node, there bool) []Change {
		set := Create(b.Path, []byte{})
		switch {
		case !there:
			return []Change{set}
		case found.Bare: // the directory of a double barrier, which the ensemble removes by itself
			return []Change{Delete(b.Path, found.Version), set}
		}
		return nil
	})
}

// Remove removes the barrier. It is as good if it is not set. ErrBarrierInUse.
func (b Barrier) Remove(ctx context.Context, store Store) error {
	return b.write(ctx, store, func(found Node, there bool) []Change {
		if !there {
			return nil
		}
		return []Change{Delete(b.Path, found.Version)}
	})
}

// write has done to the barrier's node, as it is, what changes says, until that is nothing.
func (b Barrier) write(ctx context.Context, store Store, changes func(found Node, there bool) []Change) error {
	var failure error
	for range maxAttempts {
		if err := store.CatchUp(ctx); err != nil {
			return errors.Join(failure, err)
		}
		found, err := store.Get(ctx, b.Path)
		if err != nil && !errors.Is(err, ErrNoNode) {
			return errors.Join(failure, err)
		}
		wanted := changes(found, err == nil)
		if wanted == nil {
			return nil
		}
		_, failure = store.Commit(ctx, wanted...)
		switch {
		case failure == nil:
			return nil
		case errors.Is(failure, ErrNotEmpty):
			failure = b.clear(ctx, store)
		case errors.Is(failure, ErrNoNode) && wanted[0].Kind == KindCreate:
			failure = store.MakeDirectory(ctx, path.Dir(b.Path))
		}
		if failure != nil && !isMoved(failure) && !errors.Is(failure, ErrOutcomeUnknown) {
			return failure
		}
	}
	return failure
}

// clear removes what a round has left behind at a double barrier. ErrBarrierInUse if callers stand there.
func (b Barrier) clear(ctx context.Context, store Store) error {
	if err := store.CatchUp(ctx); err != nil {
		return err
	}
	ready, err := store.Get(ctx, b.ready()) // before the list: a caller that has entered since has written it anew
	if errors.Is(err, ErrNoNode) {
		return ErrBarrierInUse
	}
	names, listing := store.Children(ctx, b.Path)
	switch {
	case err != nil || listing != nil:
		return errors.Join(err, listing)
	case len(names) != 1 || names[0] != readyName:
		return ErrBarrierInUse
	}
	_, err = store.Commit(ctx, Delete(b.ready(), ready.Version))
	return err
}

// BarrierState is what stands at a barrier.
type BarrierState struct {
	Set     bool // it is a barrier, and set
	Present int  // how many stand at the double barrier
	Inside  int  // of these, until they leave
}

// State looks at the barrier, or at the double barrier. Where there is none, no caller stands. A node with children is a double barrier, even if
// it has data: so does Curator make it.
func (b Barrier) State(ctx context.Context, tree Tree) (BarrierState, error) {
	listed, err := childrenNamed(tree.Children(ctx, b.Path))
	if err != nil {
		return BarrierState{}, err
	}
	if len(listed) == 0 {
		node, err := tree.Get(ctx, b.Path)
		if errors.Is(err, ErrNoNode) {
			return BarrierState{}, nil
		}
		return BarrierState{Set: err == nil && !node.Bare}, err
	}
	present := entrants(listed)
	ready, err := tree.Get(ctx, b.ready())
	if err != nil && !errors.Is(err, ErrNoNode) {
		return BarrierState{}, err
	}
	inside, _, err := b.before(ctx, tree, present, ready.Mzxid)
	return BarrierState{Present: len(present), Inside: len(inside)}, err
}

// Await returns when the barrier is not set, or was not at a moment since the call. It calls isSet once if it must wait.
func (b Barrier) Await(ctx context.Context, tree Tree, isSet func()) error {
	if err := tree.CatchUp(ctx); err != nil {
		return err
	}
	for first := int64(0); ; {
		node, changed, err := tree.Watch(ctx, b.Path)
		switch {
		case errors.Is(err, ErrNoNode), err == nil && first != 0 && node.Czxid != first:
			return nil
		case err != nil:
			return err
		case first == 0:
			first = node.Czxid
			isSet()
		}
		if err := changed.Await(ctx); err != nil {
			return err
		}
	}
}
