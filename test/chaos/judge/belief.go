package judge

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/sidekeeper/sidekeeper/test/chaos/history"
)

// checkBelief demands that no two callers were sure of a lock at the same instant, unless both read. It also counts grants
// and hand-overs.
func checkBelief(e *evidence, v *Verdict) {
	locks := e.byLock()
	for _, lock := range slices.Sorted(maps.Keys(locks)) {
		granted := slices.DeleteFunc(locks[lock], func(a *attempt) bool { return a.granted == nil })
		v.Grants += len(granted)
		findOverlaps(v, Belief, lock, granted)
		countHandovers(v, granted)
	}
}

// findOverlaps goes through the intervals of belief in the order in which they begin. Of those that have begun, the one
// that lasts longest tells; for a reader, only writers do.
func findOverlaps(v *Verdict, checker Checker, what string, attempts []*attempt) {
	sure := slices.DeleteFunc(slices.Clone(attempts), func(a *attempt) bool { return !a.believed })
	slices.SortStableFunc(sure, func(a, b *attempt) int { return cmp.Compare(a.from, b.from) })
	var anybody, writer *attempt
	for _, a := range sure {
		before := anybody
		if a.Mode == history.Read {
			before = writer
		}
		if before != nil && before.to > a.from {
			v.accusef(checker, "%s as %s (token %d) and %s as %s (token %d) were both sure of %s for %v; how the first lost it: %s",
				before.name(), before.Mode, before.granted.Token, a.name(), a.Mode, a.granted.Token, what,
				min(before.to, a.to).Since(a.from), before.loss())
		}
		if a.Mode != history.Read {
			writer = lasting(writer, a)
		}
		anybody = lasting(anybody, a)
	}
}

// loss is how the caller lost what it had, in a word.
func (a *attempt) loss() string {
	ended := a.first(history.Ended)
	if ended == nil {
		return "nobody knows"
	}
	return cmp.Or(ended.Reason, ended.Code)
}

// lasting is the one that was sure for longer.
func lasting(a, b *attempt) *attempt {
	if a == nil || b.to > a.to {
		return b
	}
	return a
}

// countHandovers goes through the grants in the order of their tokens and looks at those that each excludes: the last writer
// before it or, for a writer, the readers since.
func countHandovers(v *Verdict, attempts []*attempt) {
	inOrder := slices.Clone(attempts)
	slices.SortStableFunc(inOrder, func(a, b *attempt) int { return cmp.Compare(a.granted.Token, b.granted.Token) })
	var writer *attempt
	var readers []*attempt
	for _, a := range inOrder {
		before := readers
		if a.Mode == history.Read || len(readers) == 0 {
			before = []*attempt{writer}
		}
		v.countHandover(a, before)
		if a.Mode == history.Read {
			readers = append(readers, a)
		} else {
			writer, readers = a, nil
		}
	}
}

func (v *Verdict) countHandover(next *attempt, before []*attempt) {
	forced, margin := false, time.Duration(0)
	measured := false
	for _, a := range before {
		if a == nil || a.released() {
			continue
		}
		forced = true
		if a.believed && next.believed {
			if m := next.from.Since(a.to); !measured || m < margin {
				measured, margin = true, m
			}
		}
	}
	if forced {
		v.ForcedHandovers++
	}
	if measured {
		v.Margins = append(v.Margins, margin)
	}
}
