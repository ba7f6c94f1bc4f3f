package server

import (
	"net"
	"net/http"
	"sync"
	"time"
)

// Limits of the listeners for scrapers and for those who look at the page.
const (
	mostHTTP    = 64               // connections of one listener
	scrapeWrite = 30 * time.Second // from a scrape's headers to the end of its answer
)

// httpConns are the connections of one listener. One too many ends the one that has asked for nothing for the longest time, since whoever
// connects to ask something shall find it open; if all are being answered, it ends itself.
type httpConns struct {
	most int

	mu    sync.Mutex
	serve map[net.Conn]bool // whether it is being answered
	order []net.Conn        // the oldest first
}

func newHTTPConns(most int) *httpConns { return &httpConns{most: most, serve: map[net.Conn]bool{}} }

// follow is told what becomes of each connection; see http.Server.ConnState.
func (h *httpConns) follow(conn net.Conn, state http.ConnState) {
	if surplus := h.note(conn, state); surplus != nil {
		_ = surplus.Close()
	}
}

// note returns the connection that must end.
func (h *httpConns) note(conn net.Conn, state http.ConnState) (surplus net.Conn) {
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
func (h *httpConns) forget(conn net.Conn) {
	delete(h.serve, conn)
	for i, each := range h.order {
		if each == conn {
			h.order = append(h.order[:i], h.order[i+1:]...)
			return
		}
	}
}
