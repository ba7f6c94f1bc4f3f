package service

import (
	"context"
	"strings"
	"sync"

	"google.golang.org/grpc"

	configv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/config/v1"
	holdv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/hold/v1"
	"github.com/sidekeeper/sidekeeper/internal/caller"
	"github.com/sidekeeper/sidekeeper/internal/outbox"
	"github.com/sidekeeper/sidekeeper/recipes"
)

// watchedKeys is what a watch is about: some keys, in order and joined by newlines, or all that begin with one. Each caller has a
// look of its own, since what is watched counts as its own.
type watchedKeys struct {
	keys     string
	below    bool
	identity string
}

// reflectKeys begins to look at keys for all who watch them.
func (c *configService) reflectKeys(ctx context.Context, keys watchedKeys) looking[*recipes.Mirror] {
	mirror := c.config.NewMirror(c.services.ensemble, recipes.Sought{
		Keys: strings.Split(keys.keys, "\n"), Below: keys.below, IsKey: isKey,
		Count: func(nodes int) error { return c.services.watched.note(ctx, keys.identity, nodes) },
	})
	context.AfterFunc(ctx, mirror.Close)
	return func(ctx context.Context) (*recipes.Mirror, recipes.Changes, error) {
		changes, err := mirror.Look(ctx)
		return mirror, changes, err
	}
}

func (c *configService) Watch(
	request *configv1.WatchRequest, stream grpc.ServerStreamingServer[configv1.WatchResponse],
) error {
	keys, err := parseWatched(request)
	if err != nil {
		return err
	}
	keepalive := &configv1.WatchResponse{Event: &configv1.WatchResponse_Keepalive{Keepalive: alive}}
	box, of, err := openWatch(request, stream, keepalive)
	if err != nil {
		return err
	}
	c.services.options.Events.KeyWatchBegun()
	defer c.services.options.Events.KeyWatchEnded()
	w := &keyWatch{asText: request.GetAsText(), box: box, over: of, pending: map[string]*keyNews{}}
	keys.identity = caller.Of(stream.Context()).Identity
	return w.run(c.broadcasts.watch(keys), c.services.drain)
}

// A keyWatch is one Watch stream: what it must tell, which it tells as its caller can take it.
type keyWatch struct {
	asText bool
	box    *outbox.Outbox[*configv1.WatchResponse]
	over   over

	mu        sync.Mutex
	begun     bool
	state     []*recipes.Entry // of the beginning, unsent
	synced    bool             // it was all sent, and that was told
	at        *recipes.News    // up to which pending goes
	pending   map[string]*keyNews
	order     []string // of pending
	stale     bool
	toldStale bool
}

// keyNews is what has become of a key: before is what the caller was told of it.
type keyNews struct{ before, after *recipes.Entry }

// run is the stream from the first look to its end.
func (w *keyWatch) run(shared *broadcast[watchedKeys, *recipes.Mirror], drain *drain) error {
	defer shared.leave()
	return relay(shared, drain, w.over, func(now shown[*recipes.Mirror]) error {
		if w.learn(now) {
			w.box.Put(topicPlace, w.compose)
		}
		return nil
	})
}

// learn takes over what the broadcast shows and says whether there is anything to tell.
func (w *keyWatch) learn(shown shown[*recipes.Mirror]) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.begun {
		w.begun = true
		w.state, w.at = shown.view.State()
	}
	for next := w.at.Next(); next != nil; next = next.Next() {
		w.at = next
		if known := w.pending[next.Key]; known != nil {
			known.after = next.After
			continue
		}
		w.pending[next.Key] = &keyNews{next.Before, next.After}
		w.order = append(w.order, next.Key)
	}
	w.stale = shown.stale
	return w.hasNews()
}

func (w *keyWatch) hasNews() bool { return !w.synced || len(w.order) > 0 || w.stale != w.toldStale }

// compose makes the next message, and has the one after it sent if there is one.
func (w *keyWatch) compose() (*configv1.WatchResponse, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	message := w.next()
	if message != nil && w.hasNews() {
		w.box.Put(topicPlace, w.compose)
	}
	return message, message != nil
}

// next is what to tell first: the state, that contact is lost, what has changed, that contact is back.
func (w *keyWatch) next() *configv1.WatchResponse {
	switch {
	case len(w.state) > 0:
		return &configv1.WatchResponse{Event: &configv1.WatchResponse_Entries{Entries: w.nextEntries()}}
	case !w.synced:
		w.synced = true
		return &configv1.WatchResponse{Event: &configv1.WatchResponse_Synced{Synced: &configv1.Synced{}}}
	case w.stale && !w.toldStale:
		w.toldStale = true
		return &configv1.WatchResponse{Event: &configv1.WatchResponse_Stale{Stale: &holdv1.Stale{}}}
	}
	if changes := w.nextChanges(); len(changes.GetChanges()) > 0 {
		return &configv1.WatchResponse{Event: &configv1.WatchResponse_Changes{Changes: changes}}
	}
	if w.toldStale && !w.stale {
		w.toldStale = false
		return &configv1.WatchResponse{Event: &configv1.WatchResponse_Fresh{Fresh: &configv1.Fresh{}}}
	}
	return nil
}

// longestPiece bounds a message, in bytes of keys and values, unless one entry is longer: so much is kept for each caller
// that does not read.
const longestPiece = 128 << 10

func (w *keyWatch) nextEntries() *configv1.Entries {
	piece := &configv1.Entries{}
	for size := 0; len(w.state) > 0; w.state = w.state[1:] {
		size += len(w.state[0].Key) + len(w.state[0].Value)
		if size > longestPiece && len(piece.GetEntries()) > 0 {
			break
		}
		piece.Entries = append(piece.Entries, entryOnWire(w.state[0], w.asText))
	}
	return piece
}

func (w *keyWatch) nextChanges() *configv1.Changes {
	piece := &configv1.Changes{}
	for size := 0; len(w.order) > 0; w.order = w.order[1:] {
		key := w.order[0]
		news := w.pending[key]
		size += len(key) + news.size()
		if size > longestPiece && len(piece.GetChanges()) > 0 {
			break
		}
		delete(w.pending, key)
		if change := news.onWire(key, w.asText); change != nil {
			piece.Changes = append(piece.Changes, change)
		}
	}
	return piece
}

func (n *keyNews) size() int {
	if n.after == nil {
		return 0
	}
	return len(n.after.Value)
}

// onWire is nil if the key is again as the caller was told.
func (n *keyNews) onWire(key string, asText bool) *configv1.Change {
	if n.after == nil {
		if n.before == nil {
			return nil
		}
		return &configv1.Change{Change: &configv1.Change_Deleted{Deleted: &configv1.Deleted{Key: key}}}
	}
	put := &configv1.Written{Entry: entryOnWire(n.after, asText)}
	told := int32(0)
	if n.before != nil {
		put.Recreated = n.before.Created != n.after.Created
		if !put.GetRecreated() {
			told = n.before.Version
		}
	}
	put.Coalesced = n.after.Version-told > 1
	return &configv1.Change{Change: &configv1.Change_Put{Put: put}}
}
