package embedded

import (
	"bytes"
	"encoding/binary"
	"maps"
	"net"
	"slices"
	"sync"
	"time"
)

// A Replica is what one server of several knows: the tree, the sessions, and the clients attached to it with their
// watches. It does nothing by itself: whoever keeps it has transactions applied, on every replica the same ones in the
// same order, and ends the sessions. It has no lock, no timer and no goroutine.
type Replica struct{ server *Server }

// NewReplica makes a replica to which no transaction has been applied.
func NewReplica() *Replica {
	e := New(Options{})
	e.closed = true // it sets no alarms
	return &Replica{server: &Server{ensemble: e, connections: map[*connection]struct{}{}}}
}

// List has the tree show which servers the ensemble consists of, in the node for that.
func (r *Replica) List(config []byte) {
	r.server.ensemble.tree.nodes["/zookeeper/config"].data = config
}

// Zxid is that of the last transaction applied.
func (r *Replica) Zxid() int64 { return r.server.ensemble.zxid }

// Open applies the opening of a session.
func (r *Replica) Open(session int64, timeout time.Duration) {
	e := r.server.ensemble
	e.zxid++
	e.sessions[session] = &serverSession{id: session, timeout: timeout, holder: nobody{}}
}

// End applies the end of a session: what it owned is deleted.
func (r *Replica) End(session int64) {
	e := r.server.ensemble
	if s, alive := e.sessions[session]; alive {
		e.endSession(s, causeExpired)
		return
	}
	e.zxid++
}

// Refuse applies a transaction that the leader has refused.
func (r *Replica) Refuse() { r.server.ensemble.zxid++ }

// Alive says whether a session is open.
func (r *Replica) Alive(session int64) bool {
	return r.server.ensemble.Alive(session)
}

// Sessions are those that are alive, with their timeouts.
func (r *Replica) Sessions() map[int64]time.Duration {
	alive := map[int64]time.Duration{}
	for id, s := range r.server.ensemble.sessions {
		alive[id] = s.timeout
	}
	return alive
}

// Apply applies a client's request that is a transaction. The client may be attached to another replica, and its session may
// be over: that is what it is told then.
func (r *Replica) Apply(session int64, request []byte) {
	r.attach(session).do(request)
}

// Names lists a node's children in order.
func (r *Replica) Names(path string) []string {
	return r.server.ensemble.tree.namesIn(path)
}

// Stat gives a node's Stat.
func (r *Replica) Stat(path string) (Stat, bool) {
	n, err := r.server.ensemble.tree.Find(path)
	if err != nil {
		return Stat{}, false
	}
	return n.Describe(), true
}

// Data gives a node's data; none if it is missing.
func (r *Replica) Data(path string) []byte {
	n, err := r.server.ensemble.tree.Find(path)
	if err != nil {
		return nil
	}
	return bytes.Clone(n.data)
}

// Paths lists all nodes in order.
func (r *Replica) Paths() []string {
	return slices.Sorted(maps.Keys(r.server.ensemble.tree.nodes))
}

// An Attached is a client attached to a replica: what it asks is answered with what the replica knows, and its watches
// fire when the replica learns of a change.
type Attached struct{ connection *connection }

// Attach attaches a session's client.
func (r *Replica) Attach(session int64) *Attached { return r.attach(session) }

func (r *Replica) attach(session int64) *Attached {
	e := r.server.ensemble
	return &Attached{connection: &connection{
		server: r.server, socket: nowhere{}, session: e.sessions[session],
		identities: []Identity{{Scheme: "ip", ID: "127.0.0.1"}},
		wake:       make(chan struct{}, 1), drained: sync.NewCond(&e.mu),
	}}
}

// Do does one request, a read or a transaction whose turn it is.
func (a *Attached) Do(request []byte) { a.do(request) }

func (a *Attached) do(request []byte) {
	c, in := a.connection, newDecoder(request)
	xid, op := in.Int32(), opcode(in.Int32())
	if s := c.session; s == nil || c.server.ensemble.sessions[s.id] != s {
		if kind := KindOf(request); kind == WriteRequest || kind == CloseRequest {
			c.server.ensemble.zxid++
		}
		c.reply(xid, "NA", codeSessionExpired, nil)
		return
	}
	c.dispatch(xid, op, in)
}

// Take gives the frames that are to be sent to the client, answers and events in order.
func (a *Attached) Take() []byte {
	frames := a.connection.pending
	a.connection.pending = nil
	return frames
}

// Detach forgets the client and its watches.
func (a *Attached) Detach() {
	c := a.connection
	c.closing = true
	c.server.ensemble.nodeWatches.forget(c)
	c.server.ensemble.childWatches.forget(c)
}

// A RequestKind tells what becomes of a request.
type RequestKind int

// The kinds of requests.
const (
	ReadRequest  RequestKind = iota // answered by the server alone
	SyncRequest                     // answered once the leader has spoken, which asks nobody
	WriteRequest                    // a transaction
	CloseRequest                    // a transaction, the client's last
)

// KindOf tells a request's kind.
func KindOf(request []byte) RequestKind {
	if len(request) < 8 {
		return ReadRequest
	}
	switch opcode(binary.BigEndian.Uint32(request[4:])) {
	case opCloseSession:
		return CloseRequest
	case opSync:
		return SyncRequest
	case opCreate, opCreate2, opCreateContainer, opCreateTTL, opDelete, opDeleteContainer, opSetData, opSetACL, opMulti, opReconfig:
		return WriteRequest
	}
	return ReadRequest
}

// A Handshake is a client's request for a session.
type Handshake struct {
	Seen     int64         // newest zxid the client knows of
	Timeout  time.Duration // asked for
	Session  int64         // 0 for a new one
	Genuine  bool          // the password is the session's
	readOnly bool
}

// ReadHandshake reads the first frame of a connection.
func ReadHandshake(frame []byte) (Handshake, bool) {
	in := newDecoder(frame)
	wanted := readConnect(in)
	return Handshake{
		Seen: wanted.seen, Timeout: wanted.timeout, Session: wanted.session,
		Genuine:  wanted.session == 0 || bytes.Equal(wanted.password, passwordOf(wanted.session)),
		readOnly: wanted.knowsReadOnly,
	}, !in.Failed()
}

// Welcome is the frame that answers a handshake: with a session, or with the session 0 if there is none.
func (h Handshake) Welcome(session int64, timeout time.Duration) []byte {
	c := &connection{server: &Server{}, wake: make(chan struct{}, 1)}
	if session != 0 {
		c.session = &serverSession{id: session, timeout: timeout}
	}
	c.welcome(h.readOnly)
	return c.pending
}

// DeleteContainer is the request that servers send themselves for a container that may be empty.
func DeleteContainer(path string) []byte {
	out := &encoder{}
	out.int32(0)
	out.int32(int32(opDeleteContainer))
	out.string(path)
	return out.buffer
}

// A nowhere is the socket of clients who are reached otherwise.
type nowhere struct{ net.Conn }

func (nowhere) RemoteAddr() net.Addr        { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)} }
func (nowhere) SetDeadline(time.Time) error { return nil }
func (nowhere) Close() error                { return nil }
