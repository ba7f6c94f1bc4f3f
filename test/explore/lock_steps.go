package explore

import (
	"fmt"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/lease"
)

// ofCaller are what a caller does, of which its sidecar hears at once.
func (l *lock) ofCaller(s *side, may func(bool, string, act)) {
	may(s.stage == idle && s.knows && !s.dead && !s.lost && !s.closed && l.made < l.bounds.places, "asks for the lock", (*lock).ask)
	may(s.stage == waiting && l.mistake == twoPlaces && l.made < l.bounds.places, "has a second place made", (*lock).make)
	holds := s.stage == holding && !s.knows
	may(holds, "releases its hold", func(l *lock, s *side) {
		s.forgetAll()
		l.bring(s, lease.Event{Kind: lease.Stopped, Of: s.request})
		l.bring(s, lease.Event{Kind: lease.Acknowledged, Of: s.request})
		l.end(s, lease.Released)
	})
	may(holds && !s.ofLease, "cancels its stream", func(l *lock, s *side) {
		s.forget(l.others)
		l.end(s, lease.Cancelled)
	})
	may(s.onWay, "reads that its hold has ended", func(l *lock, s *side) {
		s.forget(l.others)
		s.onWay = false
	})
	may(s.onWay, "reads that its hold has ended, and says so for all", func(l *lock, s *side) {
		s.forgetAll()
		s.onWay = false
		l.bring(s, lease.Event{Kind: lease.Acknowledged, Of: s.request})
	})
}

// ofFaults are what a caller does seldom, and what the other process does.
func (l *lock) ofFaults(s *side, may func(bool, string, act)) {
	may(l.others && !s.gone && s.stage != idle, losesOther, func(_ *lock, s *side) {
		s.gone, s.counts[1], s.answers[1] = true, 0, 0
	})
	if s.dead || s.silent || s.stage == idle || l.faulty == l.faults {
		return
	}
	may(true, dies, func(l *lock, s *side) {
		s.forget(l.others)
		s.dead, s.onWay = true, false
		l.faulty++
	})
	if s.down {
		return
	}
	may(s.stage == holding, fallsSilent, func(l *lock, s *side) {
		s.silent = true
		l.bring(s, lease.Event{Kind: lease.Told, Of: s.request, On: ofStream, For: time.Duration(max(0, s.proved-l.now)) * tick})
		l.end(s, lease.Deserted)
		l.faulty++
	})
	may(s.stage == holding && !s.closed, closesLease, func(l *lock, s *side) {
		s.forget(l.others)
		s.closed = true
		l.bring(s, lease.Event{Kind: lease.Closed, On: ofStream})
		l.end(s, lease.Forced)
		l.faulty++
	})
}

// ofAnswers are those to a caller that asks for how long its hold is valid, or its lease. On its lease's stream the latter counts until the
// hold's end is handed over, on which it may come before it.
func (l *lock) ofAnswers(s *side, may func(bool, string, act)) {
	asks := s.held && s.asked < l.asks && s.proved > l.now && !s.lost && !s.closed && !s.down
	told := s.stage == holding || s.stage == ending // or it would be refused, as it is then
	for i, until := range s.answers {
		over := lease.Connection(i + 1)
		asks := asks && s.asks(l, over)
		may(asks && told, fmt.Sprintf("is answered over connection %d about its hold", over), func(l *lock, s *side) {
			l.answer(s, s.request, over)
		})
		about := s.stage == holding || s.stage == ending && l.carried[s.number]
		may(asks && about, fmt.Sprintf("is answered over connection %d about its lease", over), func(l *lock, s *side) {
			l.answer(s, 0, over)
		})
		may(until > l.now, fmt.Sprintf("reads over connection %d that this is valid", over), func(_ *lock, s *side) {
			s.counts[i], s.answers[i] = max(s.counts[i], until), 0
		})
	}
}

// ofSidecar are what a caller's sidecar does.
func (l *lock) ofSidecar(s *side, may func(bool, string, act)) {
	isFirst := l.many || len(l.places) > 0 && l.places[0].token == s.place
	may(s.stage == waiting && !s.first && isFirst, "is seen to be the first", func(_ *lock, s *side) { s.first = true })
	proved := !s.lost && s.proved > l.now
	may(s.stage == waiting && s.first && (proved || l.mistake == grantedUnproved) && l.mayBegin(s), "is granted the lock", (*lock).grant)
	may(s.stage == holding || s.stage == waiting, "has its request ended by another hand", func(l *lock, s *side) { l.end(s, lease.Forced) })
	reads := !s.dead && !s.silent
	may(s.stage == ending && reads, "has its request's end handed to the transport", func(l *lock, s *side) { l.hand(s, lease.Handed) })
	may(s.stage == ending && !reads, "does not read its request's end", func(l *lock, s *side) { l.hand(s, lease.Unread) })
	l.ofPlace(s, may)
	due := s.machine.Deadline()
	may(due != 0 && due <= l.at(), "has its machine told that a time is over", func(l *lock, s *side) {
		l.bring(s, lease.Event{Kind: lease.Ticked})
	})
}

// ofPlace are what leads to the deletion of a place whose request has ended.
func (l *lock) ofPlace(s *side, may func(bool, string, act)) {
	may(s.goes, "has its place deleted", func(l *lock, s *side) {
		l.remove(func(p place) bool { return p.of == s.number && p.token == s.place })
		s.goes, s.place = false, 0
		s.rest()
	})
	may(s.dead && (s.stage == holding || s.stage == waiting), "has its stream end with its connection", func(l *lock, s *side) {
		l.end(s, lease.Deserted)
	})
	for i, watched := range s.watched {
		on := lease.Connection(i + 1)
		closed := s.dead
		if on == beside {
			closed = s.gone || !l.others
		}
		may(watched && closed, fmt.Sprintf("is found to have closed connection %d", on), func(l *lock, s *side) {
			s.watched[i] = false
			l.bring(s, lease.Event{Kind: lease.Departed, On: on})
		})
	}
}

// ofSession are what becomes of a caller's session: that the ensemble ends it only when it is certainly known to be over is what Session.tla
// shows, and is taken for granted.
func (l *lock) ofSession(s *side, may func(bool, string, act)) {
	may(s.stage != idle && !s.lost && s.proved < l.now+validity, "has its session proved", func(l *lock, s *side) { s.proved = l.now + validity })
	may(!s.lost && s.proved <= l.now, losesSession, func(l *lock, s *side) {
		s.lost = true
		l.bring(s, lease.Event{Kind: lease.Lost})
		if s.stage == holding || s.stage == waiting && l.mistake != grantedUnproved {
			l.end(s, lease.Forced)
		}
	})
	may(s.lost && !s.expired && s.proved < l.now, "has its session ended by the ensemble", func(l *lock, s *side) {
		s.expired = true
		l.remove(func(p place) bool { return p.of == s.number })
	})
}
