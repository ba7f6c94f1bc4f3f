package service

import (
	"cmp"
	"slices"
	"strconv"
	"time"
)

// A State is what a sidecar has at one moment, for operators: GET /state on the admin listener. Times are in seconds. Of
// leases, locks and members at most mostShown each are listed; the counts are of all.
type State struct {
	Version   string        `json:"version"`
	Uptime    float64       `json:"uptime"`
	Reachable bool          `json:"reachable"` // the ensemble answers
	Draining  bool          `json:"draining"`  // the sidecar lets go of everything
	Counts    Counts        `json:"counts"`
	Leases    []LeaseState  `json:"leases"` // suspended ones first, then the oldest
	Locks     []LockState   `json:"locks"`  // with the most waiters first, then by name
	Members   []MemberState `json:"members"`

	// Losses are counts since the sidecar has begun, by reason; without those of 0.
	Losses struct {
		Leases  map[string]int `json:"leases"`
		Locks   map[string]int `json:"locks"`
		Members map[string]int `json:"members"`
	} `json:"losses"`

	Latency     []Latency `json:"latency"`     // of requests to the ensemble, by operation; without those that were not made
	LatencyOver float64   `json:"latencyOver"` // the time in which they were made, until now
	Late        int       `json:"late"`        // heartbeats since the sidecar has begun
}

// Counts are how much there is of everything.
type Counts struct {
	Leases      int `json:"leases"`
	MaxLeases   int `json:"maxLeases"`
	Suspended   int `json:"suspended"`
	Holds       int `json:"holds"`
	Waiters     int `json:"waiters"`
	Members     int `json:"members"`
	Connections int `json:"connections"`
}

// A LeaseState is one lease. LogID stands for it in the log too; its id is a secret.
type LeaseState struct {
	LogID     string  `json:"lease"`
	Owner     string  `json:"owner"`
	Caller    string  `json:"caller"`
	Suspended bool    `json:"suspended"`
	Sleeping  bool    `json:"sleeping"` // nothing stands on it, so that it is valid for no time
	ValidFor  float64 `json:"validFor"`
	TTL       float64 `json:"ttl"`
	Age       float64 `json:"age"`
	Holds     int     `json:"holds"`
	Waits     int     `json:"waits"`
	Members   int     `json:"members"`
}

// A LockState is one lock or semaphore, with those who hold it and wait for it through this sidecar: the longest first.
type LockState struct {
	Kind    string  `json:"kind"` // lock or semaphore
	Name    string  `json:"name"`
	Holders []Party `json:"holders"`
	Waiters []Party `json:"waiters"`
}

// A MemberState is one member of a group that has joined, or is about to join, through this sidecar.
type MemberState struct {
	Name   string `json:"name"` // group/member
	Joined bool   `json:"joined"`
	Party
}

// A Party is a lease that has something or waits for it.
type Party struct {
	LogID    string  `json:"lease"`
	Owner    string  `json:"owner"`
	Caller   string  `json:"caller"`
	For      float64 `json:"for"`      // since when it has it, or waits
	ValidFor float64 `json:"validFor"` // how long it certainly has it
	Token    string  `json:"token"`    // the fencing token, or a member's incarnation; empty for those who wait
}

// Latency is how long the ensemble took for one operation.
type Latency struct {
	Operation string  `json:"operation"`
	Rate      float64 `json:"rate"` // in a second
	P50       float64 `json:"p50"`
	P99       float64 `json:"p99"`
}

// mostShown is how many leases, locks and members are listed, so that a look costs little however many there are.
const mostShown = 200

// Snapshot is the part of a State that the services know.
func (s *Services) Snapshot() State {
	made := newSnapshot()
	all := s.leases.all()
	slices.SortFunc(all, func(a, b *lease) int { return cmp.Compare(a.serial, b.serial) })
	for _, open := range all {
		made.take(open)
	}
	made.state.Draining = s.drain.hasBegun()
	made.state.Counts.MaxLeases = s.options.MostLeases
	return made.finish()
}

// A snapshot goes from lease to lease.
type snapshot struct {
	now   time.Time
	state State
	locks map[resource]*LockState
}

func newSnapshot() *snapshot {
	return &snapshot{
		now: time.Now(), state: State{Leases: []LeaseState{}, Locks: []LockState{}, Members: []MemberState{}}, locks: map[resource]*LockState{},
	}
}

func (s *snapshot) take(open *lease) {
	suspended, _ := open.session.Suspended()
	seen := LeaseState{
		LogID: open.logID, Owner: open.about.Owner, Caller: open.identity, Suspended: suspended, Sleeping: open.session.Asleep(),
		ValidFor: open.validFor().Seconds(), TTL: open.session.Timeout().Seconds(), Age: s.now.Sub(open.opened).Seconds(),
	}
	for of, had := range open.possessions() {
		party := Party{LogID: seen.LogID, Owner: seen.Owner, Caller: seen.Caller, For: s.now.Sub(had.since).Seconds(), ValidFor: seen.ValidFor}
		if had.held {
			party.Token = strconv.FormatInt(had.token, 10)
		}
		if of.kind == kindMember || of.kind == kindAssignment {
			seen.Members++
			s.state.Members = append(s.state.Members, MemberState{Name: of.name, Joined: had.held, Party: party})
			continue
		}
		lock := s.lock(of)
		if had.held {
			seen.Holds++
			lock.Holders = append(lock.Holders, party)
		} else {
			seen.Waits++
			lock.Waiters = append(lock.Waiters, party)
		}
	}
	s.count(seen)
	s.state.Leases = append(s.state.Leases, seen)
}

func (s *snapshot) lock(of resource) *LockState {
	if s.locks[of] == nil {
		s.locks[of] = &LockState{Kind: of.kind, Name: of.name, Holders: []Party{}, Waiters: []Party{}}
	}
	return s.locks[of]
}

func (s *snapshot) count(seen LeaseState) {
	counts := &s.state.Counts
	counts.Leases++
	counts.Holds += seen.Holds
	counts.Waiters += seen.Waits
	counts.Members += seen.Members
	if seen.Suspended {
		counts.Suspended++
	}
}

// finish puts everything in an order that does not change while nothing happens, and keeps what is shown.
func (s *snapshot) finish() State {
	state := &s.state
	for _, lock := range s.locks {
		longestFirst(lock.Holders)
		longestFirst(lock.Waiters)
		state.Locks = append(state.Locks, *lock)
	}
	slices.SortStableFunc(state.Leases, func(a, b LeaseState) int {
		switch {
		case a.Suspended == b.Suspended:
			return 0
		case a.Suspended:
			return -1
		}
		return 1
	})
	slices.SortFunc(state.Locks, func(a, b LockState) int {
		return cmp.Or(-cmp.Compare(len(a.Waiters), len(b.Waiters)), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kind, b.Kind))
	})
	slices.SortFunc(state.Members, func(a, b MemberState) int { return cmp.Compare(a.Name, b.Name) })
	state.Leases = state.Leases[:min(len(state.Leases), mostShown)]
	state.Locks = state.Locks[:min(len(state.Locks), mostShown)]
	state.Members = state.Members[:min(len(state.Members), mostShown)]
	for i := range state.Locks {
		lock := &state.Locks[i]
		lock.Holders, lock.Waiters = lock.Holders[:min(len(lock.Holders), mostShown)], lock.Waiters[:min(len(lock.Waiters), mostShown)]
	}
	return *state
}

func longestFirst(parties []Party) {
	slices.SortFunc(parties, func(a, b Party) int { return cmp.Or(-cmp.Compare(a.For, b.For), cmp.Compare(a.LogID, b.LogID)) })
}

// A LeaseSummary sums up the leases of a sidecar at one moment.
type LeaseSummary struct {
	Suspended int     // leases whose heartbeat is late
	MinValid  float64 // seconds for which each open lease that does not sleep is proved to be its caller's, or more; if there are any
	Any       bool    // whether there are
	MaxLeases int     // as Options has it
	Draining  bool    // the sidecar lets go of everything
}

// LeaseSummary looks at all leases.
func (s *Services) LeaseSummary() LeaseSummary {
	summary := LeaseSummary{MaxLeases: s.options.MostLeases, Draining: s.drain.hasBegun()}
	for _, open := range s.leases.all() {
		if open.lost() != nil {
			continue
		}
		if suspended, _ := open.session.Suspended(); suspended {
			summary.Suspended++
		}
		if open.session.Asleep() {
			continue
		}
		valid := open.validFor().Seconds()
		if !summary.Any || valid < summary.MinValid {
			summary.Any, summary.MinValid = true, valid
		}
	}
	return summary
}
