package explore

import "slices"

// ofAttempt are what happens to the write by which a sidecar records an attempt before it tells `begun`, as recipes/once.go does. The ensemble
// carries it out or refuses it at any time after it was sent, even when the request has ended. Its reply may be lost: then the sidecar reads.
func (l *lock) ofAttempt(s *side, may func(bool, string, act)) {
	if !l.once {
		return
	}
	waits := s.awaitsRecord()
	may(waits && s.write == 0 && s.proved > l.now, "has its attempt sent", func(_ *lock, s *side) { s.write = s.place })
	may(s.write != 0, "has its attempt carried out or refused", func(l *lock, s *side) {
		s.recorded = l.carry(s) && s.stage == waiting && !s.down
	})
	may(s.write != 0 && waits, "has its attempt carried out or refused, and hears no reply", func(l *lock, s *side) { l.carry(s) })
	may(waits && s.write == 0 && l.record == s.place, "reads that its attempt is recorded", func(_ *lock, s *side) { s.recorded = true })
}

// carry is the transaction that records an attempt if its place stands. It says whether that is the one of the caller's request.
func (l *lock) carry(s *side) (own bool) {
	token := s.write
	s.write = 0
	if l.mistake != unchecked && !slices.Contains(l.places, place{s.number, token}) {
		return false
	}
	if token < l.record {
		l.wrong = "NoLateWriteChangesARecord: a write of an earlier holder changes the record of a later one"
	}
	l.record = token
	return token == s.place
}

// mayBegin is whether a sidecar may tell a caller whose turn has come.
func (l *lock) mayBegin(s *side) bool {
	return !l.once && !l.numbered || s.recorded || l.mistake == toldFirst
}

// unrecorded is what a side breaks whose caller was told of an attempt, or a number, that the record does not have.
func (l *lock) unrecorded(s *side) string {
	if (l.once || l.numbered) && l.record != s.granted && (s.says() || l.isSure(s)) {
		return "WhatBeginsIsRecorded: a caller was told of what the record does not have"
	}
	return ""
}
