package simulation

import (
	"slices"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/embedded"
)

// An entry is one transaction as the leader has put it into the log. There is one of each, which all servers share.
type entry struct {
	epoch   int
	session int64         // 0 for what the leader does of itself
	opens   time.Duration // the timeout of the session that it opens, or 0
	ends    bool          // it ends the session
	request []byte        // the client's, if it neither opens nor ends a session
	client  *client       // who waits for it, or nil
	moved   bool          // it is refused, since the session is attached elsewhere
}

// closes says whether it is the client's word that the session is over.
func (e *entry) closes() bool {
	return e.request != nil && embedded.KindOf(e.request) == embedded.CloseRequest
}

// apply applies the entry to the state of a server that no client waits at.
func (e *entry) apply(to *embedded.Replica) {
	switch {
	case e.opens != 0:
		to.Open(e.session, e.opens)
	case e.moved:
		to.Refuse()
	case e.ends:
		to.End(e.session)
	default:
		to.Apply(e.session, e.request)
	}
}

// A history is what decides who may lead: the newest term of office that a server has been part of, and how much of it.
type history struct {
	epoch  int // of the leader whose log this is
	newest int // epoch of the last entry
	length int
}

func (h history) atLeast(other history) bool {
	if h.epoch != other.epoch {
		return h.epoch > other.epoch
	}
	if h.newest != other.newest {
		return h.newest > other.newest
	}
	return h.length >= other.length
}

func (s *server) history() history {
	h := history{epoch: s.current, length: len(s.log)}
	if len(s.log) > 0 {
		h.newest = s.log[len(s.log)-1].epoch
	}
	return h
}

// learn takes in how much of the log is committed. It is applied some time later.
func (s *server) learn(committed int) {
	for s.committed < min(committed, len(s.log)) {
		s.committed++
		s.due = max(s.due, s.ensemble.now()+s.lag)
		s.at(s.due, s.applyNext)
	}
}

// applyNext applies the next entry and answers the client that waits for it, if it is attached here.
func (s *server) applyNext() {
	if s.applied == s.committed {
		return
	}
	next := s.log[s.applied]
	s.applied++
	c := next.client
	waiting := c != nil && c.server == s && c.open && c.attached != nil && next.request != nil
	switch {
	case waiting && next.moved:
		next.apply(s.replica)
		c.close()
	case waiting:
		c.attached.Do(next.request)
		c.answered()
	default:
		next.apply(s.replica)
	}
	s.attend(next)
	s.flush()
}

// catchUp applies all that is committed at once, as a server does when it starts to serve.
func (s *server) catchUp() {
	for s.applied < s.committed {
		s.applyNext()
	}
}

// attend does what an entry that was applied means for the clients attached here.
func (s *server) attend(applied *entry) {
	if c := applied.client; applied.opens != 0 && c != nil && c.server == s && c.open {
		c.welcome(applied.session, applied.opens)
	}
	if s.replica.Alive(applied.session) || applied.session == 0 {
		return
	}
	for _, c := range slices.Clone(s.clients) {
		if c.session == applied.session {
			c.flush()
			c.close()
		}
	}
}
