package service

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"sync"
	"time"
)

const (
	idBytes      = 16
	remembered   = 10 * time.Minute
	mostRemember = 10000
)

// A digest stands for an id. Ids are looked up by it, so that the time a look-up takes says nothing about how much of an id
// was right.
type digest [sha256.Size]byte

func digestOf(id string) digest { return sha256.Sum256([]byte(id)) }

// String is enough to find the id's lines in the log.
func (d digest) String() string { return hex.EncodeToString(d[:4]) }

// A book finds leases or holds by their ids, for the caller they are bound to. Those that have ended are remembered for
// ten minutes with how they ended, at most ten thousand of them.
type book[T any] struct {
	mu      sync.Mutex
	entries map[digest]*entry[T]
	past    []*entry[T] // in the order of their ends
}

type entry[T any] struct {
	key      digest
	identity string
	live     T
	past     *past // nil while it lives
}

// past is how a lease or a hold has ended.
type past struct {
	why  error // nil if its caller gave it up
	at   time.Time
	gone <-chan struct{}

	token    int64  // a hold's
	released *latch // a hold's
}

// enter gives live an id and binds it to identity.
func (b *book[T]) enter(identity string, live T) (id string, key digest) {
	bits := make([]byte, idBytes)
	_, _ = rand.Read(bits) // never fails: see its documentation
	id = hex.EncodeToString(bits)
	key = digestOf(id)
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.entries == nil {
		b.entries = map[digest]*entry[T]{}
	}
	b.entries[key] = &entry[T]{key: key, identity: identity, live: live}
	return id, key
}

// find returns what lives under the id, or how it ended; neither if there is nothing for this identity.
func (b *book[T]) find(id, identity string) (live T, ended *past, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	found := b.entries[digestOf(id)]
	if found == nil || found.identity != identity {
		return live, nil, false
	}
	if found.past != nil && time.Since(found.past.at) > remembered {
		return live, nil, false
	}
	return found.live, found.past, true
}

// end turns a living entry into a memory. The first end counts.
func (b *book[T]) end(key digest, how past) {
	b.mu.Lock()
	defer b.mu.Unlock()
	ended := b.entries[key]
	if ended == nil || ended.past != nil {
		return
	}
	var nothing T
	how.at = time.Now()
	ended.live, ended.past = nothing, &how
	b.past = append(b.past, ended)
	b.forget()
}

// amendRelease says how an entry has ended whose caller had given it up.
func (b *book[T]) amendRelease(key digest, why error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if ended := b.entries[key]; ended != nil && ended.past != nil && ended.past.why == nil {
		amended := *ended.past
		amended.why = why
		ended.past = &amended
	}
}

// forget drops memories that are too old or too many.
func (b *book[T]) forget() {
	for len(b.past) > mostRemember || time.Since(b.past[0].past.at) > remembered {
		delete(b.entries, b.past[0].key)
		b.past[0] = nil
		b.past = b.past[1:]
	}
}
