package judge

import (
	"maps"
	"slices"

	"github.com/sidekeeper/sidekeeper/test/chaos/history"
)

// checkTokens demands that a lock that is asked for when a token of it is known gets a larger one.
func checkTokens(e *evidence, v *Verdict) {
	locks := e.byLock()
	for _, lock := range slices.Sorted(maps.Keys(locks)) {
		var spans []span
		for _, a := range locks[lock] {
			if a.granted != nil {
				spans = append(spans, span{a.At, a.granted.At, a.granted.Token, a.granted.Token, a.operation})
			}
		}
		regressions(spans, func(before, after span) {
			v.accusef(Effects, "%s was granted %s with token %d, though %s had %d before it asked",
				after.who.name(), lock, after.first, before.who.name(), before.last)
		})
	}
}

// A write is one to one counter of a store.
type write struct {
	lock         string
	token, value int64
}

// checkEffects looks at what callers that were sure of their locks have done to stores.
func checkEffects(e *evidence, v *Verdict) {
	damage := 0
	for _, name := range e.storeNames() {
		if name == history.Fenced {
			checkFenced(v, e.stores[name])
		} else {
			damage += lostUpdates(e.stores[name])
		}
		e.checkAccounts(v, name)
	}
	if e.settings.Damages && damage == 0 {
		v.invalidatef("the store that does not look at tokens shows no damage: the nemesis had no teeth")
	}
}

// storeNames is those that did something, or were asked to.
func (e *evidence) storeNames() []string {
	names := map[string]bool{}
	for name := range e.stores {
		names[name] = true
	}
	for _, a := range e.attempts {
		for _, acting := range a.all(history.Acting) {
			names[acting.Store] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// checkFenced demands that what the store accepted under one lock came with tokens that never get smaller, and that each
// write knew of the one before.
func checkFenced(v *Verdict, events []*history.Event) {
	latest := map[string]*history.Event{}
	for _, event := range events {
		if event.Kind != history.Accepted {
			continue
		}
		before := latest[event.Lock]
		latest[event.Lock] = event
		if before == nil {
			before = &history.Event{}
		}
		if event.Token < before.Token {
			v.accusef(Effects, "the store accepted token %d after %d under %s", event.Token, before.Token, event.Lock)
		}
		if event.Value != before.Value+1 {
			v.accusef(Effects, "an update under %s was lost: token %d wrote %d over the %d of token %d",
				event.Lock, event.Token, event.Value, before.Value, before.Token)
		}
	}
}

// lostUpdates is how many writes of a store did not know of the one before.
func lostUpdates(events []*history.Event) int {
	lost, counters := 0, map[string]int64{}
	for _, event := range events {
		if event.Kind != history.Accepted {
			continue
		}
		if event.Value != counters[event.Lock]+1 {
			lost++
		}
		counters[event.Lock] = event.Value
	}
	return lost
}

// checkAccounts compares what callers were told of their writes with what the store did.
func (e *evidence) checkAccounts(v *Verdict, store string) {
	begun, told := e.writes(store)
	accepted := map[write]int{}
	for _, event := range e.stores[store] {
		if event.Kind == history.Accepted {
			accepted[write{event.Lock, event.Token, event.Value}]++
		}
	}
	for done, times := range accepted {
		if times > begun[done] {
			v.accusef(Effects, "the %s store did %+v %d times, and was asked to %d times", store, done, times, begun[done])
		}
	}
	for done, outcomes := range told {
		if outcomes[history.OK] > accepted[done] {
			v.accusef(Effects, "the %s store did %+v %d times, and told it %d times", store, done, accepted[done], outcomes[history.OK])
		}
		if certain := begun[done] - outcomes[history.Denied]; accepted[done] > certain {
			v.accusef(Effects, "the %s store did %+v and told that it was refused", store, done)
		}
	}
}

// writes is how often each write was asked for, and what callers were told of it.
func (e *evidence) writes(store string) (begun map[write]int, told map[write]map[history.Outcome]int) {
	begun, told = map[write]int{}, map[write]map[history.Outcome]int{}
	for _, a := range e.attempts {
		for _, event := range a.later {
			done := write{a.Lock, event.Token, event.Value}
			switch {
			case event.Store != store:
			case event.Kind == history.Acting:
				begun[done]++
			case event.Kind == history.Acted:
				if told[done] == nil {
					told[done] = map[history.Outcome]int{}
				}
				told[done][event.Outcome]++
			}
		}
	}
	return begun, told
}
