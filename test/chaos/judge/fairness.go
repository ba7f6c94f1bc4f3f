package judge

import (
	"maps"
	"slices"

	"github.com/sidekeeper/sidekeeper/test/chaos/history"
)

// mostFired is how many watches the deletion of a contender may fire: its own sidecar's, which looks for revocations, and
// that of the sidecar of the one behind it.
const mostFired = 2

// checkFairness demands that who is known to wait is granted the lock before whoever asks for it later, and that nobody else
// is woken.
func checkFairness(e *evidence, v *Verdict) {
	locks := e.byLock()
	for _, lock := range slices.Sorted(maps.Keys(locks)) {
		var spans []span
		for _, a := range locks[lock] {
			if queued := a.first(history.Queued); a.beganAnew() {
				continue
			} else if a.granted != nil && queued != nil {
				spans = append(spans, span{a.At, queued.At, a.granted.Token, a.granted.Token, a.operation})
			} else if a.granted != nil {
				spans = append(spans, span{a.At, a.granted.At, a.granted.Token, a.granted.Token, a.operation})
			}
		}
		regressions(spans, func(before, after span) {
			if before.who.first(history.Queued) == nil {
				return // which is about tokens, not about waiting
			}
			v.accusef(Fairness, "%s waited for %s already when %s asked for it, and was granted it later (tokens %d, %d)",
				before.who.name(), lock, after.who.name(), before.last, after.first)
		})
	}
	checkHerd(e, v)
}

// checkHerd is for rounds in which there is nothing but mutexes: elsewhere others look at nodes, too.
func checkHerd(e *evidence, v *Verdict) {
	if len(e.fired) < 2 || e.log == nil || len(e.sets) > 0 || slices.ContainsFunc(e.operations, (*operation).isMore) {
		return
	}
	gone := 0
	for _, queue := range e.queues() {
		for _, p := range queue {
			if p.Gone.Happened() {
				gone++
			}
		}
	}
	if fired := e.fired[len(e.fired)-1] - e.fired[0]; fired > int64(mostFired*gone) {
		v.accusef(Fairness, "%d watches were fired by %d contenders that went", fired, gone)
	}
}

// isMore says whether it is about more than a mutex.
func (o *operation) isMore() bool {
	switch o.Kind {
	case history.Called:
		return o.Mode != history.Exclusive || o.Rest > 0
	case history.Watching, history.Joining, history.Numbering:
		return true
	default:
		return o.Queue != "" || o.Barrier != "" || o.Schedule != ""
	}
}
