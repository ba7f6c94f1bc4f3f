package simulation

import "slices"

// A term is a server's time as leader.
type term struct {
	server  *server
	epoch   int
	ties    []*tie
	active  bool // a quorum has its log
	tracker *tracker
	syncs   []pendingSync
}

// A pendingSync waits until so much of the log is committed.
type pendingSync struct {
	length int
	answer func()
}

// lead begins a term.
func (s *server) lead() {
	s.ensemble.epoch++
	t := &term{server: s, epoch: s.ensemble.epoch, tracker: newTracker(s)}
	s.role, s.term = leading, t
	s.after(s.ensemble.options.Tick/2, t.tick)
	s.after(s.ensemble.syncTime(), func() {
		if s.term == t && !t.active {
			s.lookAgain()
		}
	})
}

// end ends the term: the followers learn it, if the links let them.
func (t *term) end() {
	for _, c := range t.ties {
		c.close(t.server)
	}
	t.ties = nil
}

// admit gives a follower the log; what is proposed from now on follows. A leader without a quorum gives up for a follower that is ahead of it.
func (s *server) admit(c *tie, its history) {
	t := s.term
	if t == nil {
		c.close(s)
		return
	}
	if !t.active && !s.history().atLeast(its) {
		c.close(s)
		s.lookAgain()
		return
	}
	s.accepted = t.epoch // not sooner: whom nobody has followed goes back to the leader that there is
	c.heardByLeader = s.ensemble.now()
	t.ties = append(t.ties, c)
	log, epoch := slices.Clip(t.server.log), t.epoch
	c.toFollower(func() { c.follower.takeOver(c, epoch, log) })
}

// drop forgets a follower. Without any there is no quorum.
func (t *term) drop(c *tie) {
	t.ties = slices.DeleteFunc(slices.Clone(t.ties), func(other *tie) bool { return other == c })
	c.close(t.server)
	if len(t.ties) == 0 && t.active {
		t.server.lookAgain()
	}
}

// tick is done every half tick: the followers are pinged, and those that have not been heard of are given up.
func (t *term) tick() {
	s := t.server
	if s.term != t {
		return
	}
	for _, c := range t.ties {
		if s.ensemble.now()-c.heardByLeader > s.ensemble.syncTime() {
			t.drop(c)
			continue
		}
		c.toFollower(func() { c.follower.answerPing(c) })
	}
	s.after(s.ensemble.options.Tick/2, t.tick)
}

// heard takes a follower's report.
func (t *term) heard(c *tie, touched map[int64]bool) {
	c.heardByLeader = t.server.ensemble.now()
	for session := range touched {
		t.tracker.touch(session)
	}
}

// acknowledge notes how much of the log a follower has. One of them and the leader are a quorum.
func (t *term) acknowledge(c *tie, length int) {
	c.heardByLeader = t.server.ensemble.now()
	c.acknowledged = max(c.acknowledged, length)
	if !t.active {
		t.begin(length)
	}
	t.commit(c.acknowledged)
	if !c.serving {
		c.serving = true
		committed := t.server.committed
		c.toFollower(func() { c.follower.serve(c, committed) })
	}
}

// begin begins to serve: every session gets its full timeout.
func (t *term) begin(length int) {
	t.active = true
	t.server.current, t.server.ensemble.begun = t.epoch, t.epoch
	t.commit(length)
	t.server.catchUp()
	for session, timeout := range t.server.replica.Sessions() {
		t.tracker.add(session, timeout)
	}
	t.tracker.run()
	t.server.serving = true
}

// commit commits the log up to a length.
func (t *term) commit(length int) {
	s := t.server
	if length <= s.committed {
		return
	}
	for position := s.committed; position < length; position++ {
		s.ensemble.commit(position, s.log[position])
	}
	s.learn(length)
	for _, c := range t.ties {
		if c.serving {
			c.toFollower(func() { c.follower.learnFrom(c, length) })
		}
	}
	t.answerSyncs()
}

// sync answers when all that is proposed has been committed: at once if it has been. It asks no quorum whether this is still
// the leader, as ZooKeeper's does not.
func (t *term) sync(answer func()) {
	t.syncs = append(t.syncs, pendingSync{length: len(t.server.log), answer: answer})
	t.answerSyncs()
}

func (t *term) answerSyncs() {
	for len(t.syncs) > 0 && t.syncs[0].length <= t.server.committed {
		t.syncs[0].answer()
		t.syncs = t.syncs[1:]
	}
}

// take takes a client's transaction from where the client is attached. One of a session that is attached elsewhere by now is
// refused, but for the end of the session.
func (t *term) take(wanted *entry, from *tie) {
	wanted.moved = !wanted.closes() && t.tracker.moved(wanted.session, from)
	t.propose(wanted)
	if wanted.opens != 0 {
		t.tracker.move(wanted.session, from)
	}
}

// propose puts an entry into the log.
func (t *term) propose(proposed *entry) {
	proposed.epoch = t.epoch
	if proposed.opens != 0 {
		t.tracker.add(proposed.session, proposed.opens)
	}
	if proposed.ends || proposed.closes() {
		t.tracker.remove(proposed.session)
	}
	t.server.log = append(t.server.log, proposed)
	for _, c := range t.ties {
		c.toFollower(func() { c.follower.append(c, proposed) })
	}
}

func (s *server) learnFrom(t *tie, committed int) {
	s.hear(t)
	s.learn(committed)
}
