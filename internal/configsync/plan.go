package configsync

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
)

// A step is one key that an import writes or deletes.
type step struct {
	action string // put or delete
	key    string
	value  []byte
	only   sidekeeper.Precondition // what was seen when it was planned
}

func (s step) size() int { return len(s.key) + len(s.value) }

// plan is what makes the stored keys of a prefix equal to the wanted ones: writes in the order of keys, then deletions in the
// opposite one, so that nothing lies below a key when it goes.
func plan(prefix string, stored []sidekeeper.Entry, wanted entries, prune bool) ([]step, error) {
	var steps []step
	missing := map[string][]byte{}
	for name, value := range wanted {
		missing[keyBelow(prefix, name)] = value
	}
	var gone []step
	for _, entry := range stored {
		value, keep := missing[entry.Key]
		delete(missing, entry.Key)
		only := sidekeeper.IfVersion(entry.Version)
		switch {
		case keep && !bytes.Equal(value, entry.Value):
			steps = append(steps, step{eventPut, entry.Key, value, only})
		case !keep && prune:
			gone = append(gone, step{action: actionDelete, key: entry.Key, only: only})
		}
	}
	for key, value := range missing {
		steps = append(steps, step{eventPut, key, value, sidekeeper.IfMissing()})
	}
	if err := refuseLoss(prefix, wanted, gone); err != nil {
		return nil, err
	}
	byKey := func(a, b step) int { return compareKeys(a.key, b.key) }
	slices.SortFunc(steps, byKey)
	slices.SortFunc(gone, byKey)
	slices.Reverse(gone)
	return append(steps, gone...), nil
}

const actionDelete = "delete"

// refuseLoss refuses to delete a key that wanted ones lie below: the ensemble does not.
func refuseLoss(prefix string, wanted entries, gone []step) error {
	for _, step := range gone {
		for _, name := range slices.SortedFunc(maps.Keys(wanted), compareKeys) {
			if key := keyBelow(prefix, name); strings.HasPrefix(key, step.key+"/") {
				return fmt.Errorf("%s cannot be deleted while %s lies below it: give it a value, or omit --prune", step.key, key)
			}
		}
	}
	return nil
}

// batches are the steps in commits that a sidecar takes, in their order. A step that is too large for a commit is alone.
func batches(steps []step) [][]step {
	var all [][]step
	size := 0
	for _, next := range steps {
		last := len(all) - 1
		if last < 0 || len(all[last]) == maxOperations || size+next.size() > maxCommitBytes {
			all, last, size = append(all, nil), last+1, 0
		}
		all[last] = append(all[last], next)
		size += next.size()
	}
	return all
}

// commitAll carries the steps out, and returns those that are done.
func commitAll(ctx context.Context, config *sidekeeper.Config, steps []step) (done []step, err error) {
	for _, batch := range batches(steps) {
		if batch[0].size() > maxCommitBytes {
			_, err = config.Put(ctx, batch[0].key, batch[0].value, batch[0].only)
		} else {
			err = commit(ctx, config, batch)
		}
		if err != nil {
			return done, err
		}
		done = append(done, batch...)
	}
	return done, nil
}

func commit(ctx context.Context, config *sidekeeper.Config, batch []step) error {
	var all sidekeeper.Commit
	for _, step := range batch {
		if step.action == actionDelete {
			all.Delete(step.key, step.only)
		} else {
			all.Put(step.key, step.value, step.only)
		}
	}
	_, err := config.Commit(ctx, &all)
	return err
}
