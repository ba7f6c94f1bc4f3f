package embedded

import (
	"bytes"
	"encoding/binary"
	"io"
	"time"
)

// greet answers the first thing a client sends: a command of four letters, or the request for a session. It says
// whether requests may follow.
func (c *connection) greet() bool {
	var head [4]byte
	if _, err := io.ReadFull(c.input, head[:]); err != nil {
		return false
	}
	c.server.awaitContact()
	if c.command(string(head[:])) {
		return false
	}
	frame, err := c.body(binary.BigEndian.Uint32(head[:]))
	if err != nil {
		return false
	}
	return c.connect(newDecoder(frame))
}

// A connectRequest asks for a session: a new one if the id is 0.
type connectRequest struct {
	seen          int64 // newest zxid the client knows of
	timeout       time.Duration
	session       int64
	password      []byte
	knowsReadOnly bool // the client has the field for read-only servers, and expects it in the reply
}

func readConnect(in *decoder) connectRequest {
	_ = in.Int32() // version of the protocol, always 0
	r := connectRequest{
		seen:    in.Int64(),
		timeout: time.Duration(in.Int32()) * time.Millisecond,
		session: in.Int64(), password: in.bytes(),
	}
	if in.Left() > 0 {
		r.knowsReadOnly = true
		in.Bool()
	}
	return r
}

// connect opens the session or takes it up again. A session that is not alive, or another password, is answered with
// the session 0.
func (c *connection) connect(in *decoder) bool {
	wanted := readConnect(in)
	e := c.server.ensemble
	e.mu.Lock()
	defer e.mu.Unlock()
	if in.Failed() || wanted.seen > e.zxid || e.closed || c.server.closed {
		return false
	}
	c.received++
	c.server.received++
	if wanted.session == 0 {
		c.session = e.openSession(wanted.timeout, c)
	} else {
		c.session = e.takeUp(wanted, c)
	}
	c.lastOperation, c.lastZxid = "SESS", e.zxid
	c.welcome(wanted.knowsReadOnly)
	if c.session == nil {
		return false
	}
	e.touch(c.session)
	return true
}

// takeUp attaches a session to a new connection. The old connection is cut in any case, as ZooKeeper does before it
// looks at the password.
func (e *Ensemble) takeUp(wanted connectRequest, c *connection) *serverSession {
	s, alive := e.sessions[wanted.session]
	if !alive || s.condemned {
		return nil
	}
	if _, local := s.holder.(*localHolder); local {
		return nil // has no connection that it could have lost
	}
	if old, attached := s.holder.(*connection); attached {
		old.end()
		s.holder = nobody{}
	}
	if !bytes.Equal(wanted.password, passwordOf(s.id)) {
		return nil
	}
	s.timeout = e.negotiate(wanted.timeout)
	s.holder = c
	return s
}

// welcome answers the request for a session.
func (c *connection) welcome(knowsReadOnly bool) {
	out := newFrame()
	out.int32(0)
	if c.session == nil {
		out.int32(0)
		out.int64(0)
		out.bytes(make([]byte, passwordLength))
	} else {
		out.int32(int32(c.session.timeout.Milliseconds()))
		out.int64(c.session.id)
		out.bytes(passwordOf(c.session.id))
	}
	if knowsReadOnly {
		out.bool(false)
	}
	c.queue(out.seal())
}

const passwordLength = 16

// passwordOf is a session's password: as in ZooKeeper, what java.util.Random makes of the id and a constant.
func passwordOf(session int64) []byte {
	const multiplier, mask = 0x5DEECE66D, 1<<48 - 1
	state := (uint64(session) ^ 0xB3415C00 ^ multiplier) & mask
	password := make([]byte, 0, passwordLength)
	for len(password) < passwordLength {
		state = (state*multiplier + 0xB) & mask
		password = binary.LittleEndian.AppendUint32(password, uint32(state>>16))
	}
	return password
}
