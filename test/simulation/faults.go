package simulation

import (
	"slices"
	"time"
)

// change does something to the ensemble from outside of its events.
func (e *Ensemble) change(do func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	do()
}

// Kill ends a server's process: its connections are reset, and what it has not told the leader is lost.
func (e *Ensemble) Kill(server int) { e.change(e.servers[server].die) }

// Start starts a server that was killed.
func (e *Ensemble) Start(server int) {
	e.change(func() {
		if s := e.servers[server]; s.role == down {
			s.start()
		}
	})
}

// Backup is how many transactions have been committed: what a copy of the servers' disks holds.
func (e *Ensemble) Backup() (transactions int) {
	e.change(func() { transactions = len(e.order) })
	return transactions
}

// Restore puts such a copy in the place of the servers' disks, which must be down.
func (e *Ensemble) Restore(transactions int) {
	e.change(func() {
		e.order, e.truth = slices.Clip(e.order[:transactions]), newReplica()
		for _, each := range e.order {
			each.apply(e.truth)
		}
		for _, s := range e.servers {
			s.restore(e.order)
		}
	})
}

// Freeze stops a server's process as a debugger or a long garbage collection does; its machine goes on to take
// connections and data in.
func (e *Ensemble) Freeze(server int) { e.change(e.servers[server].freeze) }

// Thaw lets a frozen server go on.
func (e *Ensemble) Thaw(server int) {
	e.change(func() {
		if s := e.servers[server]; s.frozen {
			s.thaw()
		}
	})
}

// Cut holds back what one server sends to another, until Mend.
func (e *Ensemble) Cut(from, to int) { e.change(func() { e.between[from][to].cut = true }) }

// Mend lets what one server has sent to another arrive, in order and in a burst.
func (e *Ensemble) Mend(from, to int) { e.change(e.between[from][to].mend) }

// Isolate cuts a server off from the other two, but not from its clients.
func (e *Ensemble) Isolate(server int) {
	for other := range size {
		e.Cut(server, other)
		e.Cut(other, server)
	}
}

// Rejoin ends Isolate.
func (e *Ensemble) Rejoin(server int) {
	for other := range size {
		e.Mend(server, other)
		e.Mend(other, server)
	}
}

// CutHost holds back what goes from a host to a server, and what comes from there, until MendHost.
func (e *Ensemble) CutHost(host, server int, up, down bool) {
	e.change(func() {
		e.up[host][server].cut = e.up[host][server].cut || up
		e.down[host][server].cut = e.down[host][server].cut || down
	})
}

// MendHost ends CutHost.
func (e *Ensemble) MendHost(host, server int) {
	e.change(func() {
		e.up[host][server].mend()
		e.down[host][server].mend()
	})
}

// Reset resets the connections between a host and a server.
func (e *Ensemble) Reset(host, server int) {
	e.change(func() {
		for _, c := range e.servers[server].clients {
			if c.conn.host == host {
				c.close()
			}
		}
	})
}

// Lag has a server apply each transaction that much later than it learns of its commit.
func (e *Ensemble) Lag(server int, lag time.Duration) {
	e.change(func() { e.servers[server].lag = lag })
}

// Slow has everything that goes from one server to another take that much longer.
func (e *Ensemble) Slow(from, to int, by time.Duration) {
	e.change(func() { e.between[from][to].slow = by })
}

// Clock sets how fast a server's clock goes, which counts while it is leader: 1.01 ends sessions sooner.
func (e *Ensemble) Clock(server int, rate float64) {
	e.change(func() { e.servers[server].rate = rate })
}

// Heal ends all faults.
func (e *Ensemble) Heal() {
	for i := range size {
		e.Thaw(i)
		e.Start(i)
		e.Lag(i, e.options.Latency/10)
		for j := range size {
			e.Slow(i, j, 0)
			e.Mend(i, j)
		}
		for h := range e.up {
			e.MendHost(h, i)
		}
	}
}

// Reap deletes a container if it is empty, as the leader does once in a while.
func (e *Ensemble) Reap(path string) {
	e.change(func() {
		if leader := e.leader(); leader != nil {
			leader.term.propose(&entry{request: deleteContainer(path)})
		}
	})
}
