package judge

import (
	"maps"
	"slices"
	"time"

	"github.com/sidekeeper/sidekeeper/test/chaos/history"
)

// A set is what is known of items that members share.
type set struct {
	items int
	since history.Instant
}

// resettling is how long two plans may take beside what else may take time: each waits for more changes for up to 10 seconds, and for a turn.
// The first may give an item to a member that leaves.
const resettling = 2 * 11 * time.Second

// checkItems demands that each item of a set has a holder again in time while there are members, which there always are until the last
// operation of the round. That no two have it, and count, is told of each lock.
func checkItems(e *evidence, v *Verdict) {
	if e.log == nil || !e.recovered() || len(e.sets) == 0 {
		return
	}
	queues := e.queues()
	for _, name := range slices.Sorted(maps.Keys(e.sets)) {
		for i := range e.sets[name].items {
			lock := name + "/" + history.ItemOf(i)
			e.checkIdle(v, lock, e.sets[name].since, queues[lock])
		}
	}
}

// checkIdle looks at each time at which an item had no holder: since it was defined, and since a holder's place has gone.
func (e *evidence) checkIdle(v *Verdict, item string, free history.Instant, queue []*place) {
	idle := func(until history.Instant) {
		v.Idle = append(v.Idle, max(0, until.Since(free)))
		if until > e.deadline(free, resettling+e.settings.SessionTimeout*3/2+e.settings.Patience) {
			v.accusef(Items, "%s had no holder for %v", item, until.Since(free))
		}
	}
	for _, p := range queue {
		if !p.owned() {
			continue
		}
		v.Shared++
		idle(e.clocks.earliest(p.Made))
		if !p.Gone.Happened() || e.clocks.earliest(p.Gone) > e.buried {
			return
		}
		free = max(free, e.clocks.latest(p.Gone))
	}
	idle(e.buried)
}
