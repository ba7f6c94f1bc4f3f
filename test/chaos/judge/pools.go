package judge

import (
	"cmp"
	"slices"
	"time"

	"github.com/sidekeeper/sidekeeper/test/chaos/history"
)

// checkPools demands that no two callers are sure of one number of a pool at the same instant, and that a number which a caller has not given up
// rests for its quarantine before another caller is granted it.
func checkPools(e *evidence, v *Verdict) {
	type number struct {
		pool  string
		which int
	}
	bearers := map[number][]*attempt{}
	for _, o := range e.operations {
		if granted := o.first(history.Granted); o.Kind == history.Numbering && granted != nil {
			its := number{o.Pool, granted.Number}
			bearers[its] = append(bearers[its], e.newAttempt(o))
			v.Borne++
		}
	}
	for its, attempts := range bearers {
		findOverlaps(v, Pools, "a number of "+its.pool, attempts)
		slices.SortStableFunc(attempts, func(a, b *attempt) int { return cmp.Compare(a.granted.At, b.granted.At) })
		for i, next := range attempts[1:] {
			checkRest(v, attempts[i], next)
		}
	}
}

// checkRest counts from when the bearer was last sure.
func checkRest(v *Verdict, bearer, next *attempt) {
	if bearer.released() {
		return
	}
	v.Rested++
	since := bearer.granted.At
	if bearer.believed {
		since = bearer.to
	}
	if rested := next.granted.At.Since(since); rested < bearer.Rest {
		v.accusef(Pools, "%s was granted the number %d of %s %v after %s was sure of it, and it was to rest for %v",
			next.name(), next.granted.Number, next.Pool, rested.Round(time.Millisecond), bearer.name(), bearer.Rest)
	}
}
