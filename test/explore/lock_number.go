package explore

import "slices"

// ofNumber are what leads to the record of the one number that there is, before a sidecar tells `granted`, as recipes/semaphore_number.go does.
// The sidecar finds the number free by the record's version. The ensemble carries the write out or refuses it at any time after it was sent,
// even when the request has ended. Its reply may be lost: then the sidecar reads.
func (l *lock) ofNumber(s *side, may func(bool, string, act)) {
	if !l.numbered {
		return
	}
	waits := s.awaitsRecord()
	isFree := !slices.ContainsFunc(l.places, func(p place) bool { return p.token == l.record })
	may(waits && (isFree || l.mistake == lagging), "finds the number free", func(l *lock, s *side) { s.seen = l.version })
	may(waits && s.seen >= 0 && s.write == 0 && s.proved > l.now, "has its number's record sent", func(_ *lock, s *side) {
		s.write, s.sent, s.seen = s.place, s.seen, -1
	})
	may(s.write != 0, "has its number recorded or refused", func(l *lock, s *side) {
		s.recorded = l.bear(s) && s.stage == waiting && !s.down
	})
	may(s.write != 0 && waits, "has its number recorded or refused, and hears no reply", func(l *lock, s *side) { l.bear(s) })
	may(waits && s.write == 0 && l.record == s.place, "reads that its permit bears the number", func(_ *lock, s *side) { s.recorded = true })
}

// awaitsRecord is whether a sidecar waits for what it has to record before it tells its caller whose turn has come.
func (s *side) awaitsRecord() bool {
	return s.stage == waiting && s.first && !s.recorded && !s.lost && !s.down
}

// bear is the transaction that records a bearer if its permit stands and the record is as it was found. It says whether that is the permit of
// the caller's request.
func (l *lock) bear(s *side) (own bool) {
	token := s.write
	s.write = 0
	if !slices.Contains(l.places, place{s.number, token}) || s.sent != l.version && l.mistake != unversioned {
		return false
	}
	l.version++
	l.record = token
	return token == s.place
}
