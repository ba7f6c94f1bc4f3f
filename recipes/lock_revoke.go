package recipes

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"time"
)

// maxAttempts bounds how often a mark is written whose reply was lost, or which another program has overtaken.
const maxAttempts = 8

// ErrNoProcess means that a claim holds the lock, which no process can be asked to release.
var ErrNoProcess = errors.New("a claim holds the lock: there is no process to ask")

// Revoke asks every holder to let go, and returns how many it asked. With a grace, holders that are Sidekeeper's are ended
// by force when it is over. Claims have no process that could be asked: ErrNoProcess if no other contender holds the lock. ErrOutcomeUnknown if
// a reply was lost: asking again is safe.
func (l Lock) Revoke(ctx context.Context, store Store, by, reason string, grace *time.Duration) (asked int, err error) {
	if err := store.CatchUp(ctx); err != nil { // the list then has all that hold the lock by now
		return 0, err
	}
	contenders, _, err := l.queue(ctx, store)
	if err != nil {
		return 0, err
	}
	var denied error
	for _, holder := range contenders.holders() {
		if holder.claims {
			denied = cmp.Or(denied, ErrNoProcess)
			continue
		}
		_, err := l.ask(ctx, store, holder, Revocation{By: by, Reason: reason, Grace: grace}, 0)
		switch {
		case err == nil:
			asked++
		case errors.Is(err, ErrDenied): // which keeps no other from being asked
			denied = err
		case !errors.Is(err, ErrNoNode):
			return asked, err
		}
	}
	if asked > 0 && errors.Is(denied, ErrNoProcess) {
		denied = nil
	}
	return asked, denied
}

// Break ends the hold, or the wait, of the contender with this fencing token, and returns when its node is gone. The
// contender is asked first; when the time of force is over, counted from when that stands in the node, the node is removed from outside,
// and forced says so: then the holder may not have known in time. ErrTokenMismatch if there is no such contender.
func (l Lock) Break(ctx context.Context, store Store, token int64, by, reason string, force ForceAfter) (forced bool, err error) {
	contender, err := l.find(ctx, store, token)
	if err != nil {
		return false, err
	}
	err = errOverwritten
	for errors.Is(err, errOverwritten) {
		var marked []byte
		var version int32
		marked, err = l.ask(ctx, store, contender, Revocation{By: by, Reason: reason, Break: true}, token)
		if err == nil {
			version, err = l.awaitRemoval(ctx, store, contender, token, marked, force)
		}
		if err == nil {
			forced, err = l.remove(ctx, store, contender, version)
		}
	}
	if errors.Is(err, ErrNoNode) {
		return false, nil
	}
	return forced, err
}

// ask marks one contender's node, unless the mark says so already, and returns the data with the mark. ErrNoNode if the node is
// gone, or if it is another than token's, where that is not 0.
func (l Lock) ask(ctx context.Context, store Store, c child, asked Revocation, token int64) (marked []byte, _ error) {
	var failure error
	for range maxAttempts {
		node, err := store.Get(ctx, l.child(c))
		if err != nil {
			return nil, err
		}
		if token != 0 && node.Czxid != token {
			return nil, ErrNoNode
		}
		before := node.Data
		if c.claims && !isOurs(before) { // what another client has written there says neither that it ends, nor for how long it counts
			before = About{Timeout: claimTimeout}.encode()
		}
		marked := asked.mark(before)
		if bytes.Equal(marked, node.Data) {
			return marked, nil
		}
		_, failure = store.Commit(ctx, Set(l.child(c), marked, node.Version))
		if !errors.Is(failure, ErrBadVersion) && !errors.Is(failure, ErrOutcomeUnknown) {
			return marked, failure
		}
		if err := store.CatchUp(ctx); err != nil {
			return nil, errors.Join(failure, err)
		}
	}
	return nil, failure
}

// find looks for the contender with a fencing token. A tree that does not show it yet is made to catch up once.
func (l Lock) find(ctx context.Context, tree Tree, token int64) (child, error) {
	c, err := l.search(ctx, tree, token)
	if !errors.Is(err, ErrTokenMismatch) {
		return c, err
	}
	if err := tree.CatchUp(ctx); err != nil {
		return child{}, err
	}
	return l.search(ctx, tree, token)
}

func (l Lock) search(ctx context.Context, tree Tree, token int64) (child, error) {
	contenders, _, err := l.queue(ctx, tree)
	if err != nil {
		return child{}, err
	}
	none := ErrTokenMismatch
	for _, c := range contenders {
		node, err := tree.Get(ctx, l.child(c))
		switch {
		case errors.Is(err, ErrNoNode):
		case errors.Is(err, ErrDenied): // it may be this one, unless another one is
			none = err
		case err != nil:
			return child{}, err
		case node.Czxid == token:
			return c, nil
		}
	}
	return child{}, none
}

// errOverwritten means that a contender may not have been asked all the time.
var errOverwritten = errors.New("asked no longer")

// awaitRemoval returns when the time is over, with the version of the data in which the contender was asked until then; ErrNoNode when
// its node is gone, or errOverwritten when another program has overwritten that it was to end. A program that writes on top of that in our form,
// and knows of it, leaves it standing; a foreign form says no more than that a contender wants the lock, and a holder of ours answers it by
// writing its own. When the time is over it looks once more, at all that had been committed by then.
func (l Lock) awaitRemoval(
	ctx context.Context, tree Tree, c child, token int64, asked []byte, force ForceAfter,
) (version int32, _ error) {
	about, _ := aboutIn(asked)
	forceAfter := force.with(about.Timeout)
	said := revocationIn(asked)
	timer := time.NewTimer(forceAfter)
	defer timer.Stop()
	overdue := false
	for marked := int32(-1); ; {
		node, changed, err := tree.Watch(ctx, l.child(c))
		switch {
		case err != nil:
			return 0, err
		case node.Czxid != token:
			return 0, ErrNoNode
		case said.Break && (!revocationIn(node.Data).Break || marked >= 0 && node.Version > marked+1), !said.Break && isOurs(node.Data):
			return 0, errOverwritten
		case overdue:
			return node.Version, nil
		case marked < 0:
			timer.Reset(forceAfter)
		}
		marked = node.Version
		select {
		case <-changed.Done():
		case <-timer.C:
			overdue = true
			if err := tree.CatchUp(ctx); err != nil {
				return 0, err
			}
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
}

// remove deletes the contender's node from outside, if its data are still of this version: errOverwritten otherwise. After a lost
// reply it counts as forced if the node is gone.
func (l Lock) remove(ctx context.Context, store Store, c child, version int32) (forced bool, err error) {
	for range maxAttempts {
		_, err = store.Commit(ctx, Delete(l.child(c), version))
		if !errors.Is(err, ErrOutcomeUnknown) {
			break
		}
		forced = true
		if err := store.CatchUp(ctx); err != nil {
			return false, errors.Join(ErrOutcomeUnknown, err)
		}
	}
	switch {
	case errors.Is(err, ErrNoNode):
		return forced, nil
	case errors.Is(err, ErrBadVersion):
		return false, errOverwritten
	}
	return err == nil, err
}
