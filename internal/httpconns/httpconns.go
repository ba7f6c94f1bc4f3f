// Package httpconns bounds the connections of an HTTP listener, and the bodies that come over them.
package httpconns

import (
	"container/list"
	"net"
	"net/http"
	"sync"
)

// Conns are the connections of one listener. One too many ends the one that has asked for nothing for the longest time, since whoever
// connects to ask something shall find it open; if all are being answered, it ends itself.
type Conns struct {
	most int

	mu    sync.Mutex
	known map[net.Conn]*list.Element
	order list.List // of *connection; who has asked for nothing for the longest time is the first
}

// A connection is one of them.
type connection struct {
	net.Conn

	whose    string
	answered bool
	end      func() // ends what is done for it
}

// New bounds them to so many.
func New(most int) *Conns { return &Conns{most: most, known: map[net.Conn]*list.Element{}} }

// Follow is told what becomes of each connection that has entered; see http.Server.ConnState.
func (h *Conns) Follow(conn net.Conn, state http.ConnState) { closeSurplus(h.note(conn, state)) }

func closeSurplus(surplus *connection) {
	if surplus != nil {
		surplus.end()
		_ = surplus.Close()
	}
}

// note returns the connection that must end.
func (h *Conns) note(conn net.Conn, state http.ConnState) (surplus *connection) {
	h.mu.Lock()
	defer h.mu.Unlock()
	at := h.known[conn]
	switch {
	case at == nil, state == http.StateNew:
	case state == http.StateActive, state == http.StateIdle:
		h.set(at, state == http.StateActive)
	default:
		h.forget(at)
	}
	if h.order.Len() <= h.most {
		return nil
	}
	return h.surplus(func(*connection) bool { return true })
}

// Own notes whose a connection is, who may have so many: one too many ends the caller's own that has asked for nothing for the longest time. It
// says whether the connection may stay.
func (h *Conns) Own(conn net.Conn, whose string, most int) bool {
	h.mu.Lock()
	at, has := h.known[conn], 1
	if at == nil {
		h.mu.Unlock()
		return false
	}
	for each := h.order.Front(); each != nil; each = each.Next() {
		if each.Value.(*connection).whose == whose {
			has++
		}
	}
	var surplus *connection
	if has > most {
		surplus = h.surplus(func(c *connection) bool { return c.whose == whose })
	}
	if has <= most || surplus != nil {
		at.Value.(*connection).whose = whose
	}
	h.mu.Unlock()
	closeSurplus(surplus)
	return has <= most || surplus != nil
}

// surplus takes out the first of those that are not being answered. It is locked.
func (h *Conns) surplus(of func(*connection) bool) *connection {
	for at := h.order.Front(); at != nil; at = at.Next() {
		if each := at.Value.(*connection); !each.answered && of(each) {
			h.forget(at)
			return each
		}
	}
	return nil
}

// enter notes a new connection, and how what is done for it ends.
func (h *Conns) enter(conn net.Conn, end func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.known[conn] = h.order.PushBack(&connection{Conn: conn, end: end})
}

// answers notes whether a connection is being answered.
func (h *Conns) answers(conn net.Conn, whether bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if at := h.known[conn]; at != nil {
		h.set(at, whether)
	}
}

// set notes whether a connection is being answered: it has asked now for the last time. It is locked.
func (h *Conns) set(at *list.Element, answered bool) {
	at.Value.(*connection).answered = answered
	h.order.MoveToBack(at)
}

// forget is of a connection that has ended. It is locked.
func (h *Conns) forget(at *list.Element) {
	delete(h.known, at.Value.(*connection).Conn)
	h.order.Remove(at)
}
