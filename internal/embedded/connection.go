package embedded

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

const (
	longestFrame   = 0xfffff  // bytes; jute.maxbuffer
	keptFrame      = 16 << 10 // bytes of a frame's buffer that are kept for the next one
	enoughPending  = 1 << 20  // bytes of replies that wait before further requests are read
	tooMuchPending = 64 << 20 // bytes of events that wait before the client is given up
	handshakeTime  = 10 * time.Second
	farewellTime   = time.Second // for the last replies to a client that may not read them
)

var errFrame = errors.New("frame of a length that cannot be")

// A connection is one client's. What it holds lies behind the ensemble's mutex, save for what only its reading
// goroutine uses.
type connection struct {
	server      *Server
	socket      net.Conn
	input       *bufio.Reader
	frame       []byte // of the reading goroutine
	established time.Time

	session    *serverSession // nil before the handshake
	identities []Identity
	pending    []byte // frames to be sent
	wake       chan struct{}
	drained    *sync.Cond
	closing    bool // what is pending is the last

	received, sent int64
	lastOperation  string
	lastXid        int32
	lastZxid       int64
}

func newConnection(s *Server, socket net.Conn) *connection {
	c := &connection{
		server: s, socket: socket, input: bufio.NewReader(socket), established: time.Now(),
		wake: make(chan struct{}, 1), drained: sync.NewCond(&s.ensemble.mu), lastOperation: "NA",
	}
	c.identities = []Identity{{Scheme: "ip", ID: c.address()}}
	return c
}

// address is the client's, without its port.
func (c *connection) address() string {
	host, _, _ := net.SplitHostPort(c.socket.RemoteAddr().String())
	return host
}

func (c *connection) caller() caller {
	return caller{session: c.session.id, identities: c.identities}
}

// read handles one frame after the other until the client or the session has gone.
func (c *connection) read() {
	defer c.leave()
	_ = c.socket.SetReadDeadline(time.Now().Add(handshakeTime))
	if !c.greet() {
		return
	}
	_ = c.socket.SetReadDeadline(time.Time{})
	for {
		frame, err := c.next()
		c.server.awaitContact()
		if err != nil || !c.handle(frame) {
			return
		}
	}
}

// next reads a frame. It is good until the next call.
func (c *connection) next() ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(c.input, head[:]); err != nil {
		return nil, err
	}
	return c.body(binary.BigEndian.Uint32(head[:]))
}

func (c *connection) body(length uint32) ([]byte, error) {
	if length > longestFrame {
		return nil, errFrame
	}
	if int(length) > cap(c.frame) || cap(c.frame) > keptFrame {
		c.frame = make([]byte, length)
	}
	c.frame = c.frame[:length]
	_, err := io.ReadFull(c.input, c.frame)
	return c.frame, err
}

// leave takes the connection out of the books and has what is pending sent.
func (c *connection) leave() {
	e := c.server.ensemble
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(c.server.connections, c)
	e.nodeWatches.forget(c)
	e.childWatches.forget(c)
	if c.session != nil && c.session.holder == c {
		c.session.holder = nobody{}
	}
	c.end()
}

// end lets what is pending be the last. The ensemble is locked.
func (c *connection) end() {
	if c.closing {
		return
	}
	c.closing = true
	_ = c.socket.SetDeadline(time.Now().Add(farewellTime))
	c.drained.Broadcast()
	c.signal()
}

// ended implements holder.
func (c *connection) ended(error) { c.end() }

// A nobody holds the sessions whose connection is cut.
type nobody struct{}

func (nobody) ended(error) {}

// queue has a frame sent. The ensemble is locked.
func (c *connection) queue(frame []byte) {
	c.pending = append(c.pending, frame...)
	c.sent++
	c.server.sent++
	c.signal()
}

func (c *connection) signal() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// Notify implements watcher: it tells the client of an event, if it may read the node.
func (c *connection) Notify(happened event) {
	if c.closing || permitted(happened.acl, permRead, c.identities) != nil {
		return
	}
	if len(c.pending) > tooMuchPending {
		c.pending = nil
		c.end()
		return
	}
	out := newFrame()
	out.header(xidEvent, happened.zxid, codeOK)
	out.int32(int32(happened.kind))
	out.int32(3) // the state of the session: connected
	out.string(happened.path)
	c.queue(out.seal())
}

// flush sends what is pending until the connection is closing, and closes it.
func (c *connection) flush() {
	defer c.abandon()
	for range c.wake {
		c.server.awaitContact()
		frames, last := c.take()
		if len(frames) > 0 {
			if _, err := c.socket.Write(frames); err != nil {
				return
			}
		}
		if last {
			return
		}
	}
}

// abandon closes the connection when nothing more can be sent.
func (c *connection) abandon() {
	c.server.ensemble.mu.Lock()
	defer c.server.ensemble.mu.Unlock()
	c.end()
	_ = c.socket.Close()
}

// take gives what is pending, and whether it is the last.
func (c *connection) take() (frames []byte, last bool) {
	c.server.ensemble.mu.Lock()
	defer c.server.ensemble.mu.Unlock()
	frames, c.pending = c.pending, nil
	c.drained.Broadcast()
	return frames, c.closing
}
