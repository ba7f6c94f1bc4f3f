package main

import (
	"context"
	"fmt"
	"time"
)

// An experiment fills one table.
type experiment struct {
	name  string
	title string
	run   func(ctx context.Context, on *stage) (*table, error)
}

// spread is the experiment that takes several servers.
const spread = "regions"

// experiments is all there are. Quick ones do a fraction.
func experiments(quick bool) []experiment {
	all := locks(quick)
	for _, q := range []sequence{{callers: 1}, {callers: 8}, {callers: 64}} {
		q.rounds, q.lasts = 6, 2*time.Second
		if quick {
			q.rounds, q.lasts = 2, 400*time.Millisecond
		}
		title := fmt.Sprintf("Numbers of one sequence, %d callers", q.callers)
		all = append(all, experiment{fmt.Sprintf("sequence-%d", q.callers), title, q.run})
	}
	all = append(append(all, memberships(quick)...), watches(quick)...)
	i := idle{leases: 1000, seconds: 20}
	if quick {
		i = idle{leases: 200, seconds: 5}
	}
	title := fmt.Sprintf("Idle leases, %d of them", i.leases)
	all = append(all, experiment{"idle", title, i.run})
	m := many{leases: []int{4000, 16000}, seconds: 20}
	if quick {
		m.leases, m.seconds = m.leases[:1], 5
	}
	all = append(all, experiment{"many", "Thousands of leases that hold a lock each", m.run})
	r := regions{trips: []time.Duration{time.Millisecond, 20 * time.Millisecond, 80 * time.Millisecond}, cycles: 60}
	if quick {
		r.cycles = 10
	}
	all = append(all, experiment{spread, "One server and one sidecar in each of three regions, by the round trip between two regions", r.run})
	s := shares{members: 20, items: 500, away: 20 * time.Second}
	if quick {
		s = shares{members: 4, items: 40, away: 2 * time.Second}
	}
	title = fmt.Sprintf("Items shared out, %d among %d members", s.items, s.members)
	all = append(all, experiment{"shares", title, s.run})
	a := attacked{rounds: 3, lasts: 20 * time.Second}
	if quick {
		a.rounds, a.lasts = 1, 10*time.Second
	}
	return append(all, experiment{"attacks", "One caller attacks its sidecar, others use it", a.run})
}

func locks(quick bool) (all []experiment) {
	for _, p := range []pairs{{callers: 1, each: 300}, {callers: 8, each: 100}, {callers: 64, each: 40}} {
		p.rounds = 6
		if quick {
			p.rounds, p.each = 2, p.each/4
		}
		title := fmt.Sprintf("Lock pair (acquire and release), %d callers, each with a lock of its own", p.callers)
		all = append(all, experiment{fmt.Sprintf("pairs-%d", p.callers), title, p.run})
	}
	t := threads{pairs{callers: 64, each: 40, rounds: 6}}
	if quick {
		t.rounds, t.each = 2, 10
	}
	all = append(all, experiment{"threads-64", "Lock pair, 64 threads of one application over one session, each with a lock of its own", t.run})
	w := ways{pairs{callers: 1, each: 300, rounds: 6}}
	if quick {
		w.rounds, w.each = 2, 75
	}
	all = append(all, experiment{"ways", "What each way of calling costs, one caller", w.run})
	for _, h := range []handover{{waiters: 2}, {waiters: 16}, {waiters: 128}} {
		h.rounds, h.cycles = 4, 300
		if quick {
			h.rounds, h.cycles = 2, 100
		}
		title := fmt.Sprintf("Hand-over, %d waiters in the queue of one lock", h.waiters)
		all = append(all, experiment{fmt.Sprintf("handover-%d", h.waiters), title, h.run})
	}
	p := permits{handover{waiters: 16, cycles: 300, rounds: 4}}
	if quick {
		p.rounds, p.cycles = 2, 100
	}
	return append(all, experiment{"permits-16", "Hand-over of a permit and of leadership, 16 waiters, beside that of a lock", p.run})
}

func memberships(quick bool) []experiment {
	j, k := joins{callers: 64, each: 20, rounds: 6}, killed{callers: 200, atOnce: 20}
	if quick {
		j.rounds, j.each, k.callers = 2, 5, 40
	}
	return []experiment{
		{"joins-64", fmt.Sprintf("Join and leave a group, %d callers, each time with a session of its own", j.callers), j.run},
		{"killed", "A caller that is a member is killed: time until a watcher sees it", k.run},
	}
}

func watches(quick bool) (all []experiment) {
	for _, w := range []watch{{watchers: 1, updates: 300}, {watchers: 100, updates: 100}, {watchers: 1000, updates: 30}} {
		w.rounds = 6
		if quick {
			w.rounds, w.updates = 2, w.updates/3
		}
		title := fmt.Sprintf("Update of a key of the configuration, until the last of %d watchers has it", w.watchers)
		all = append(all, experiment{fmt.Sprintf("watch-%d", w.watchers), title, w.run})
	}
	return all
}
