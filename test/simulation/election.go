package simulation

import "time"

// seekSoon has a server that looks for a leader do so after the time that votes take.
func (s *server) seekSoon() {
	wait := 50*time.Millisecond + time.Duration(s.ensemble.between[s.number][s.number].dice.Int64N(int64(200*time.Millisecond)))
	s.after(wait, s.seek)
}

// seek follows the leader there is, or holds an election.
func (s *server) seek() {
	if s.role != looking {
		return
	}
	if leader := s.leaderInReach(); leader != nil {
		s.follow(leader)
		return
	}
	best := s
	for _, other := range s.ensemble.servers {
		if other != s && other.role == looking && !other.frozen && s.reaches(other) && !best.history().atLeast(other.history()) {
			best = other
		}
	}
	if s.hasQuorum() {
		best.lead()
	}
	s.seekSoon()
}

// hasQuorum says whether another server takes part in an election.
func (s *server) hasQuorum() bool {
	for _, other := range s.ensemble.servers {
		if other != s && other.role == looking && !other.frozen && s.reaches(other) {
			return true
		}
	}
	return false
}

func (s *server) leaderInReach() *server {
	var newest *server
	for _, other := range s.ensemble.servers {
		if other.term == nil || other.frozen || !s.reaches(other) || other.term.epoch < s.accepted {
			continue
		}
		if newest == nil || newest.term.epoch < other.term.epoch {
			newest = other
		}
	}
	return newest
}

func (s *server) reaches(other *server) bool {
	between := &s.ensemble.between
	return !between[s.number][other.number].cut && !between[other.number][s.number].cut
}

// follow connects to a leader and takes its log over.
func (s *server) follow(leader *server) {
	t := &tie{leader: leader, follower: s}
	s.role, s.upstream = following, t
	s.hear(t)
	log := s.history()
	t.toLeader(func() { leader.admit(t, log) })
	s.watch(t)
}

// hear notes that the leader was heard of.
func (s *server) hear(t *tie) { t.heardByFollower = s.ensemble.now() }

// watch gives the leader up when it has not been heard of for long.
func (s *server) watch(t *tie) {
	s.at(t.heardByFollower+s.ensemble.syncTime(), func() {
		switch {
		case s.upstream != t:
		case s.ensemble.now() >= t.heardByFollower+s.ensemble.syncTime():
			s.lookAgain()
		default:
			s.watch(t)
		}
	})
}

// takeOver makes the leader's log the follower's.
func (s *server) takeOver(t *tie, epoch int, log []*entry) {
	s.hear(t)
	if epoch < s.accepted {
		s.lookAgain()
		return
	}
	s.accepted, s.current = epoch, epoch
	s.log = append([]*entry(nil), log...)
	length := len(log)
	t.toLeader(func() { t.leader.term.acknowledge(t, length) })
}

// serve starts serving clients, with all that is committed.
func (s *server) serve(t *tie, committed int) {
	s.hear(t)
	s.learn(committed)
	s.catchUp()
	s.serving = true
}

// append takes a proposal into the log.
func (s *server) append(t *tie, proposed *entry) {
	s.hear(t)
	s.log = append(s.log, proposed)
	length := len(s.log)
	t.toLeader(func() { t.leader.term.acknowledge(t, length) })
}

// answerPing tells the leader of the sessions that were heard of since the last ping.
func (s *server) answerPing(t *tie) {
	s.hear(t)
	touched := s.touched
	s.touched = map[int64]bool{}
	t.toLeader(func() { t.leader.term.heard(t, touched) })
}
