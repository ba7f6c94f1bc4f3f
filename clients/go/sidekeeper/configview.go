package sidekeeper

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	configv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/config/v1"
)

// A ConfigView is a copy of a part of the configuration that follows it, also across restarts of the sidecar, and says how old it may
// be. It is safe for use by many goroutines at once; its holder must Close it.
type ConfigView struct {
	clock    clock
	stop     context.CancelFunc
	followed chan struct{} // closed when nothing follows any more

	mu         sync.Mutex
	entries    map[string]Entry // nil until all is known
	stale      bool
	staleSince time.Duration
	heard      time.Duration // when the stream's newest message came; 0 if its sidecar is not timed
	changed    chan struct{} // closed and made anew when something changes
	err        error         // why it follows no more
}

// View copies all keys at and below a prefix of whole segments, all if it is empty, and returns when the copy is complete. The end of
// ctx ends the waiting, and not a view that View has returned.
func (c *Config) View(ctx context.Context, prefix string) (*ConfigView, error) {
	following, stop := context.WithCancel(context.WithoutCancel(ctx))
	v := &ConfigView{clock: c.client.clock, stop: stop, followed: make(chan struct{}), changed: make(chan struct{})}
	go func() {
		defer close(v.followed)
		v.follow(following, c, prefix)
	}()
	for {
		changed := v.Changed()
		if complete, err := v.complete(); complete {
			return v, nil
		} else if err != nil {
			v.Close()
			return nil, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			v.Close()
			return nil, context.Cause(ctx)
		}
	}
}

func (v *ConfigView) complete() (bool, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.entries != nil, v.err
}

// follow follows until ctx ends, or what there is no sense in repeating.
func (v *ConfigView) follow(ctx context.Context, c *Config, prefix string) {
	var state map[string]Entry // which is not complete yet
	open := func() iter.Seq2[ConfigEvent, error] {
		state, v.heard = nil, 0
		return c.watch(ctx, &configv1.WatchRequest{Prefix: prefix}, func() { v.heard = v.clock.now() })
	}
	for event, err := range reopened(ctx, open, v.outdate) {
		if err != nil {
			v.update(func() { v.err = err })
			return
		}
		state = v.take(event, state)
	}
}

// take takes in an event, and returns what is known of a state that is not complete yet.
func (v *ConfigView) take(event ConfigEvent, state map[string]Entry) map[string]Entry {
	switch event.Kind {
	case ConfigState:
		if state == nil {
			state = map[string]Entry{}
		}
		apply(state, event.Changes)
		return state
	case ConfigSynced:
		if state == nil {
			state = map[string]Entry{}
		}
		v.update(func() { v.entries, v.stale = state, false })
	case ConfigChanged:
		v.update(func() { apply(v.entries, event.Changes) })
	case ConfigStale:
		v.outdate()
	case ConfigFresh:
		v.update(func() { v.stale = false })
	}
	return nil
}

func apply(state map[string]Entry, changes []ConfigChange) {
	for _, change := range changes {
		if change.Deleted {
			delete(state, change.Entry.Key)
		} else {
			state[change.Entry.Key] = change.Entry
		}
	}
}

// outdate notes that the view does not follow: since the sidecar was last heard, if that is known.
func (v *ConfigView) outdate() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.stale {
		v.stale, v.staleSince = true, cmp.Or(v.heard, v.clock.now())
	}
}

// update changes what is known, and says that it has.
func (v *ConfigView) update(change func()) {
	v.mu.Lock()
	defer v.mu.Unlock()
	change()
	close(v.changed)
	v.changed = make(chan struct{})
}

// Get is the entry of a key, if there is one.
func (v *ConfigView) Get(key string) (Entry, bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	entry, there := v.entries[key]
	return entry, there
}

// All are the entries as they are now, in the order of keys.
func (v *ConfigView) All() iter.Seq2[string, Entry] {
	v.mu.Lock()
	entries := maps.Clone(v.entries)
	v.mu.Unlock()
	return func(yield func(string, Entry) bool) {
		for _, key := range slices.Sorted(maps.Keys(entries)) {
			if !yield(key, entries[key]) {
				return
			}
		}
	}
}

// Age says for how long the sidecar or the ensemble has been out of contact; 0 while the view follows. The view notices a silent sidecar
// after SilenceTimeout, and counts from when it last heard of it.
func (v *ConfigView) Age() time.Duration {
	v.mu.Lock()
	defer v.mu.Unlock()
	if !v.stale {
		return 0
	}
	return max(v.clock.now()-v.staleSince, 1)
}

// Changed is closed when something changes after it was asked for.
func (v *ConfigView) Changed() <-chan struct{} {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.changed
}

// Err says why the view follows no more; nil while it does.
func (v *ConfigView) Err() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.err
}

// Close ends the view. What it shows stays.
func (v *ConfigView) Close() {
	v.stop()
	<-v.followed
}
