package zookeeper

import (
	"errors"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/trace"
	"github.com/sidekeeper/sidekeeper/recipes"
)

// A life decides until when a session is valid, and whether it sleeps: by its proof, by what its places may be asked, and by what is to stand on
// it. It is a machine without clocks, timers, locks and connections. Each event comes with its instant, and what is to be done about it follows
// as effects. The session's lock guards it.
type life struct {
	barriers
	sleepState
	pulse

	negotiated time.Duration
	interval   time.Duration // between heartbeats
	least      time.Duration // of validity that heartbeats alone leave; see Config.Validity
	proof      proof
	plain      instant // when the newest heartbeat was sent that was a plain read, if none was sent since that was not
	brief      bool    // the session ends with its first connection, as the reader's do
	suspended  bool    // a heartbeat is late
	doubted    bool    // the sharedProof's heartbeats are late
	bytes      int     // of the paths of what stands on the session, or is being made on it: each has some
	closing    bool
	err        error
	ended      instant // when err was set
}

// effects are what is to be done about an event.
type effects uint8

const (
	guards  effects = 1 << iota // look when the session is over, and not sooner
	summons                     // look at once whether a heartbeat is due
	wakes                       // tell that the session sleeps no longer
	changes                     // tell those who wait that contact is late, or is not any more
	lates                       // count that it is
	passes                      // have the next one prove the others
	asks                        // send the heartbeat that is under way; see pulsed
	drops                       // give up the connection; see pulsed
)

// follow does what is to be done now and can be while the lock is held, which it is.
func (s *Session) follow(what effects, now instant) {
	if what&wakes != 0 {
		trace.Tell(trace.Step{Kind: trace.Woken, Session: s.id})
		s.change()
	}
	if what&passes != 0 { // of the round that is under way, or has just ended
		s.roundWith.pass(s)
	}
	if what&changes != 0 {
		s.change()
	}
	if what&lates != 0 {
		s.client.config.Late()
	}
	if what&guards != 0 && s.guard != nil && s.err == nil {
		s.guard.Reset(s.overAt().since(now))
	}
	if what&summons != 0 {
		s.summon()
	}
}

// validUntil is until when the session is valid: by its proof, and by what its places may be asked.
func (l *life) validUntil() instant {
	if len(l.placeBarriers) == 0 {
		return l.proof.deadline
	}
	return min(l.proof.deadline, l.barrier.add(l.proof.lifetime()))
}

// validFor is for how long the session is valid still.
func (l *life) validFor(now instant) time.Duration {
	if l.closing || l.err != nil || l.asleep {
		return 0
	}
	return max(0, l.validUntil().since(now))
}

// overAt is when the session is over, unless something comes in between: when it is not valid any more or, if it sleeps, when it must be
// proved.
func (l *life) overAt() instant {
	switch {
	case !l.asleep:
		return l.validUntil()
	case len(l.placeBarriers) > 0:
		return min(l.due, l.barrier.add(l.proof.lifetime()))
	case l.bytes > 0:
		return l.due
	}
	return never
}

// overdue is why the session is over if its time is.
func (l *life) overdue() error {
	if l.validUntil() < l.proof.deadline {
		return errUnseen
	}
	return errUnproved
}

// stands notes that something of so many bytes is about to be made on the session. One that sleeps ends if it is not proved in time then.
func (l *life) stands(size int, now instant) effects {
	what := l.want(now)
	if l.asleep && l.bytes == 0 {
		l.due = now.add(l.proof.lifetime())
		what |= guards
	}
	l.bytes += size
	return what
}

// cover lets a place, whose data were of this version when it was made, bound the validity. The making was sent at since.
func (l *life) cover(place string, version int32, since, now instant) effects {
	l.placeBarriers[place] = &placeBarrier{version: version, since: since}
	if len(l.placeBarriers) == 1 || since < l.barrier {
		l.barrier = since
	}
	if l.validUntil().since(now) < l.least { // it was asked for long ago
		return guards | summons
	}
	return guards
}

// saw takes in that nothing asks for the place's end in this version of its data, which were read after since if that is not 0.
func (l *life) saw(place string, version int32, since, now instant) {
	seen := l.placeBarriers[place]
	if seen == nil || now >= l.overAt() {
		return
	}
	if version > seen.version {
		seen.version, seen.changed = version, false
	}
	if since > seen.since {
		seen.since, seen.inDoubt = since, false
		l.recount()
	}
}

// take takes an answer to what was sent then, and says which places are gone. Of data that have changed no barrier moves until the place's
// holder has seen them.
func (l *life) take(told answer, sent instant) (gone []check) {
	for _, c := range told.held {
		c.seen.asked = sent
		c.seen.since, c.seen.inDoubt = max(c.seen.since, sent.add(-l.proof.lateness())), false
	}
	for _, c := range told.refused {
		c.seen.asked = sent
		switch {
		case errors.Is(told.why, recipes.ErrBadVersion):
			c.seen.changed, c.seen.inDoubt = c.seen.version == c.version, true
		case errors.Is(told.why, recipes.ErrNoNode):
			gone = append(gone, c)
		}
	}
	l.recount()
	return gone
}

// uncover lets a place bound nothing any more, unless the session is over by it.
func (l *life) uncover(place string, now instant) {
	if l.placeBarriers[place] == nil || now >= l.overAt() {
		return
	}
	delete(l.placeBarriers, place)
	l.recount()
}

// promisesWithin says whether each validity that a caller was told ends by when a place bounds it for whose end no caller had asked by then.
func (l *life) promisesWithin(unasked instant) bool {
	return max(l.proof.deadline, l.assured) <= unasked.add(l.proof.lifetime())
}

// proved takes in a committed request, after which contact is late no longer.
func (l *life) proved(request exchange) (changed bool) {
	l.proof.answeredHeartbeat(request)
	changed = l.suspended || l.doubted
	l.suspended, l.doubted = false, false
	return changed
}
