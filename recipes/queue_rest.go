package recipes

import (
	"sync"
	"time"
)

const (
	// longestRest is how long an item rests at most that was delivered in vain: a second after the second time, then twice as long each time.
	longestRest = 30 * time.Second
	// mostRests is how many items are remembered. Beyond, all are read anew.
	mostRests = 20_000
)

// Rests are what a sidecar knows of items that were delivered in vain, for all who take through it. The zero value knows nothing. Nil
// remembers nothing.
type Rests struct {
	mu    sync.Mutex
	items map[string]rest // by their paths
}

// A rest is what is known of one item.
type rest struct {
	version int32 // as often it was delivered
	until   time.Time
	taken   bool // when it was last looked for
}

// taken notes that a caller has an item: it rests from when it is seen to be free.
func (r *Rests) taken(path string) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	known := r.items[path]
	known.taken = true
	r.remember(path, known)
}

// remember is called with the lock held.
func (r *Rests) remember(path string, known rest) {
	if r.items == nil || len(r.items) >= mostRests {
		r.items = map[string]rest{}
	}
	r.items[path] = known
}

// until is until when an item rests, as far as is known.
func (r *Rests) until(path string) time.Time {
	if r == nil {
		return time.Time{}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if known := r.items[path]; !known.taken {
		return known.until
	}
	return time.Time{}
}

// rest is until when a free item rests, of which the node was read. It rests from its last delivery's end, where that is known, or else from its
// beginning; and once, whatever the clock of the ensemble.
func (r *Rests) rest(path string, node Node) time.Time {
	if node.Version < 2 {
		r.forget(path)
		return time.Time{}
	}
	if r == nil {
		r = &Rests{}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	known, before := r.items[path]
	if !before || known.taken || known.version != node.Version {
		left := min(time.Second<<min(node.Version-2, 10), longestRest)
		if !known.taken {
			left -= max(time.Since(node.Modified), 0)
		}
		known = rest{version: node.Version, until: time.Now().Add(left)}
		r.remember(path, known)
	}
	return known.until
}

func (r *Rests) forget(path string) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.items, path)
}
