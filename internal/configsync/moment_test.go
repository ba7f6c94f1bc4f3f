package configsync

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
)

// A history is every state that was stored, and looks that see each key at a later moment than the one before.
type history struct {
	random *rand.Rand
	states []map[string]sidekeeper.Entry
}

// settled is how many commits there were before the first listing.
const settled = 5

// commit writes some keys at once: mostly new values, rarely keys that are made or deleted.
func (h *history) commit(keys []string) {
	revision := int64(len(h.states))
	next := map[string]sidekeeper.Entry{}
	for key, entry := range h.states[revision-1] {
		next[key] = entry
	}
	restless := revision <= settled || h.random.IntN(6) == 0
	for _, key := range keys {
		entry, there := next[key]
		switch {
		case h.random.IntN(2) == 0:
		case there && restless && entry.CreatedRevision <= settled: // what is made while we look stays: see atOneMoment
			delete(next, key)
		case there:
			entry.Version++
			entry.Revision = revision
			next[key] = entry
		case restless:
			next[key] = sidekeeper.Entry{Key: key, Version: 1, Revision: revision, CreatedRevision: revision}
		}
	}
	h.states = append(h.states, next)
}

// look sees the keys while commits go on.
func (h *history) look(keys []string, busy int) listing {
	var seen listing
	for _, key := range keys {
		for range h.random.IntN(busy) {
			if h.random.IntN(len(keys)) == 0 {
				h.commit(keys)
			}
		}
		if entry, there := h.states[len(h.states)-1][key]; there {
			seen = append(seen, entry)
		}
	}
	return seen
}

// wasStored says whether these were the keys at one moment.
func (h *history) wasStored(found listing) bool {
	return slices.ContainsFunc(h.states, func(state map[string]sidekeeper.Entry) bool {
		return len(state) == len(found) && !slices.ContainsFunc(found, func(entry sidekeeper.Entry) bool {
			return state[entry.Key].Revision != entry.Revision
		})
	})
}

func TestWhatIsFoundBetweenLooksWasStoredAtOneMoment(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	keys := []string{"a", "b", "c", "d", "e"}
	tried, found, mixed := 20_000, 0, 0
	for range tried {
		h := &history{random: random, states: []map[string]sidekeeper.Entry{{}}}
		for range settled {
			h.commit(keys)
		}
		busy := 1 + random.IntN(4)
		first, second, third := h.look(keys, busy), h.look(keys, busy), h.look(keys, busy)
		if !h.wasStored(second) {
			mixed++
		}
		if second.same(third) && !h.wasStored(second) {
			t.Fatalf("two looks saw %v, which was never stored: %s", second, fmt.Sprint(h.states))
		}
		state, ok := betweenListings(first, second, third)
		if !ok {
			continue
		}
		found++
		if !h.wasStored(state) {
			t.Fatalf("%v was never stored\nlooks %v\n%v\n%v\nstates %s", state, first, second, third, fmt.Sprint(h.states))
		}
	}
	t.Logf("of %d, %d were found; %d looks saw a mix", tried, found, mixed)
	if found < tried/10 || mixed < tried/20 {
		t.Errorf("of %d, %d were found and %d looks saw a mix: nothing is tested", tried, found, mixed)
	}
}
