package embedded

import "time"

// A silence is a time in which a Server neither hears nor answers.
type silence struct {
	over  chan struct{} // closed at its end; nil while there is none
	timer *time.Timer
}

// Suspend has the server neither hear nor answer anybody for that long, as if the network had been cut: connections stay
// as they are, and the timeouts of sessions run on. The newest call counts; 0 ends a silence at once.
func (s *Server) Suspend(silent time.Duration) {
	s.ensemble.mu.Lock()
	defer s.ensemble.mu.Unlock()
	s.breakSilence()
	if silent <= 0 || s.closed {
		return
	}
	over := make(chan struct{})
	s.silence = silence{over: over, timer: time.AfterFunc(silent, func() {
		s.ensemble.mu.Lock()
		defer s.ensemble.mu.Unlock()
		if s.silence.over == over {
			s.breakSilence()
		}
	})}
}

// breakSilence ends a silence, if there is one. The ensemble is locked.
func (s *Server) breakSilence() {
	if s.silence.over == nil {
		return
	}
	s.silence.timer.Stop()
	close(s.silence.over)
	s.silence = silence{}
}

// awaitContact returns when there is no silence.
func (s *Server) awaitContact() {
	for {
		s.ensemble.mu.Lock()
		over := s.silence.over
		s.ensemble.mu.Unlock()
		if over == nil {
			return
		}
		<-over
	}
}
