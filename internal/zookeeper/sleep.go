package zookeeper

import (
	"math"
	"time"
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

// maySleep says whether the session is one that sleeps: what it owns is known, which it is not of one that was come back to. The lock is held.
func (s *Session) maySleep() bool {
	return s.client.config.Sleep && s.birth != nil && !s.brief && !s.proof.static && s.err == nil && !s.closing && !s.suspended && !s.doubted
}

// mayFallAsleep says whether the session sleeps, or is not over yet and may.
func (l *life) mayFallAsleep(now instant) bool {
	return l.isUnused(now) && (l.asleep || now < l.validUntil())
}

// isUnused says whether nothing has stood on the session for a timeout, and nobody has had it proved.
func (l *life) isUnused(now instant) bool {
	return l.bytes == 0 && len(l.placeBarriers) == 0 && now.since(l.wanted) >= l.negotiated
}

// want notes that something is to stand on the session from now on, and has it proved again if it sleeps.
func (l *life) want(now instant) (what effects) {
	if l.asleep {
		l.assure(now)
		what = summons
	}
	l.wanted = now
	return what
}

// assure has whoever asks for how long he may count on a session that sleeps be told a while, unless it is being woken: then it would have to
// be proved for longer and longer.
func (l *life) assure(now instant) {
	if l.isUnused(now) {
		l.assured = now.add(l.least)
	}
}

// endSleep ends the sleep of a session that is wanted, once it is proved for as long as it takes to prove it again, and for as long as any
// caller was told.
func (l *life) endSleep(now instant) effects {
	until := l.validUntil()
	isProved := until >= l.assured && until.since(now) >= min(l.least, 2*l.interval)
	if !l.asleep || l.isUnused(now) || l.closing || l.err != nil || !isProved {
		return 0
	}
	l.asleep = false
	return guards | wakes
}

// assuredFor is AssuredFor of a life.
func (l *life) assuredFor(now instant) time.Duration {
	if !l.asleep || l.closing || l.err != nil {
		return l.validFor(now)
	}
	l.assure(now)
	return max(0, l.assured.since(now))
}

// AssuredFor is for how long a caller may count on the session who asks: as long as it is valid or, while it sleeps, as what will stand on it
// will be valid at least. Nothing stands on it then that its end would give to others.
func (s *Session) AssuredFor() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.assuredFor(s.now())
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
	now := s.now()
	s.follow(s.want(now), now)
}
