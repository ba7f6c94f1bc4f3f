package recipes

import (
	"context"
	"errors"
	"time"
)

// An Ousting is who asks for a member's end, why, and for how long the member's sidecar is left to it.
type Ousting struct {
	Replace bool // somebody else takes the member's place; otherwise it is removed
	By      string
	Reason  string
	Patience
}

// AwaitFree returns when the group has no member of this name.
func (g Group) AwaitFree(ctx context.Context, tree Tree, name string) error {
	_, changed, err := g.find(ctx, tree, name)
	for err == nil {
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		_, changed, err = tree.Watch(ctx, g.member(name))
	}
	if errors.Is(err, ErrNoNode) {
		return nil
	}
	return err
}

// Oust asks the member's sidecar to end it and returns when it is gone. If it is still there when the time is over, it is
// removed from outside, and forced says so: then the member may not have known in time. A member that is not ours is
// not asked. Whoever joins under the name in the meantime is let be.
func (g Group) Oust(ctx context.Context, store Store, name string, order Ousting) (forced bool, err error) {
	began := time.Now()
	node, _, err := g.find(ctx, store, name)
	if errors.Is(err, ErrNoNode) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	form, _ := decodeMember(node.Data)
	overdue, cancel := context.WithDeadline(ctx, began.Add(order.with(toldTimeout(form.Timeout))))
	defer cancel()
	return g.oust(ctx, overdue, store, name, node.Czxid, order)
}

// find reads a member that somebody has met. A tree that does not show it is made to catch up once.
func (g Group) find(ctx context.Context, tree Tree, name string) (Node, <-chan struct{}, error) {
	node, changed, err := tree.Watch(ctx, g.member(name))
	if !errors.Is(err, ErrNoNode) {
		return node, changed, err
	}
	if err := tree.CatchUp(ctx); err != nil {
		return Node{}, nil, err
	}
	return tree.Watch(ctx, g.member(name))
}

// oust returns when this incarnation is gone. An update by the member may overwrite what it is asked, so it is asked after
// every change.
func (g Group) oust(
	ctx, overdue context.Context, store Store, name string, incarnation int64, order Ousting,
) (forced bool, err error) {
	for {
		changed, err := g.ask(ctx, store, name, incarnation, order)
		if errors.Is(err, ErrNoNode) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false, context.Cause(ctx)
		case <-overdue.Done():
			return g.remove(ctx, store, name, incarnation)
		}
	}
}

// ask writes into the member's node what is asked of it, unless that stands there or the node is not ours, and returns what
// tells of a change. ErrNoNode if this incarnation is gone.
func (g Group) ask(
	ctx context.Context, store Store, name string, incarnation int64, order Ousting,
) (changed <-chan struct{}, _ error) {
	var failure error
	for range maxAttempts {
		node, changed, err := store.Watch(ctx, g.member(name))
		switch {
		case err != nil:
			return nil, err
		case node.Czxid != incarnation:
			return nil, ErrNoNode
		}
		form, ours := decodeMember(node.Data)
		if !ours || form.End != nil {
			return changed, nil
		}
		form.End = &endMark{Replaced: order.Replace, By: order.By, Reason: order.Reason}
		_, failure = store.Commit(ctx, Set(g.member(name), form.encode(), node.Version))
		if failure != nil && !isMoved(failure) && !errors.Is(failure, ErrOutcomeUnknown) {
			return nil, failure
		}
		if err := store.CatchUp(ctx); err != nil {
			return nil, errors.Join(failure, err)
		}
	}
	return nil, failure
}

// remove deletes the node of this incarnation from outside. A version alone does not tell incarnations apart, so the
// node is read just before. After a lost reply it counts as forced if the node is gone.
func (g Group) remove(ctx context.Context, store Store, name string, incarnation int64) (forced bool, err error) {
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
