package caller

import (
	"context"
	"time"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	"github.com/sidekeeper/sidekeeper/test/chaos/history"
)

// watchKeys watches all keys, or some, and begins again when the watch ends.
func (c *caller) watchKeys(ctx context.Context) {
	if c.order.Slot >= watchers {
		return
	}
	for pause(ctx, c.between(20*time.Millisecond, 100*time.Millisecond)) {
		watching := history.Event{Kind: history.Watching, Prefix: c.name("key")}
		watch := c.library.Config().WatchPrefix(ctx, watching.Prefix)
		if c.order.Slot%3 == 1 {
			watching = history.Event{Kind: history.Watching, Keys: []string{c.name("key/0"), c.name("key/1")}}
			watch = c.library.Config().Watch(ctx, watching.Keys[0], watching.Keys[1:]...)
		}
		op := c.begin(watching)
		for event, err := range watch {
			if err != nil {
				c.noteEnd(ctx, op, err)
				break
			}
			c.note(op, changesOf(event))
		}
	}
}

var configKinds = map[sidekeeper.ConfigEventKind]history.Kind{
	sidekeeper.ConfigState:   history.State,
	sidekeeper.ConfigSynced:  history.Synced,
	sidekeeper.ConfigChanged: history.Changed,
	sidekeeper.ConfigStale:   history.Lagging,
	sidekeeper.ConfigFresh:   history.Fresh,
}

func changesOf(event sidekeeper.ConfigEvent) history.Event {
	told := history.Event{Kind: configKinds[event.Kind]}
	for _, change := range event.Changes {
		told.Changes = append(told.Changes, history.Change{
			Key: change.Entry.Key, Value: string(change.Entry.Value), Version: change.Entry.Version,
			Revision: change.Entry.Revision, Created: change.Entry.CreatedRevision,
			Deleted: change.Deleted, Coalesced: change.Coalesced, Recreated: change.Recreated,
		})
	}
	return told
}
