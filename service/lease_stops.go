package service

import (
	"math"

	machine "github.com/sidekeeper/sidekeeper/internal/lease"
)

// stop has a request given up or, once it has ended, its end acknowledged.
func (m *multiplex) stop(id uint64) {
	m.mu.Lock()
	found := m.requests[id]
	m.mu.Unlock()
	if found != nil {
		m.lease.drive.step(machine.Event{Kind: machine.Stopped, Of: found.life})
		m.mu.Lock()
		if m.requests[id] == found && !found.asked.Swap(true) && !m.deaf {
			m.stops++
			m.leases.services.held.enter(math.MaxInt)
		}
		m.mu.Unlock()
		found.stopped.close()
	}
}

// isHeard is when the answer to a stop is handed to the transport.
func (m *multiplex) isHeard() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.deaf {
		m.stops--
		m.leases.services.held.leave()
	}
}

// isUnread is when the caller does not read the stream any more.
func (m *multiplex) isUnread() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for m.deaf = true; m.stops > 0; m.stops-- {
		m.leases.services.held.leave()
	}
}
