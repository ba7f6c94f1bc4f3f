package service

import (
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/sidekeeper/sidekeeper/internal/caller"
	"github.com/sidekeeper/sidekeeper/recipes"
)

// Broadcasts show what lies in the ensemble to all who watch them. A key is looked at by one goroutine, however many watch
// it, and by none once nobody does.
type broadcasts[K comparable, V any] struct {
	// begin returns how to look at a key; whatever it needs for that is given up when ctx ends.
	begin    func(ctx context.Context, key K) looking[V]
	ensemble Reachability

	mu   sync.Mutex
	open map[K]*broadcast[K, V]
}

// A looking reads a key and returns what to wait for before it is read again.
type looking[V any] func(ctx context.Context) (V, recipes.Changes, error)

// once makes an error of a panic.
func (l looking[V]) once(ctx context.Context) (view V, changes recipes.Changes, err error) {
	defer contain(&err)
	return l(ctx)
}

// A broadcast is where one key is shown.
type broadcast[K comparable, V any] struct {
	all      *broadcasts[K, V]
	key      K
	watchers int           // under the lock of all
	cancel   func()        // ends the looking
	done     chan struct{} // closed when it has ended

	mu      sync.Mutex
	shown   shown[V]
	changed chan struct{} // closed when something else is shown
}

// What a broadcast shows: the newest look, and whether it may be out of date.
type shown[V any] struct {
	view  V
	seen  bool  // whether there was a look
	stale bool  // the ensemble is out of contact, or was and has not been looked at since
	err   error // why the newest look failed, unless for want of contact with a view to show
}

func newBroadcasts[K comparable, V any](
	ensemble Reachability, look func(ctx context.Context, key K) (V, recipes.Changes, error),
) *broadcasts[K, V] {
	return newBroadcastsOf(ensemble, func(_ context.Context, key K) looking[V] {
		return func(ctx context.Context) (V, recipes.Changes, error) { return look(ctx, key) }
	})
}

// newBroadcastsOf is for things of which something is kept from one look to the next.
func newBroadcastsOf[K comparable, V any](
	ensemble Reachability, begin func(ctx context.Context, key K) looking[V],
) *broadcasts[K, V] {
	return &broadcasts[K, V]{begin: begin, ensemble: ensemble, open: map[K]*broadcast[K, V]{}}
}

// watch returns the broadcast of a key. Whoever watches must leave.
func (b *broadcasts[K, V]) watch(key K) *broadcast[K, V] {
	b.mu.Lock()
	defer b.mu.Unlock()
	found := b.open[key]
	if found == nil || found.hasFailed() { // what has failed is not the newcomer's
		ctx, cancel := context.WithCancel(context.Background()) //nolint:gosec // called by who leaves last
		found = &broadcast[K, V]{all: b, key: key, cancel: cancel, done: make(chan struct{}), changed: make(chan struct{})}
		b.open[key] = found
		go found.run(ctx)
	}
	found.watchers++
	return found
}

// leave ends the watching. The last who leaves waits until nobody looks any more.
func (b *broadcast[K, V]) leave() {
	if b.last() {
		b.cancel()
		<-b.done
	}
}

func (b *broadcast[K, V]) last() bool {
	b.all.mu.Lock()
	defer b.all.mu.Unlock()
	b.watchers--
	if b.watchers == 0 && b.all.open[b.key] == b {
		delete(b.all.open, b.key)
	}
	return b.watchers == 0
}

// hasFailed says whether the newest look ends the streams of those who watch.
func (b *broadcast[K, V]) hasFailed() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.shown.err != nil && !errors.Is(b.shown.err, recipes.ErrUnreachable)
}

// now is what is shown, with a channel that is closed when that has changed.
func (b *broadcast[K, V]) now() (shown[V], <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.shown, b.changed
}

// run looks, shows, waits for a change and starts over, until ctx ends.
func (b *broadcast[K, V]) run(ctx context.Context) {
	defer close(b.done)
	look := b.all.begin(ctx, b.key)
	for ctx.Err() == nil {
		reachable, contact := b.all.ensemble.Reachable()
		if !reachable {
			b.show(func(s *shown[V]) { s.stale = true })
		}
		view, changes, err := look.once(ctx)
		switch {
		case err == nil:
			b.show(func(s *shown[V]) { *s = shown[V]{view: view, seen: true, stale: !reachable} })
			_ = append(slices.Clip(changes), contact).Wait(ctx)
		case ctx.Err() == nil:
			b.show(func(s *shown[V]) { s.fail(err) })
			b.pause(ctx, contact)
		}
	}
}

// pause waits until it is worth to look again after a failure.
func (b *broadcast[K, V]) pause(ctx context.Context, contact <-chan struct{}) {
	ctx, cancel := context.WithTimeout(ctx, countdown)
	defer cancel()
	_ = recipes.Changes{contact}.Wait(ctx)
}

// fail notes a look that came to nothing. Without contact the last view goes on being shown.
func (s *shown[V]) fail(err error) {
	s.stale = true
	if !s.seen || !errors.Is(err, recipes.ErrUnreachable) {
		s.err = err
	}
}

func (b *broadcast[K, V]) show(change func(*shown[V])) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change(&b.shown)
	close(b.changed)
	b.changed = make(chan struct{})
}

// relay tells a stream what is shown, at once and whenever it has changed, and returns with what ends the stream.
func relay[K comparable, V any](b *broadcast[K, V], drain *drain, ended over, tell func(now shown[V]) error) error {
	for {
		now, changed := b.now()
		if now.err != nil {
			return now.err
		}
		if now.seen {
			if err := tell(now); err != nil {
				return err
			}
		}
		select {
		case <-changed:
		case <-ended.Done():
			return ended.why()
		case <-drain.notice:
			return errStopping
		}
	}
}

// A watchCount counts the nodes that are watched for those who watch groups, sets and keys, so that their number is bounded.
type watchCount struct {
	most   int
	shares *caller.Shares
	tell   func(sum int) // told how many they are

	mu    sync.Mutex
	nodes map[context.Context]int // by the context of who looks at them; they count until it ends
	sum   int
}

// note says how many nodes are watched in the course of a look for a caller: errWatchLimit if that makes too many.
func (w *watchCount) note(looking context.Context, identity string, nodes int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	more := nodes - w.nodes[looking]
	if w.sum+more > w.most {
		return limited(errWatchLimit, "max-watched", w.most)
	}
	if !w.shares.Add(identity, more) {
		return QuotaExceeded("watched_nodes", w.shares.Most(identity), identity, 0)
	}
	if _, known := w.nodes[looking]; !known {
		context.AfterFunc(looking, func() { w.forget(looking, identity) })
	}
	w.sum += more
	w.nodes[looking] = nodes
	w.tell(w.sum)
	return nil
}

func (w *watchCount) forget(looking context.Context, identity string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sum -= w.nodes[looking]
	w.shares.Add(identity, -w.nodes[looking])
	delete(w.nodes, looking)
	w.tell(w.sum)
}
