// Package httpconns bounds the connections of an HTTP listener.
package httpconns

import (
	"net"
	"net/http"
	"sync"
)

// Conns are the connections of one listener. One too many ends the one that has asked for nothing for the longest time, since whoever
// connects to ask something shall find it open; if all are being answered, it ends itself.
type Conns struct {
	most int

	mu    sync.Mutex
	serve map[net.Conn]bool // whether it is being answered
	order []net.Conn        // the oldest first
}

// New bounds them to so many.
func New(most int) *Conns { return &Conns{most: most, serve: map[net.Conn]bool{}} }

// Follow is told what becomes of each connection; see http.Server.ConnState.
func (h *Conns) Follow(conn net.Conn, state http.ConnState) {
	if surplus := h.note(conn, state); surplus != nil {
		_ = surplus.Close()
	}
}

// note returns the connection that must end.
func (h *Conns) note(conn net.Conn, state http.ConnState) (surplus net.Conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch state {
	case http.StateNew:
		h.serve[conn] = false
		h.order = append(h.order, conn)
	case http.StateActive, http.StateIdle:
		if _, known := h.serve[conn]; known {
			h.serve[conn] = state == http.StateActive
		}
	case http.StateClosed, http.StateHijacked:
		h.forget(conn)
	}
	if len(h.order) <= h.most {
		return nil
	}
	for _, each := range h.order {
		if !h.serve[each] {
			surplus = each
			break
		}
	}
	h.forget(surplus)
	return surplus
}

// forget is of a connection that has ended. It is locked.
func (h *Conns) forget(conn net.Conn) {
	delete(h.serve, conn)
	for i, each := range h.order {
		if each == conn {
			h.order = append(h.order[:i], h.order[i+1:]...)
			return
		}
	}
}
