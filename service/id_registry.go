package service

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"sync"
	"time"

	"github.com/sidekeeper/sidekeeper/recipes"
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

// An idRegistry finds leases or holds by their ids, for the caller they are bound to. Those that have ended are remembered for
// ten minutes with how they ended, at most ten thousand of them: of more, the oldest of the caller who has most is forgotten.
type idRegistry[T any] struct {
	mu      sync.Mutex
	entries map[digest]*entry[T]
	past    map[string][]*entry[T] // by identity, in the order of their ends
	sum     int                    // of these
}

type entry[T any] struct {
	key      digest
	identity string
	live     T
	ended    *tombstone // nil while it lives
}

// A tombstone says how a lease or a hold has ended.
type tombstone struct {
	why  error // nil if its caller gave it up
	at   time.Time
	gone <-chan struct{}
	free <-chan struct{} // of a lease: lease.freed

	kind     string // a hold's
	token    int64  // a hold's
	released *latch // a hold's
	done     *latch // of a hold that has one
	once     *attempt
	round    recipes.Round
}

// enter gives live an id and binds it to identity.
func (r *idRegistry[T]) enter(identity string, live T) (id string, key digest) {
	for ok := false; !ok; {
		bits := make([]byte, idBytes)
		_, _ = rand.Read(bits) // never fails: see its documentation
		id = hex.EncodeToString(bits)
		key, ok = r.enterAs(id, identity, live)
	}
	return id, key
}

// enterAs gives live an id that it had before, unless that is in use.
func (r *idRegistry[T]) enterAs(id, identity string, live T) (key digest, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.enterLocked(id, identity, live)
}

// enterEnded remembers how something has ended under an id that it had before, unless that is in use.
func (r *idRegistry[T]) enterEnded(id, identity string, how tombstone) (key digest, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var nothing T
	if key, ok = r.enterLocked(id, identity, nothing); ok {
		r.endLocked(key, how)
	}
	return key, ok
}

func (r *idRegistry[T]) enterLocked(id, identity string, live T) (key digest, ok bool) {
	key = digestOf(id)
	if r.entries == nil {
		r.entries, r.past = map[digest]*entry[T]{}, map[string][]*entry[T]{}
	}
	if r.entries[key] != nil {
		return key, false
	}
	r.entries[key] = &entry[T]{key: key, identity: identity, live: live}
	return key, true
}

// find returns what lives under the id, or how it ended; neither if there is nothing for this identity.
func (r *idRegistry[T]) find(id, identity string) (live T, ended *tombstone, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	found := r.entries[digestOf(id)]
	if found == nil || found.identity != identity {
		return live, nil, false
	}
	if found.ended != nil && time.Since(found.ended.at) > remembered {
		return live, nil, false
	}
	return found.live, found.ended, true
}

// each calls do with all that live. It must not call the registry.
func (r *idRegistry[T]) each(do func(live T)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, of := range r.entries {
		if of.ended == nil {
			do(of.live)
		}
	}
}

// end turns a living entry into a memory. The first end counts.
func (r *idRegistry[T]) end(key digest, how tombstone) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.endLocked(key, how)
}

func (r *idRegistry[T]) endLocked(key digest, how tombstone) {
	gone := r.entries[key]
	if gone == nil || gone.ended != nil {
		return
	}
	var nothing T
	how.at = time.Now()
	gone.live, gone.ended = nothing, &how
	r.past[gone.identity] = append(r.past[gone.identity], gone)
	r.sum++
	for time.Since(r.past[gone.identity][0].ended.at) > remembered {
		r.forget(gone.identity)
	}
	if r.sum > mostRemember {
		r.forget(r.mostPast())
	}
}

// amendRelease says how an entry has ended whose caller had given it up.
func (r *idRegistry[T]) amendRelease(key digest, why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if gone := r.entries[key]; gone != nil && gone.ended != nil && gone.ended.why == nil {
		amended := *gone.ended
		amended.why = why
		gone.ended = &amended
	}
}

// forget drops the oldest memory of an identity.
func (r *idRegistry[T]) forget(identity string) {
	past := r.past[identity]
	delete(r.entries, past[0].key)
	past[0] = nil
	r.past[identity] = past[1:]
	if len(past) == 1 {
		delete(r.past, identity)
	}
	r.sum--
}

// mostPast is the identity that has most memories.
func (r *idRegistry[T]) mostPast() (identity string) {
	for name, past := range r.past {
		if len(past) > len(r.past[identity]) {
			identity = name
		}
	}
	return identity
}
