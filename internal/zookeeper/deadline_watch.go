package zookeeper

import (
	"maps"
	"slices"
	"sync"
	"time"
)

// deadlineCheckInterval is for how long a session may be over, on a machine that was suspended, before anybody here notices.
const deadlineCheckInterval = 200 * time.Millisecond

// A deadlineWatch looks at the deadlines of all leases' sessions again and again. Each has a timer of its own, which fires in time while
// the machine runs; but timers stand still while it is suspended, and deadlines do not. Sessions lock themselves first.
type deadlineWatch struct {
	clock func() time.Duration

	mu       sync.Mutex
	sessions map[*Session]struct{}
	rounds   *time.Timer // nil while there are no sessions
}

func (v *deadlineWatch) join(s *Session) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.sessions[s] = struct{}{}
	if v.rounds == nil {
		v.rounds = time.AfterFunc(deadlineCheckInterval, v.round)
	}
}

func (v *deadlineWatch) leave(s *Session) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.sessions, s)
	if len(v.sessions) == 0 && v.rounds != nil {
		v.rounds.Stop()
		v.rounds = nil
	}
}

// round ends the sessions that are over.
func (v *deadlineWatch) round() {
	now := instant(v.clock())
	for _, s := range v.all() {
		if s.isOver(now) {
			s.checkDeadline()
		}
	}
	v.again()
}

func (v *deadlineWatch) all() []*Session {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Collect(maps.Keys(v.sessions))
}

func (v *deadlineWatch) again() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.rounds != nil {
		v.rounds.Reset(deadlineCheckInterval)
	}
}

func (s *Session) isOver(now instant) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.overAt() <= now
}
