package link

import "slices"

// A Trap waits on a link for requests of ZooKeeper's clients and does to them, or to their replies, what it was set for.
// Traps are tried in the order they were set; a request springs the first that matches it, once it is its turn to be
// forwarded. Only a link that reads ZooKeeper's frames has requests to show them.
type Trap struct {
	link   *Link
	kind   kind
	match  func(Frame) bool
	sprung chan struct{}

	// guarded by the link's mutex
	left     int // requests it is still set for
	count    int // times it has sprung
	released bool
}

type kind int

const (
	cutRequest kind = iota
	cutReply
	holdReply
)

// A request is one that was forwarded and not yet answered.
type request struct {
	xid  int32
	trap *Trap
}

// CutRequest resets the connection of each of the next times requests that match (of all, if times is negative), in
// place of forwarding the request: the server has surely not seen it. Match is called with requests one at a time, so it
// may count; it must not call the link.
func (l *Link) CutRequest(match func(Frame) bool, times int) *Trap {
	return l.set(cutRequest, match, times)
}

// CutReply forwards each of the next times requests that match, waits for the server's reply, discards it and resets
// the connection: the server has surely executed the request, and the client never learns it. Replies before it reach
// the client. Match is as for CutRequest.
func (l *Link) CutReply(match func(Frame) bool, times int) *Trap {
	return l.set(cutReply, match, times)
}

// HoldReply forwards each of the next times requests that match and holds the server's reply, and all that follows it
// on the connection, until [Trap.Release]. Match is as for CutRequest.
func (l *Link) HoldReply(match func(Frame) bool, times int) *Trap {
	return l.set(holdReply, match, times)
}

func (l *Link) set(kind kind, match func(Frame) bool, times int) *Trap {
	t := &Trap{link: l, kind: kind, match: match, left: times, sprung: make(chan struct{})}
	l.change(func() {
		l.traps = append(l.traps, t)
		l.sweep()
	})
	return t
}

// Is returns a match function for requests of the kinds given.
func Is(opcodes ...Opcode) func(Frame) bool {
	return func(f Frame) bool { return slices.Contains(opcodes, f.Opcode) }
}

// Nth returns a match function for the nth request, counted from one, that another one matches.
func Nth(n int, match func(Frame) bool) func(Frame) bool {
	seen := 0
	return func(f Frame) bool {
		if match(f) {
			seen++
			return seen == n
		}
		return false
	}
}

// Sprung is closed when the trap has sprung for the first time: a request was cut, or the reply to one was cut or has
// arrived and is held. It stays open if the connection ends before the reply has come.
func (t *Trap) Sprung() <-chan struct{} { return t.sprung }

// Count is how many times the trap has sprung.
func (t *Trap) Count() int {
	t.link.mutex.Lock()
	defer t.link.mutex.Unlock()
	return t.count
}

// Release lets go of the replies held and removes the trap: it matches no request from now on, and the replies to those
// it has matched are delivered.
func (t *Trap) Release() {
	t.link.change(func() {
		t.left, t.released = 0, true
		t.link.sweep()
	})
}

// sweep forgets traps that will match no more. The mutex is held.
func (l *Link) sweep() {
	l.traps = slices.DeleteFunc(l.traps, func(t *Trap) bool { return t.left == 0 })
}

// judge shows a request that is about to be forwarded to the traps and tells whether to cut the connection instead.
// The mutex is held.
func (c *connection) judge(f Frame) (cut bool) {
	t := c.link.trapFor(f)
	if t != nil && t.kind == cutRequest {
		t.spring()
		return true
	}
	c.link.requests[f.Opcode]++
	c.outstanding = append(c.outstanding, request{xid: f.Xid, trap: t})
	return false
}

// trapFor is the trap that a request falls into, or nil. The mutex is held.
func (l *Link) trapFor(f Frame) *Trap {
	for _, t := range l.traps {
		if t.match(f) {
			t.left--
			l.sweep()
			return t
		}
	}
	return nil
}

// answer removes the request that a reply answers from those outstanding, and returns its trap, if it fell into one.
func (c *connection) answer(xid int32, first bool) *Trap {
	c.link.mutex.Lock()
	defer c.link.mutex.Unlock()
	for i, r := range c.outstanding {
		if r.xid != xid && !first {
			continue
		}
		c.outstanding = slices.Delete(c.outstanding, i, i+1)
		if r.trap.holds() {
			r.trap.spring()
		}
		return r.trap
	}
	return nil
}

// spring notes that the trap has sprung. The mutex is held.
func (t *Trap) spring() {
	t.count++
	if t.count == 1 {
		close(t.sprung)
	}
}

// holds tells whether a reply in the trap is to wait. The mutex is held. There may be no trap.
func (t *Trap) holds() bool { return t != nil && t.kind == holdReply && !t.released }

// cuts tells whether a reply in the trap is to be cut. The mutex is held. There may be no trap.
func (t *Trap) cuts() bool { return t != nil && t.kind == cutReply && !t.released }
