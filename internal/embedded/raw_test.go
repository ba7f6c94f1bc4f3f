package embedded

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A rawClient speaks the wire protocol byte by byte, so that nothing a library does comes between a test and a server.
type rawClient struct {
	t        *testing.T
	show     *display
	socket   net.Conn
	session  int64
	password []byte
	xid      int32
	heard    []string // events since the last call
	zxid     int64    // of the newest reply
}

// A display makes what two servers answer comparable: transactions are counted from where a script began, sessions
// have the numbers of the clients that opened them, and a script's own directory is left out.
type display struct {
	root     string
	base     int64
	sessions map[int64]string
}

func (d *display) zxid(zxid int64) string {
	if zxid <= 0 {
		return strconv.FormatInt(zxid, 10)
	}
	return fmt.Sprintf("%+d", zxid-d.base)
}

func (d *display) path(path string) string {
	if path == d.root {
		return "/"
	}
	return strings.TrimPrefix(path, d.root)
}

// full is the path on the server of a path in a script.
func (d *display) full(path string) string {
	switch {
	case path == "/":
		return d.root
	case strings.HasPrefix(path, "/zookeeper"), !strings.HasPrefix(path, "/"):
		return strings.TrimPrefix(path, "absolute:")
	}
	return d.root + path
}

func (d *display) stat(in *decoder) string {
	var s Stat
	s.Czxid, s.Mzxid, s.Ctime, s.Mtime = in.Int64(), in.Int64(), in.Int64(), in.Int64()
	s.Version, s.Cversion, s.Aversion, s.Owner = in.Int32(), in.Int32(), in.Int32(), in.Int64()
	s.DataLength, s.ChildCount, s.Pzxid = in.Int32(), in.Int32(), in.Int64()
	return d.statOf(s)
}

func (d *display) statOf(s Stat) string {
	order := "new"
	if s.Ctime > s.Mtime {
		order = "changed before it was made"
	}
	owner := fmt.Sprintf("%#x", uint64(s.Owner))
	if name, known := d.sessions[s.Owner]; known {
		owner = name
	}
	text := fmt.Sprintf("c%s m%s p%s v%d cv%d av%d owner=%s len=%d kids=%d %s", d.zxid(s.Czxid), d.zxid(s.Mzxid),
		d.zxid(s.Pzxid), s.Version, s.Cversion, s.Aversion, owner, s.DataLength, s.ChildCount, order)
	return strings.TrimSuffix(text, " new")
}

// connect opens a connection and asks for a session; 0 for a new one.
func (c *rawClient) connect(address string, timeout int32, session int64, password []byte, readOnly bool) string {
	socket, err := net.Dial("tcp", address)
	if err != nil {
		c.t.Fatal(err)
	}
	c.socket = socket
	out := newFrame()
	out.int32(0)
	out.int64(0)
	out.int32(timeout)
	out.int64(session)
	out.bytes(password)
	if readOnly {
		out.bool(true)
	}
	c.send(out)
	in, err := c.receive()
	if err != nil {
		return "closed"
	}
	_, granted := in.Int32(), in.Int32()
	c.session, c.password = in.Int64(), in.bytes()
	if c.session == 0 {
		return fmt.Sprintf("no session, timeout %d, %d bytes left", granted, in.Left())
	}
	return fmt.Sprintf("timeout %d, %d bytes left", granted, in.Left())
}

func (c *rawClient) send(out *encoder) {
	_ = c.socket.SetDeadline(time.Now().Add(10 * time.Second))
	_, _ = c.socket.Write(out.seal()) // a closed connection shows when the reply is read
}

func (c *rawClient) receive() (*decoder, error) {
	var head [4]byte
	if _, err := io.ReadFull(c.socket, head[:]); err != nil {
		return nil, err
	}
	frame := make([]byte, binary.BigEndian.Uint32(head[:]))
	_, err := io.ReadFull(c.socket, frame)
	return newDecoder(frame), err
}

// A request is one line of a script, ready to be sent.
type request struct {
	op   opcode
	xid  int32 // 0 for the next one
	body encoder
	show func(*decoder) string // of a reply that is not an error
}

// call sends a request and gives what came back: the events before the reply, a line each, and the reply.
func (c *rawClient) call(r request) string {
	c.xid++
	xid := c.xid
	if r.xid != 0 {
		xid = r.xid
	}
	out := newFrame()
	out.int32(xid)
	out.int32(int32(r.op))
	out.buffer = append(out.buffer, r.body.buffer...)
	c.send(out)
	reply := c.await(xid, r.show)
	c.heard = append(c.heard, reply)
	lines := strings.Join(c.heard, "\n")
	c.heard = nil
	return lines
}

func (c *rawClient) await(xid int32, show func(*decoder) string) string {
	for {
		in, err := c.receive()
		if err != nil {
			if timeout, ok := err.(net.Error); ok && timeout.Timeout() {
				return "no reply"
			}
			return "closed"
		}
		got, zxid, code := in.Int32(), in.Int64(), Code(in.Int32())
		if got == xidEvent {
			c.hear(in, zxid)
			continue
		}
		if got != xid {
			return fmt.Sprintf("reply to %d instead of %d", got, xid)
		}
		c.zxid = zxid
		return c.answer(in, code, show)
	}
}

func (c *rawClient) answer(in *decoder, code Code, show func(*decoder) string) string {
	text := "ok"
	if code != codeOK {
		text = code.Error()
	} else if show != nil {
		text = show(in)
	}
	if in.Left() > 0 || in.Failed() {
		text += fmt.Sprintf(" (%d bytes left, failed=%t)", in.Left(), in.Failed())
	}
	return text
}

var eventNames = map[int32]string{1: "made", 2: "deleted", 3: "changed", 4: "children"}

func (c *rawClient) hear(in *decoder, zxid int64) {
	kind, state, path := in.Int32(), in.Int32(), in.Text()
	text := fmt.Sprintf("event: %s %s %s", eventNames[kind], c.show.path(path), c.show.zxid(zxid))
	if state != 3 {
		text += fmt.Sprintf(" state %d", state)
	}
	c.heard = append(c.heard, text)
}
