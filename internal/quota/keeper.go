package quota

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sidekeeper/sidekeeper/recipes"
)

// refreshed is how often quotas are read, if there are any: servers tell nobody when they have counted.
const refreshed = 5 * time.Second

// A Keeper knows the quotas of some directories and refuses what would exceed them. What seems to is looked at again first, so that only
// whoever comes close to a limit waits for that. A nil Keeper knows none.
type Keeper struct {
	directories []string

	mu     sync.Mutex
	quotas []*reckoned
}

// A reckoned is a quota as it was read, and what this sidecar has added since.
type reckoned struct {
	Quota

	added Amount
}

// NewKeeper makes a Keeper of what lies in the directories.
func NewKeeper(directories []string) *Keeper { return &Keeper{directories: directories} }

// Run keeps what the Keeper knows up to date until ctx ends. It asks for nothing while the ensemble has no quota.
func (k *Keeper) Run(ctx context.Context, tree recipes.Tree) {
	for ctx.Err() == nil {
		names, changed, err := tree.WatchChildren(ctx, Root)
		if err == nil {
			var quotas []Quota
			if quotas, err = Read(ctx, tree, k.directories...); err == nil {
				k.learn(quotas)
			}
		}
		var again <-chan time.Time
		if len(names) > 0 || err != nil && !errors.Is(err, recipes.ErrNoNode) {
			again = time.After(refreshed)
		}
		select {
		case <-again:
		case <-changed.Done():
		case <-ctx.Done():
		}
	}
}

func (k *Keeper) learn(quotas []Quota) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.quotas = nil
	for _, quota := range quotas {
		k.quotas = append(k.quotas, &reckoned{Quota: quota})
	}
}

// Admit refuses changes that would exceed a quota, with a *recipes.QuotaExceeded. What cannot be found out is left to the ensemble.
func (k *Keeper) Admit(ctx context.Context, tree recipes.Tree, changes ...recipes.Change) error {
	if k == nil {
		return nil
	}
	for _, quota := range k.near(changes) {
		if err := recheck(ctx, tree, quota, changes); err != nil {
			return err
		}
	}
	return nil
}

// IsNear says whether changes would exceed a quota, as far as is known. It waits for nothing.
func (k *Keeper) IsNear(changes ...recipes.Change) bool { return k != nil && len(k.near(changes)) > 0 }

// near are the paths whose quotas changes would exceed, as far as is known.
func (k *Keeper) near(changes []recipes.Change) (paths []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, quota := range k.quotas {
		more := growth(quota.Quota, changes)
		more.Nodes, more.Bytes = more.Nodes+quota.added.Nodes, more.Bytes+quota.added.Bytes
		if quota.exceeded(more) != nil {
			paths = append(paths, quota.Path)
		}
	}
	return paths
}

// Note counts changes that were carried out.
func (k *Keeper) Note(changes ...recipes.Change) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, quota := range k.quotas {
		more := growth(quota.Quota, changes)
		quota.added.Nodes += more.Nodes
		quota.added.Bytes += more.Bytes
	}
}

// Explain says which quota it was for which the ensemble has refused changes.
func (k *Keeper) Explain(ctx context.Context, tree recipes.Tree, changes ...recipes.Change) error {
	refused := &recipes.QuotaExceeded{Path: changes[0].Path}
	if k == nil {
		return refused
	}
	quotas, err := Read(ctx, tree, k.directories...)
	if err != nil {
		return refused
	}
	k.learn(quotas)
	for _, quota := range quotas {
		if more := growth(quota, changes); more == (Amount{}) {
			continue
		}
		if err := recheck(ctx, tree, quota.Path, changes); err != nil {
			return err
		}
	}
	return refused
}

// growth is what changes add to a quota at most: data that are replaced or deleted are not reckoned.
func growth(quota Quota, changes []recipes.Change) (more Amount) {
	for _, change := range changes {
		if !quota.covers(change.Path) {
			continue
		}
		switch change.Kind {
		case recipes.KindCreate:
			more.Nodes++
			more.Bytes += int64(len(change.Data))
		case recipes.KindSet:
			more.Bytes += int64(len(change.Data))
		case recipes.KindDelete:
			more.Nodes--
		}
	}
	return more
}

// recheck reads a quota, and the data that changes replace or delete.
func recheck(ctx context.Context, tree recipes.Tree, path string, changes []recipes.Change) error {
	quota, err := readOne(ctx, tree, path)
	if err != nil {
		return nil //nolint:nilerr // the ensemble decides
	}
	more := growth(quota, changes)
	made := map[string]int{}
	for _, change := range changes {
		switch {
		case !quota.covers(change.Path):
		case change.Kind == recipes.KindCreate:
			made[change.Path] = len(change.Data)
		case change.Kind == recipes.KindSet, change.Kind == recipes.KindDelete:
			size, mine := made[change.Path]
			if !mine {
				node, _ := tree.Get(ctx, change.Path) // of what is missing, nothing is replaced
				if size = len(node.Data); node.Owner != 0 && change.Kind == recipes.KindSet {
					size = len(change.Data) // marks of places and members, which end with their sessions, are not refused
				}
			}
			more.Bytes -= int64(size)
			made[change.Path] = len(change.Data)
		}
	}
	return quota.exceeded(more)
}
