// It looks inside: what is remembered of ids is bounded by more than a test can make by calls.

package service

import (
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/test/support/bubble"
)

func TestAnIDRegistryRemembersEndsForTenMinutes(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		var b idRegistry[int]
		id, key := b.enter("me", 7)
		_, _, ok := b.find(id, "somebody else")
		same(t, "found by somebody else", ok, false)
		live, ended, ok := b.find(id, "me")
		same(t, "found", []any{live, ended == nil, ok}, []any{7, true, true})
		b.end(key, tombstone{why: errLockBroken, token: 3})
		b.end(key, tombstone{why: errLeaseLost})
		live, ended, _ = b.find(id, "me")
		same(t, "ended", []any{live, ended.why, ended.token}, []any{0, errLockBroken, 3})
		<-time.After(remembered + 1)
		_, _, ok = b.find(id, "me")
		same(t, "found after ten minutes", ok, false)
		_, other := b.enter("me", 8)
		b.end(other, tombstone{})
		same(t, "entries", len(b.entries), 1)
	})
}

func TestAnIDRegistryForgetsTheOldestOfTooManyEnds(t *testing.T) {
	t.Parallel()
	var b idRegistry[int]
	first, key := b.enter("me", 0)
	b.end(key, tombstone{})
	for i := range mostRemember {
		_, key := b.enter("me", i)
		b.end(key, tombstone{})
	}
	_, _, ok := b.find(first, "me")
	same(t, "the oldest is found", ok, false)
	same(t, "entries", len(b.entries), mostRemember)
}

func TestAnIDRegistryForgetsTheEndsOfWhoHasMost(t *testing.T) {
	t.Parallel()
	var b idRegistry[int]
	few, key := b.enter("few", 0)
	b.end(key, tombstone{})
	first, key := b.enter("many", 0)
	b.end(key, tombstone{})
	for i := range mostRemember {
		_, key := b.enter("many", i)
		b.end(key, tombstone{})
	}
	_, _, ok := b.find(few, "few")
	same(t, "that of another caller is found", ok, true)
	_, _, ok = b.find(first, "many")
	same(t, "the oldest of who has most is found", ok, false)
	same(t, "entries", len(b.entries), mostRemember)
}
