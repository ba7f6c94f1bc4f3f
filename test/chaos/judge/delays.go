package judge

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sidekeeper/sidekeeper/test/chaos/history"
)

// checkDelays demands that after a hold with a delay that its holder has not given up nobody is granted the lock before the delay is over. Only
// the lock's own node, in the ensemble's logs, says which holds those are.
func checkDelays(e *evidence, v *Verdict) {
	if e.log == nil {
		return
	}
	queues := e.queues()
	for _, a := range e.attempts {
		if a.granted == nil {
			continue
		}
		for _, lost := range e.lostDelays(a.Lock, queues[a.Lock]) {
			if lost.token >= a.granted.Token {
				continue
			}
			v.Delayed++
			if early := lost.until.Since(a.granted.At); early > 0 {
				v.accusef(Delays, "%s was granted %s %v before the delay after the hold %d was over", a.name(), a.Lock, early, lost.token)
			}
		}
	}
}

// A lostDelay is when the delay after a hold was over at the earliest.
type lostDelay struct {
	token int64
	until history.Instant
}

// lostDelays are those of a lock.
func (e *evidence) lostDelays(lock string, queue []*place) (all []lostDelay) {
	if known, ok := e.delays[lock]; ok {
		return known
	}
	held, free := e.delaysOf(lock)
	for _, token := range slices.Sorted(maps.Keys(held)) {
		if p := placeOf(token, queue); p != nil && p.Gone.Happened() && !free[token] {
			all = append(all, lostDelay{token, e.clocks.earliest(p.Gone).Add(held[token])})
		}
	}
	if e.delays == nil {
		e.delays = map[string][]lostDelay{}
	}
	e.delays[lock] = all
	return all
}

// delaysOf are the delays that a lock's node told of, by the token of the hold, and the holds that were given up.
func (e *evidence) delaysOf(lock string) (held map[int64]time.Duration, free map[int64]bool) {
	held, free = map[int64]time.Duration{}, map[int64]bool{}
	directory := path(e.settings.LockRoot, lock)
	for _, life := range e.lives {
		if life.Path != directory {
			continue
		}
		for _, w := range life.Writes {
			words := strings.Split(string(w.Data), ":")
			switch {
			case len(words) == 3 && words[0] == "held":
				held[numberIn(words[1])] = time.Duration(numberIn(words[2])) * time.Millisecond
			case len(words) == 2 && words[0] == "free":
				free[numberIn(words[1])] = true
			}
		}
	}
	return held, free
}

// numberIn is 0 for what is none.
func numberIn(text string) int64 {
	number, _ := strconv.ParseInt(text, 10, 64)
	return number
}
