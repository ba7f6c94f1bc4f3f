package explore

import (
	"slices"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/lease"
)

// ofRestart are what happens when the process of a caller's sidecar is killed, and another one takes its place. The new one knows what the
// ensemble keeps and what the journal does: until when callers may count on what the process before had told, and whether that was over other
// connections than the stream's. All else it hears from its caller.
func (l *lock) ofRestart(s *side, may func(bool, string, act)) {
	kill := !s.down && l.killed < l.kills && l.carried[s.number] && s.stage != idle && !s.lost && !s.closed
	may(kill, killsSidecar, func(l *lock, s *side) {
		l.killed++
		if s.stage == holding && !s.knows {
			s.counts[0] = max(s.counts[0], s.proved) // which its stream has told
		}
		s.down, s.before, s.machine, s.watched = true, s.proved, lease.Machine{}, [2]bool{}
		s.seen = -1
		s.first, s.recorded, s.goes, s.onWay, s.unclaimed = false, false, false, false, false
	})
	l.ofAbsence(s, may)
	free := !s.shared || s.before <= l.now
	may(s.unclaimed && !s.down && free, "has the place deleted that it did not claim", func(l *lock, s *side) {
		l.remove(func(p place) bool { return p.of == s.number && p.token == s.place })
		s.unclaimed, s.place = false, 0
		s.rest()
	})
}

// ofAbsence are how the time ends in which a caller has no sidecar.
func (l *lock) ofAbsence(s *side, may func(bool, string, act)) {
	may(s.down && !s.dead && !s.silent && !s.expired, "comes back to its lease", (*lock).comeBack)
	may(s.down && !s.expired && s.proved < l.now, "has its session ended, to which no process has come back", func(l *lock, s *side) {
		s.lost, s.expired = true, true
		l.remove(func(p place) bool { return p.of == s.number })
	})
}

// comeBack is how a process goes on with the lease of the process before: as service does in lease_resume.go.
func (l *lock) comeBack(s *side) {
	s.down, s.proved = false, l.now+validity
	remember := func(of lease.ID) {
		if l.mistake == forgotten {
			return
		}
		still := time.Duration(s.before-l.now) * tick
		if of == 0 {
			l.bring(s, lease.Event{Kind: lease.Told, On: ofStream, For: still})
		}
		if s.shared {
			l.bring(s, lease.Event{Kind: lease.Told, Of: of, On: outOfSight, For: still})
		}
	}
	remember(0)
	held := s.stage != waiting
	if held && s.knows {
		s.stage, s.unclaimed = ended, s.place != 0
		s.rest()
		return
	}
	s.request++
	l.bring(s, lease.Event{Kind: lease.Began, Of: s.request, On: ofStream, Carried: true})
	remember(s.request)
	stands := slices.Contains(l.places, place{s.number, s.place})
	switch {
	case !held:
	case stands && l.places[0].of == s.number:
		l.grant(s)
	default:
		l.bring(s, lease.Event{Kind: lease.Ended, Of: s.request, Parting: lease.Forced, Free: !stands})
		s.stage = ending
	}
}
