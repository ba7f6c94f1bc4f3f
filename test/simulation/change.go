package simulation

import (
	"maps"
	"slices"
	"time"
)

// A Change is what a transaction has changed that was committed: of sessions, and of the nodes that live with them.
type Change struct {
	Zxid    int64
	Session int64         // whose transaction it was; the one that was opened or ended
	Timeout time.Duration // of a session that was opened; otherwise 0
	Ended   bool          // the session has ended
	Made    []string      // paths
	Gone    []Lost
}

// A Lost node is one that was deleted.
type Lost struct {
	Path  string
	Owner int64
}

// tellChange tells Committed of an entry that was just applied. alive says whether its session was before.
func (e *Ensemble) tellChange(alive bool, applied *entry) {
	if e.options.Committed == nil {
		return
	}
	change := Change{
		Zxid: e.truth.Zxid(), Session: applied.session, Timeout: applied.opens, Ended: alive && !e.truth.Alive(applied.session),
	}
	now := map[string]int64{}
	for _, path := range e.truth.Paths() {
		stat, _ := e.truth.Stat(path)
		if stat.Owner == 0 {
			continue
		}
		now[path] = stat.Owner
		if _, stood := e.standing[path]; !stood {
			change.Made = append(change.Made, path)
		}
	}
	for _, path := range slices.Sorted(maps.Keys(e.standing)) {
		if _, stands := now[path]; !stands {
			change.Gone = append(change.Gone, Lost{path, e.standing[path]})
		}
	}
	e.standing = now
	e.options.Committed(change)
}
