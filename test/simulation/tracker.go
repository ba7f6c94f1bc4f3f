package simulation

import (
	"maps"
	"slices"
	"time"
)

// A tracker is the leader's knowledge of when each session ends: on the first whole tick of its clock that comes after the
// session's timeout.
type tracker struct {
	server   *server
	timeouts map[int64]time.Duration
	ends     map[int64]int64 // the tick, by session
	owners   map[int64]*tie  // where each session was attached last; nil for the leader itself
}

func newTracker(s *server) *tracker {
	return &tracker{server: s, timeouts: map[int64]time.Duration{}, ends: map[int64]int64{}, owners: map[int64]*tie{}}
}

func (t *tracker) tick() time.Duration { return t.server.ensemble.options.Tick }

// sinceTick is how many ticks there were at a time.
func (t *tracker) sinceTick(at time.Duration) int64 { return int64((at + t.server.phase) / t.tick()) }

func (t *tracker) add(session int64, timeout time.Duration) {
	t.timeouts[session] = timeout
	t.touch(session)
}

// touch gives a session its full timeout, and says whether it is alive.
func (t *tracker) touch(session int64) bool {
	timeout, alive := t.timeouts[session]
	if alive {
		lasts := time.Duration(float64(timeout) / t.server.rate)
		t.ends[session] = max(t.ends[session], t.sinceTick(t.server.ensemble.now()+lasts)+1)
	}
	return alive
}

// move notes where a session is attached now, and says whether it is alive. What it has asked for elsewhere is refused from
// now on.
func (t *tracker) move(session int64, to *tie) (alive bool) {
	if alive = t.touch(session); alive {
		t.owners[session] = to
	}
	return alive
}

// moved says whether a session is attached elsewhere. It is where a term first hears from it.
func (t *tracker) moved(session int64, from *tie) bool {
	owner, known := t.owners[session]
	if _, alive := t.timeouts[session]; alive && !known {
		t.owners[session] = from
	}
	return known && owner != from
}

func (t *tracker) remove(session int64) {
	delete(t.timeouts, session)
	delete(t.ends, session)
	delete(t.owners, session)
}

// run ends the sessions whose tick has come, now and on each tick, for as long as the term lasts.
func (t *tracker) run() {
	term := t.server.term
	if term == nil || term.tracker != t {
		return
	}
	now := t.sinceTick(t.server.ensemble.now())
	for _, session := range slices.Sorted(maps.Keys(t.ends)) {
		if t.ends[session] <= now {
			term.propose(&entry{session: session, ends: true})
		}
	}
	t.server.at(time.Duration(now+1)*t.tick()-t.server.phase, t.run)
}
