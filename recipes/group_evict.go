package recipes

import (
	"context"
	"errors"
	"time"
)

// An Eviction is who asks for a member's end, why, and for how long the member's sidecar is left to it.
type Eviction struct {
	Replace bool // another caller takes the member's place; otherwise it is removed
	By      string
	Reason  string
	ForceAfter
}

// WatchFree returns a signal that is given when the group may have no member of this name any more; nil if it has none.
func (g Group) WatchFree(ctx context.Context, tree Tree, name string) (*Signal, error) {
	_, changed, err := g.find(ctx, tree, name)
	if errors.Is(err, ErrNoNode) {
		return nil, nil //nolint:nilnil // nothing stands in the way
	}
	return changed, err
}

// Evict asks the member's sidecar to end it and returns when it is gone. If it is still there when the time is over, it is
// removed from outside, and forced says so: then the member may not have known in time. The time is counted from when what is
// asked stands in the member's node. A member that is not ours is not asked. One that joins under the name in the meantime is let be.
func (g Group) Evict(ctx context.Context, store Store, name string, order Eviction) (forced bool, err error) {
	node, _, err := g.find(ctx, store, name)
	if errors.Is(err, ErrNoNode) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	form, _ := decodeMember(node.Data)
	return g.evict(ctx, store, name, node.Czxid, order, &evictionDeadline{after: order.with(toldTimeout(form.Timeout))})
}

// An evictionDeadline is for how long a member that is asked to go is left to its sidecar.
type evictionDeadline struct {
	after time.Duration
	over  time.Time // zero before the member is asked
	mark  int32     // the version of its data in which it was asked last
}

// stands notes that the member is asked to go in this version of its data. The time begins anew unless it was asked all the while:
// a program that writes on top of that, and knows of it, leaves it standing.
func (u *evictionDeadline) stands(mark int32) {
	if u.over.IsZero() || mark != u.mark && mark != u.mark+1 {
		u.over = time.Now().Add(u.after)
	}
	u.mark = mark
}

// find reads a member that a caller has met. What the tree shows may be no member yet, or an earlier one of its name.
func (g Group) find(ctx context.Context, tree Tree, name string) (Node, *Signal, error) {
	if err := tree.CatchUp(ctx); err != nil {
		return Node{}, nil, err
	}
	return tree.Watch(ctx, g.member(name))
}

// evict returns when this incarnation is gone. Another program may overwrite what the member is asked, so it is asked after every change.
func (g Group) evict(
	ctx context.Context, store Store, name string, incarnation int64, order Eviction, until *evictionDeadline,
) (forced bool, err error) {
	overdue := time.NewTimer(until.after)
	defer overdue.Stop()
	for {
		mark, changed, err := g.ask(ctx, store, name, incarnation, order)
		if errors.Is(err, ErrNoNode) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		until.stands(mark)
		overdue.Reset(time.Until(until.over))
		select {
		case <-changed.Done():
		case <-ctx.Done():
			return false, context.Cause(ctx)
		case <-overdue.C:
			if forced, err := g.remove(ctx, store, name, incarnation, until); !errors.Is(err, errOverwritten) {
				return forced, err
			}
		}
	}
}

// ask writes into the member's node what is asked of it, unless that stands there or the node is not ours, and returns what
// tells of a change, with the version of the data in which it stands; 0 if the node is not ours. ErrNoNode if this incarnation is gone.
func (g Group) ask(
	ctx context.Context, store Store, name string, incarnation int64, order Eviction,
) (mark int32, changed *Signal, _ error) {
	var failure error
	for range maxAttempts {
		node, changed, err := store.Watch(ctx, g.member(name))
		switch {
		case err != nil:
			return 0, nil, err
		case node.Czxid != incarnation:
			return 0, nil, ErrNoNode
		}
		form, ours := decodeMember(node.Data)
		switch {
		case !ours:
			return 0, changed, nil
		case form.End != nil:
			return node.Version, changed, nil
		}
		form.Form, form.End = currentForm, &endRequest{Replaced: order.Replace, By: order.By, Reason: order.Reason}
		_, failure = store.Commit(ctx, Set(g.member(name), encode(form), node.Version))
		if failure != nil && !isMoved(failure) && !errors.Is(failure, ErrOutcomeUnknown) {
			return 0, nil, failure
		}
		if err := store.CatchUp(ctx); err != nil {
			return 0, nil, errors.Join(failure, err)
		}
	}
	return 0, nil, failure
}

// remove deletes the node of this incarnation from outside. A version alone does not tell incarnations apart, so the
// node is read just before. errOverwritten if it may not have been asked to go all the while. After a lost reply it counts as forced
// if the node is gone.
func (g Group) remove(
	ctx context.Context, store Store, name string, incarnation int64, until *evictionDeadline,
) (forced bool, err error) {
	for range maxAttempts {
		if err := store.CatchUp(ctx); err != nil {
			return false, err
		}
		node, failure := store.Get(ctx, g.member(name))
		if errors.Is(failure, ErrNoNode) || failure == nil && node.Czxid != incarnation {
			return forced, nil
		}
		if failure != nil {
			return false, failure
		}
		form, ours := decodeMember(node.Data)
		switch {
		case ours && (form.End == nil || node.Version > until.mark+1), !ours && until.mark != 0: // a mark of 0 was none
			return false, errOverwritten
		}
		_, err = store.Commit(ctx, Delete(g.member(name), node.Version))
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, ErrOutcomeUnknown):
			forced = true
		case !isMoved(err):
			return false, err
		}
	}
	return false, err
}
