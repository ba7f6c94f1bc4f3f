package zookeeper

import "time"

// jitter is by how much of itself the interval between two heartbeats varies, so that a thousand leases spread.
const jitter = 0.1

// sooner is by how much of the interval a heartbeat is sent sooner, at most, to be sent together with others of the sidecar, which wakes up
// once for all of them.
const sooner = 1.0 / 64

// leastRest is how long a session rests between two looks at its heartbeats, at least.
const leastRest = time.Millisecond

// A pulse is when a session looks whether a heartbeat is due, and the heartbeat that is under way: never more than one. It is a part of the
// session's life, and as pure.
type pulse struct {
	stage stage
	looks instant       // while it rests: when it looks
	pause time.Duration // between two rounds, unless something spares the next one
	on    int           // the number of the connection that was looked at last

	failures int     // of rounds, one after the other
	failing  instant // when the first of them began

	round round
	asked instant // since when the heartbeat waits for a connection, and for its answer then
	stuck instant // since when its connection has not answered, and was not given up

	isLate     bool // it has waited for an interval
	isHalfLate bool // it has waited for half an interval

	chance func() float64
}

// A stage is what a pulse waits for.
type stage uint8

const (
	resting stage = iota // a look
	waiting              // a connection, to send a heartbeat over
	asking               // its answer
)

// A round is heartbeats, one after the other, by which the session is proved and all of its places that are due have been asked for.
type round struct {
	began       instant
	leads       bool // it proves others
	accompanied bool // there are others
	kind        beatKind
	beats       int  // how many that ask for places were answered
	lacks       bool // one more is needed, since there is none from shortly before these
}

// A beatKind is what a heartbeat is good for.
type beatKind uint8

const (
	proves   beatKind = iota // a transaction that asks for places
	repeats                  // one more, which asks for none
	findsOut                 // one of a session that sleeps: whether its server reaches the leader
	reads                    // a plain read: the session is active, and others prove it where that is needed
)

// surroundings are what a life does not know by itself of a session.
type surroundings struct {
	maySleep     bool           // nothing but what it is wanted for keeps it from sleeping
	leads        bool           // it is the prober of others
	accompanied  bool           // there are others
	proved       bool           // one of them has proved it lately, and goes on with it
	reachedUntil func() instant // until when its server is known to reach the leader
	findsOut     func() bool    // it is the one to find that out; asked once
}

// startPulse has heartbeats sent. What was answered last on the connection of that number has proved the session.
func (l *life) startPulse(now instant, on int, chance func() float64) {
	l.pulse = pulse{looks: now.add(l.interval), pause: l.interval, on: on, chance: chance}
}

// nextTick is when something is due next about heartbeats.
func (l *life) nextTick() instant {
	if l.stage == resting {
		return l.looks
	}
	next := never
	if !l.isLate {
		next = l.asked.add(l.interval)
	}
	if l.round.leads && !l.isHalfLate {
		next = min(next, l.asked.add(l.interval/2))
	}
	if l.stage == asking {
		next = min(next, l.givesUpAt())
	}
	return next
}

// givesUpAt is when the connection is given up for one to the next server, if the heartbeat that was sent over it is not answered before.
func (l *life) givesUpAt() instant {
	return max(l.stuck, l.proof.attached.answered).add(l.interval * 3 / 2)
}

// isDue says whether it is time to look: at once over another connection than before.
func (l *life) isDue(now instant, on int) bool {
	return l.stage == resting && (now >= l.looks || on != l.on)
}

// look begins a round, if one is due: about every interval, and none while other transactions do the same. The prober of others sends twice as
// many, and they two thirds.
func (l *life) look(now instant, on int, in surroundings) {
	l.on = on
	if l.failures == 0 && !in.leads && l.sleeps(now, in) == l.asleep {
		if due := l.sparedUntil(now, in); due > now {
			l.looks = due
			return
		}
	}
	l.round = round{began: now, leads: in.leads, accompanied: in.accompanied}
	switch {
	case l.sleeps(now, in) && in.findsOut():
		l.ask(now, findsOut)
	case l.sleeps(now, in), in.proved && l.staysBorrowed(now):
		l.ask(now, reads)
	default:
		l.prove(now)
	}
}

// sleeps says whether the session sleeps and goes on to, or falls asleep.
func (l *life) sleeps(now instant, in surroundings) bool { return in.maySleep && l.mayFallAsleep(now) }

// sparedUntil is until when no heartbeat is needed, if for a millisecond at least; otherwise now.
func (l *life) sparedUntil(now instant, in surroundings) instant {
	if due := l.nextDue(l.pause, in.reachedUntil); !l.brief && due.since(now) >= leastRest {
		return due
	}
	return now
}

// prove has the round prove the session. A heartbeat that counts needs one from shortly before it.
func (l *life) prove(now instant) {
	l.round.lacks = l.plain != 0 || l.round.accompanied && l.round.began.since(l.proof.newest.sent) > 2*l.interval
	l.ask(now, proves)
}

func (l *life) ask(now instant, kind beatKind) {
	l.round.kind = kind
	l.stage, l.asked, l.isLate, l.isHalfLate = waiting, now, false, false
}

// tick does what is due of the heartbeat under way. One that is not answered for an interval makes the session suspended; half an interval later
// the connection is given up.
func (l *life) tick(now instant, on int, connected bool) (what effects) {
	if l.stage == resting {
		return 0
	}
	if l.stage == waiting && connected {
		l.stage, l.on, l.stuck = asking, on, now
		what |= asks
	}
	if !l.isLate && now >= l.asked.add(l.interval) {
		l.isLate = true
		what |= l.suspend()
	}
	if l.round.leads && !l.isHalfLate && now >= l.asked.add(l.interval/2) {
		l.isHalfLate = true
		what |= passes
	}
	if l.stage == asking && now >= l.givesUpAt() {
		l.stuck = now
		what |= drops
	}
	return what
}

// suspend notes that a heartbeat is late.
func (l *life) suspend() effects {
	if l.suspended {
		return 0
	}
	l.suspended = true
	if l.doubted { // which was told
		return changes
	}
	return changes | lates
}

// heard takes in that the heartbeat under way was answered. more says whether there are places left to ask for. A plain read of a session that
// is suspended shows too little.
func (l *life) heard(now instant, more bool, in surroundings) effects {
	if l.stage != asking {
		return 0
	}
	switch kind := l.round.kind; {
	case kind == reads && (l.suspended || l.doubted):
		l.prove(now)
	case kind == proves && more:
		l.round.beats++
		l.ask(now, proves)
	case kind == proves && l.round.lacks:
		l.ask(now, repeats)
	default:
		l.rest(now, in)
		return guards
	}
	return 0
}

// unanswered takes in that the heartbeat under way will not be answered. As late as one that is not answered is a session whose heartbeats have
// failed for so long, one after the other. The next one comes after a pause on the same connection: full jitter, doubling.
func (l *life) unanswered(now instant) (what effects) {
	if l.stage != asking {
		return 0
	}
	if l.failures++; l.failures == 1 {
		l.failing = l.round.began
		if l.round.leads {
			what |= passes
		}
	}
	if now.since(l.failing) >= l.interval {
		what |= l.suspend()
	}
	most := min(time.Millisecond<<min(l.failures, 10), l.interval/2)
	l.stage, l.looks = resting, now.add(leastRest+time.Duration(l.chance()*float64(most)))
	return what | guards
}

// rest ends a round in which the session was proved.
func (l *life) rest(now instant, in surroundings) {
	l.stage, l.failures = resting, 0
	l.pause = spread(l.nextInterval(l.round.leads), sooner-jitter+(2*jitter-sooner)*l.chance())
	pause, spared := l.together(l.round.began.add(l.pause)).since(now), l.sparedUntil(now, in).since(now)
	switch {
	case l.round.leads:
	case l.asleep && !l.sleeps(now, in):
		pause = min(pause, l.proof.slack) // until this heartbeat counts by the next one
	case l.asleep, spared > 0:
		pause = min(pause, spared)
	case l.plain != 0:
		pause = 0 // the next one is not plain
	}
	l.looks = now.add(max(leastRest, pause))
}

// together is the newest of the instants for heartbeats that is not after due.
func (l *life) together(due instant) instant {
	return due - due%instant(max(1, float64(l.interval)*sooner))
}

// nextDue is when the next heartbeat is due: an interval after the newest transaction of the present connection, or the newest plain heartbeat,
// as long as the session is valid for no less than heartbeats alone would see to. If it sleeps, as long as its server is known to reach the
// leader. It is 0 if one is due at once.
func (l *life) nextDue(interval time.Duration, reachedUntil func() instant) instant {
	newest := max(l.proof.newest.sent, l.plain)
	switch {
	case l.proof.static, l.doubted, newest == 0:
		return 0
	case l.asleep:
		return min(l.together(newest.add(interval)), reachedUntil())
	}
	return l.together(min(newest.add(interval), l.validUntil().add(-l.least)))
}

// nextInterval is how long after a heartbeat the next one is due at the latest: sooner of one that proves others, and another for one that was a
// plain read.
func (l *life) nextInterval(leads bool) time.Duration {
	switch {
	case leads:
		return l.interval / 2
	case l.plain != 0:
		return l.plainInterval()
	}
	return l.interval
}

// plainInterval is the interval between heartbeats that are plain reads, with which they and a prober's keep the session as valid as heartbeats
// of its own would: in the worst case, the one that counts was sent that interval and the slack before the prober's newest but one, which was
// sent an interval before the next one is answered. It is no longer than half as long again as the others.
func (l *life) plainInterval() time.Duration {
	age := l.proof.lifetime() - l.least - l.interval - l.proof.slack
	return min(l.interval*3/2, max(l.interval/2, spread(age, -jitter)-l.interval/16))
}

// staysBorrowed says whether another session's heartbeats keep this one as valid as its own would.
func (l *life) staysBorrowed(now instant) bool {
	least := l.least + time.Duration(float64(l.interval)*sooner) + leastRest // see nextDue
	return !l.suspended && !l.doubted && l.validUntil().since(now) >= least
}
