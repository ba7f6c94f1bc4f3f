package recipes

import (
	"context"
	"errors"
	"path"
	"time"
)

// setClock sets the node of a clock. It returns the ensemble's time, which is later than all that was read before, and the version of the node
// then. Others may set the node at the same moment: what the answer tells is the time of this very write.
func setClock(ctx context.Context, store Store, clock string) (time.Time, int32, error) {
	for {
		nodes, err := store.Commit(ctx, Set(clock, []byte{}, -1))
		if err == nil {
			return nodes[0].Modified, nodes[0].Version, nil
		}
		if errors.Is(err, ErrNoNode) {
			if err = store.MakeDirectory(ctx, path.Dir(clock)); err == nil {
				_, err = store.Commit(ctx, Create(clock, []byte{}))
			}
		}
		if err != nil && !errors.Is(err, ErrExists) {
			return time.Time{}, 0, unsent(err)
		}
	}
}
