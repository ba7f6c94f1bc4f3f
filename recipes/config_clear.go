package recipes

import (
	"context"
	"errors"
)

// mostDeletions is how many nodes are deleted in one transaction.
const mostDeletions = 100

// mostClearings is how often DeleteAll begins anew when others go on writing.
const mostClearings = 100

// DeleteAll deletes a key with all keys below it, not in one transaction, and tells how many it has deleted, also with an
// error. ErrNoKey if there was none. What is put meanwhile may stay; ErrKeyHasChildren if others put more and more.
func (c Config) DeleteAll(ctx context.Context, store Store, key string) (deleted int, err error) {
	for range mostClearings {
		if err := store.CatchUp(ctx); err != nil {
			return deleted, unsent(err)
		}
		found, err := deletionsBelow(ctx, store, c.path(key))
		if err != nil {
			return deleted, unsent(err)
		}
		done, finished, err := deleteEach(ctx, store, found)
		deleted += done
		if err != nil || finished {
			if err == nil && deleted == 0 {
				err = ErrNoKey
			}
			return deleted, err
		}
	}
	return deleted, ErrKeyHasChildren
}

// A plannedDeletion is a node that is to be deleted.
type plannedDeletion struct {
	deletion Change
	isKey    bool
}

// deletionsBelow finds a node and all below it, from the bottom up.
func deletionsBelow(ctx context.Context, tree Tree, path string) ([]plannedDeletion, error) {
	seen, err := readState(ctx, tree, path)
	if err != nil || !seen.there {
		return nil, err
	}
	var names []string
	if seen.node.Children != 0 {
		if names, err = tree.Children(ctx, path); err != nil && !errors.Is(err, ErrNoNode) {
			return nil, err
		}
	}
	var found []plannedDeletion
	for _, name := range names {
		below, err := deletionsBelow(ctx, tree, path+"/"+name)
		if err != nil {
			return nil, err
		}
		found = append(found, below...)
	}
	return append(found, plannedDeletion{Delete(path, seen.node.Version), seen.isKey()}), nil
}

// deleteEach deletes nodes and counts the keys among them. It is not finished if others have changed some of them.
func deleteEach(ctx context.Context, store Store, found []plannedDeletion) (keys int, finished bool, _ error) {
	for len(found) > 0 {
		some := found[:min(len(found), mostDeletions)]
		found = found[len(some):]
		changes, among := make([]Change, len(some)), 0
		for i, node := range some {
			changes[i] = node.deletion
			if node.isKey {
				among++
			}
		}
		_, err := store.Commit(ctx, changes...)
		if isOvertaken(err) {
			return keys, false, nil
		}
		if err != nil {
			return keys, false, err
		}
		keys += among
	}
	return keys, true, nil
}
