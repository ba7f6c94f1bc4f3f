package simulation

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/embedded"
)

// A client is a connection of a client as its server sees it.
type client struct {
	server   *server
	conn     *conn
	open     bool
	input    []byte
	greeted  bool
	wanted   embedded.Handshake
	session  int64
	attached *embedded.Attached // nil before the session is known
	queue    [][]byte           // requests not done yet: reads wait for the transactions before them
}

// take takes in what has come from the client.
func (c *client) take(bytes []byte) {
	c.input = append(c.input, bytes...)
	for c.open && len(c.input) >= 4 && (!c.greeted || c.attached != nil) { // no further while the session is not known
		end := 4 + int(binary.BigEndian.Uint32(c.input))
		if len(c.input) < end {
			return
		}
		frame := slices.Clone(c.input[4:end])
		c.input = c.input[end:]
		c.request(frame)
	}
}

// request takes one request. The transactions among them are under way to the leader at once.
func (c *client) request(frame []byte) {
	s := c.server
	switch {
	case !s.serving:
		c.close()
	case !c.greeted:
		c.greeted = true
		c.greet(frame)
	default:
		s.touch(c.session)
		c.queue = append(c.queue, frame)
		switch embedded.KindOf(frame) {
		case embedded.ReadRequest:
		case embedded.SyncRequest:
			s.sync(c)
		default:
			s.submit(&entry{session: c.session, request: frame, client: c})
		}
		c.read()
	}
}

// read does the reads that are first in the queue.
func (c *client) read() {
	for c.open && len(c.queue) > 0 && embedded.KindOf(c.queue[0]) == embedded.ReadRequest {
		c.attached.Do(c.queue[0])
		c.queue = c.queue[1:]
	}
	c.flush()
}

// answered is told that the transaction which is first in the queue has been applied.
func (c *client) answered() {
	c.queue = c.queue[1:]
	c.read()
}

// greet asks for the session that the client wants.
func (c *client) greet(frame []byte) {
	var ok bool
	c.wanted, ok = embedded.ReadHandshake(frame)
	s := c.server
	switch {
	case !ok || c.wanted.Seen > s.replica.Zxid():
		c.close()
	case c.wanted.Session == 0:
		tick := s.ensemble.options.Tick
		s.ensemble.sessions++
		s.submit(&entry{
			session: int64(s.number+1)<<56 | s.ensemble.sessions,
			opens:   min(max(c.wanted.Timeout, 2*tick), 20*tick), client: c,
		})
	default:
		s.revalidate(c)
	}
}

// welcome answers the handshake: the session is the client's.
func (c *client) welcome(session int64, timeout time.Duration) {
	for _, other := range slices.Clone(c.server.clients) {
		if other != c && other.session == session {
			other.close()
		}
	}
	c.session, c.attached = session, c.server.replica.Attach(session)
	c.send(c.wanted.Welcome(session, timeout))
	c.take(nil)
}

// revalidated takes the leader's word on the session that the client wants to have again.
func (c *client) revalidated(alive bool) {
	if !c.open {
		return
	}
	timeout, known := c.server.replica.Sessions()[c.wanted.Session]
	if alive && known && c.wanted.Genuine {
		c.welcome(c.wanted.Session, timeout)
		return
	}
	c.send(c.wanted.Welcome(0, 0))
	c.close()
}

func (c *client) flush() {
	if c.attached != nil && c.open {
		if frames := c.attached.Take(); len(frames) > 0 {
			c.send(frames)
		}
	}
}

func (c *client) send(frames []byte) {
	conn := c.conn
	c.server.ensemble.down[conn.host][c.server.number].send(func() { conn.take(frames) })
}

// close closes the connection. The client learns of it, if the link lets it.
func (c *client) close() {
	if !c.open {
		return
	}
	c.open = false
	if c.attached != nil {
		c.attached.Detach()
	}
	s, conn := c.server, c.conn
	s.clients = slices.DeleteFunc(slices.Clone(s.clients), func(other *client) bool { return other == c })
	s.ensemble.down[conn.host][s.number].send(conn.end)
}

// touch notes that a session was heard of.
func (s *server) touch(session int64) {
	if s.term != nil {
		s.term.tracker.touch(session)
		return
	}
	s.touched[session] = true
}

// submit brings a transaction to the leader.
func (s *server) submit(wanted *entry) {
	if s.term != nil {
		s.term.take(wanted, nil)
		return
	}
	t := s.upstream
	t.toLeader(func() { t.leader.term.take(wanted, t) })
}

// sync answers a client's request when the server has applied what the leader had proposed when it heard of it.
func (s *server) sync(c *client) {
	if s.term != nil {
		s.term.sync(func() { s.synced(c) })
		return
	}
	t := s.upstream
	t.toLeader(func() { t.leader.term.sync(func() { t.toFollower(func() { s.synced(c) }) }) })
}

func (s *server) synced(c *client) {
	s.at(max(s.due, s.ensemble.now()), func() {
		if c.open && len(c.queue) > 0 {
			c.attached.Do(c.queue[0])
			c.answered()
		}
	})
}

// revalidate asks the leader whether the session that a client wants is alive; it gets its full timeout then.
func (s *server) revalidate(c *client) {
	if s.term != nil {
		c.revalidated(s.term.tracker.move(c.wanted.Session, nil))
		return
	}
	t := s.upstream
	t.toLeader(func() {
		alive := t.leader.term.tracker.move(c.wanted.Session, t)
		t.toFollower(func() { c.revalidated(alive) })
	})
}
