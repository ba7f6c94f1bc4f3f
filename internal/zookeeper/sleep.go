package zookeeper

import (
	"math"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/trace"
)

// A sleepState is whether a session sleeps: nothing has stood on it for a timeout, so that it sends plain reads alone, for which the ensemble
// keeps it and which commit nothing. See the package comment. The session's lock guards it.
type sleepState struct {
	asleep  bool
	wanted  instant // when something was to be made on the session last, or given up, or somebody had it proved
	due     instant // by when it must be proved: a lifetime after something was made on it as it slept
	assured instant // until when whoever has asked as it slept counts on what will stand on it; it stays as it is while the session is woken

	unheard time.Duration // see Config.unheard
}

// never is an instant that does not come.
const never = instant(math.MaxInt64)

// sleeps says whether the session sleeps, and has it fall asleep if it may.
func (s *Session) sleeps() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if !s.maySleep() || !s.isUnused(now) || !s.asleep && now >= s.validUntil() {
		return false
	}
	if !s.asleep {
		s.part()
		s.asleep = true
		trace.Tell(trace.Step{Kind: trace.Slept, Session: s.id})
	}
	return true
}

// maySleep says whether the session is one that sleeps: what it owns is known, which it is not of one that was come back to. The lock is held.
func (s *Session) maySleep() bool {
	return s.client.config.Sleep && s.birth != nil && !s.brief && !s.proof.static && s.err == nil && !s.closing && !s.suspended && !s.doubted
}

// isUnused says whether nothing has stood on the session for a timeout, and nobody has had it proved. The lock is held.
func (s *Session) isUnused(now instant) bool {
	return s.bytes == 0 && len(s.places) == 0 && len(s.placeBarriers) == 0 && now.since(s.wanted) >= s.negotiated
}

// want notes that something is to stand on the session from now on, and has it proved again if it sleeps. The lock is held.
func (s *Session) want() {
	now := s.now()
	if s.asleep {
		s.assure(now)
		s.summon()
	}
	s.wanted = now
}

// assure has whoever asks for how long he may count on a session that sleeps be told a while, unless it is being woken: then it would have to
// be proved for longer and longer. The lock is held.
func (s *Session) assure(now instant) {
	if s.isUnused(now) {
		s.assured = now.add(s.least)
	}
}

// endSleep ends the sleep of a session that is wanted, once it is proved for as long as it takes to prove it again, and for as long as any
// caller was told. The lock is held.
func (s *Session) endSleep() {
	if !s.asleep {
		return
	}
	until, now := s.validUntil(), s.now()
	left := until.since(now)
	if !s.isUnused(now) && !s.closing && s.err == nil && until >= s.assured && left >= min(s.least, 2*s.interval) {
		s.asleep = false
		trace.Tell(trace.Step{Kind: trace.Woken, Session: s.id})
		s.guard.Reset(left)
		s.change()
	}
}

// mustBeProved has a session that sleeps end if it is not proved in time: something is about to be made on it. The lock is held.
func (s *Session) mustBeProved() {
	if s.want(); s.asleep && s.bytes == 0 {
		s.due = s.wanted.add(s.proof.lifetime())
		s.guard.Reset(s.proof.lifetime())
	}
}

// overAt is when the session is over, unless something comes in between: when it is not valid any more or, if it sleeps, when it must be
// proved. The lock is held.
func (s *Session) overAt() instant {
	switch {
	case !s.asleep:
		return s.validUntil()
	case len(s.placeBarriers) > 0:
		return min(s.due, s.barrier.add(s.proof.lifetime()))
	case s.bytes > 0:
		return s.due
	}
	return never
}

// AssuredFor is for how long a caller may count on the session who asks: as long as it is valid or, while it sleeps, as what will stand on it
// will be valid at least. Nothing stands on it then that its end would give to others.
func (s *Session) AssuredFor() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.asleep || s.closing || s.err != nil {
		return s.validFor()
	}
	now := s.now()
	s.assure(now)
	return max(0, s.assured.since(now))
}

// Asleep says whether the session sleeps, or has not been proved since it did.
func (s *Session) Asleep() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asleep
}

// wake has the session proved again if it sleeps.
func (s *Session) wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.want()
}

// whileItWakes is how long to wait after a heartbeat of a session that sleeps and is to be proved: until it counts by the next one.
func (s *Session) whileItWakes() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.proof.slack
}
