package judge

import (
	"maps"
	"slices"
	"strconv"

	"github.com/sidekeeper/sidekeeper/test/chaos/history"
	"github.com/sidekeeper/sidekeeper/test/chaos/txnlog"
)

// checkGuards demands that what a lock guarded was written while the lock was held with the token that was written: after all had gone that its
// place had to wait for, and before the place went. Only the ensemble's logs say so. What nothing guarded is counted, if it came too late.
func checkGuards(e *evidence, v *Verdict) {
	if e.log == nil {
		return
	}
	keys, queues := e.keyLives(), e.queues()
	for _, lock := range slices.Sorted(maps.Keys(queues)) {
		for _, w := range slices.Concat(writesOf(keys[history.GuardedKey(lock)]), e.writesOfMembers(history.GuardedGroup(lock))) {
			v.Guarded++
			if !w.within(queues[lock]) {
				v.accusef(Guards, "at zxid %#x a write was carried out that %s guarded with token %d, which did not hold it then", w.Zxid, lock, w.token)
			}
		}
		for _, w := range writesOf(keys[history.UnguardedKey(lock)]) {
			if !w.within(queues[lock]) {
				v.TooLate++
			}
		}
	}
}

// A heldWrite is a write that tells the token of its lock.
type heldWrite struct {
	txnlog.Write

	token int64
}

func writesOf(lives []*txnlog.Life) (all []heldWrite) {
	for _, life := range lives {
		for _, w := range life.Writes {
			if token, err := strconv.ParseInt(string(w.Data), 10, 64); err == nil { // a key is made empty
				all = append(all, heldWrite{w, token})
			}
		}
	}
	return all
}

// writesOfMembers are of the members of a group that are named by the token of their lock.
func (e *evidence) writesOfMembers(group string) (all []heldWrite) {
	for member, life := range e.memberLives(group) {
		token, err := strconv.ParseInt(member.Name, 10, 64)
		for _, w := range life.Writes {
			if err == nil {
				all = append(all, heldWrite{w, token})
			}
		}
	}
	return all
}

// within says whether the lock was held with the token when it was written.
func (w heldWrite) within(queue []*place) bool {
	p := placeOf(w.token, queue)
	return p != nil && p.head.Happened() && p.head.Zxid < w.Zxid && (!p.Gone.Happened() || w.Zxid < p.Gone.Zxid)
}
