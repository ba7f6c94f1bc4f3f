package zookeeper

// A seat is a server as a session is connected to it.
type seat struct {
	id   byte   // with which the number of each session begins that was made there
	peer string // where the connection ends
}

// A reach is what is known of whether a server reaches the leader and is heard by it. A follower that is cut off answers plain reads for up to
// syncLimit ticks, while the leader expires the sessions that have sent them. No validity rests on it.
type reach struct {
	sent  instant // when the newest transaction was sent that was answered
	asked instant // when a session that sleeps sent one since then, to find out; 0 if none did
}

// patienceShare is the part of an interval for which sessions that sleep at one server wait for the one that finds out.
const patienceShare = 4

// where is the server of the session, if it is certain which one that is. For a session that has come back over another connection it is the one
// behind the address, where the ensemble lists its servers. The lock is held.
func (s *Session) where() (at seat, known bool) {
	if s.wire == nil || !s.connected {
		return seat{}, false
	}
	if s.wire == s.birth {
		return seat{serverOf(s.id), s.wire.peer}, true
	}
	id, alone := s.client.sharedProofs.serverAt(s.wire.peer)
	return seat{id, s.wire.peer}, alone && s.client.servers.areKnown()
}

// serverAt is the id of the server that was seen behind an address and port, 0 if none was, and whether no other was.
func (c *sharedProofs) serverAt(peer string) (id byte, alone bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ids[peer], !c.shared[peer]
}

// noteReach takes in that a transaction that was sent then has been committed through the session's server. The lock is held.
func (s *Session) noteReach(sent instant) {
	if !s.client.config.Sleep {
		return
	}
	if at, known := s.where(); known {
		s.client.sharedProofs.noteReach(at, sent)
	}
}

func (c *sharedProofs) noteReach(at seat, sent instant) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if sent > c.reaches[at].sent {
		c.reaches[at] = reach{sent: sent}
	}
}

func (c *sharedProofs) reachOf(at seat) reach {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.reaches[at]
}

// askOnce notes that a session is about to find out whether a server reaches the leader, unless another one is.
func (c *sharedProofs) askOnce(at seat, now instant) (first bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.reaches[at]
	if first = known.asked == 0; first {
		known.asked = now
		c.reaches[at] = known
	}
	return first
}

// reachedUntil is until when a session that sleeps takes its server for one that reaches the leader. The lock is held.
func (s *Session) reachedUntil() instant {
	newest, patience := max(s.proof.attached.sent, s.proof.newest.sent), instant(0) // the leader has answered for who comes back
	if at, known := s.where(); known {
		known := s.client.sharedProofs.reachOf(at)
		newest = max(newest, known.sent)
		if known.asked != 0 {
			patience = known.asked.add(s.interval / patienceShare)
		}
	}
	return max(newest.add(s.unheard), patience)
}

// findsOut says whether the session, which sleeps, is to send a transaction to find out whether its server reaches the leader: the first one of
// the sessions there, and after a while all, for then it is in doubt. The lock is held.
func (s *Session) findsOut(now instant) bool {
	if now < s.reachedUntil() {
		return false
	}
	at, known := s.where()
	return !known || s.client.sharedProofs.askOnce(at, now) || now >= s.reachedUntil()
}
