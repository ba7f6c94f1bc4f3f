package simulation

import (
	"slices"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/embedded"
)

type role int

const (
	down role = iota
	looking
	following
	leading
)

// A server is one of the three. Everything it does happens in events, while the ensemble is locked.
type server struct {
	ensemble *Ensemble
	number   int
	role     role
	life     int // counts its starts: what an earlier life has planned does not happen

	frozen  bool
	backlog []func() // what would have happened while it was frozen
	owed    int      // of that, what has not happened yet since it thawed
	urgent  []func() // of that, what happens first when it thaws: its own timers

	log       []*entry // on its disk
	accepted  int      // on its disk: no leader of an earlier epoch is followed any more
	current   int      // on its disk: the epoch of the leader whose log this is
	committed int      // entries known to be committed
	applied   int
	due       time.Duration // when the newest committed entry is applied
	lag       time.Duration // from when it learns of a commit until it has applied it
	replica   *embedded.Replica

	upstream *tie  // to its leader while following
	term     *term // while leading
	serving  bool
	clients  []*client      // in the order in which they came
	touched  map[int64]bool // heard of since the last answer to the leader's ping
	phase    time.Duration  // of its clock's ticks
	rate     float64        // of its clock
}

func newServer(e *Ensemble, number int) *server {
	return &server{
		ensemble: e, number: number, replica: newReplica(),
		touched: map[int64]bool{}, lag: e.options.Latency / 10, rate: 1,
		phase: time.Duration(e.between[number][number].dice.Int64N(int64(e.options.Tick))),
	}
}

// at has the server do something at a time, unless it dies before. While it is frozen that waits.
func (s *server) at(t time.Duration, do func()) {
	life := s.life
	s.ensemble.at(t, func() {
		if s.life == life && s.frozen {
			s.urgent = append(s.urgent, do)
		} else if s.life == life {
			do()
		}
	})
}

func (s *server) after(d time.Duration, do func()) { s.at(s.ensemble.now()+d, do) }

// receive has the server take in what has arrived.
func (s *server) receive(do func()) {
	switch {
	case s.role == down:
	case s.frozen:
		s.backlog = append(s.backlog, do)
	case s.owed > 0:
		s.owe(do)
	default:
		do()
	}
}

// start starts a server that is down, with what its disk holds.
func (s *server) start() {
	s.life++
	s.role = looking
	s.seekSoon()
}

// die ends the server's process: every connection of it is reset.
func (s *server) die() {
	s.resign()
	s.role, s.frozen = down, false
	s.backlog, s.urgent, s.owed = nil, nil, 0
	s.life++
	s.committed = s.applied // what it knew beyond that was in memory
	s.due = 0
}

// restore puts a log in the place of what the disk of a server that is down holds.
func (s *server) restore(log []*entry) {
	s.log, s.committed, s.applied, s.replica = log, len(log), len(log), newReplica()
	for _, each := range log {
		each.apply(s.replica)
	}
}

// resign ends whatever part the server plays in a quorum: it closes its connections, to clients too, and looks for another
// leader.
func (s *server) resign() {
	if s.upstream != nil {
		s.upstream.close(s)
		s.upstream = nil
	}
	if s.term != nil {
		s.term.end()
		s.term = nil
	}
	for _, c := range slices.Clone(s.clients) {
		c.close()
	}
	clear(s.touched)
	s.serving = false
	s.role = looking
}

// lookAgain resigns and looks for a leader.
func (s *server) lookAgain() {
	s.resign()
	s.seekSoon()
}

// freeze stops the process; its connections stay.
func (s *server) freeze() { s.frozen = s.role != down }

// thaw lets it go on: first its timers, then what has arrived meanwhile.
func (s *server) thaw() {
	s.frozen = false
	urgent, backlog := s.urgent, s.backlog
	s.urgent, s.backlog = nil, nil
	for _, do := range urgent {
		s.after(0, do)
	}
	for _, do := range backlog {
		s.owe(do)
	}
}

// owe has something happen behind what happens since the server thawed: what arrives in that moment does not overtake what had arrived.
func (s *server) owe(do func()) {
	s.owed++
	s.after(0, func() {
		s.owed--
		do()
	})
}

// flush sends what the replica has for its clients.
func (s *server) flush() {
	for _, c := range s.clients {
		c.flush()
	}
}

// A tie is the connection of a follower to its leader.
type tie struct {
	leader, follower *server
	closed           [size]bool // by which end

	heardByFollower time.Duration // when the leader was heard of last, and so on
	heardByLeader   time.Duration
	acknowledged    int  // entries of the log that the follower has
	serving         bool // the follower has been told to serve
}

// tell sends something to the other end, which it takes in unless it has closed the connection.
func (t *tie) tell(from, to *server, do func()) {
	if t.closed[from.number] {
		return
	}
	from.ensemble.between[from.number][to.number].send(func() {
		to.receive(func() {
			if !t.closed[to.number] {
				do()
			}
		})
	})
}

func (t *tie) toLeader(do func())   { t.tell(t.follower, t.leader, do) }
func (t *tie) toFollower(do func()) { t.tell(t.leader, t.follower, do) }

// close closes the connection. The other end learns of it, if the link lets it.
func (t *tie) close(by *server) {
	if t.closed[by.number] {
		return
	}
	other := t.leader
	if by == t.leader {
		other = t.follower
	}
	t.tell(by, other, func() {
		t.closed[other.number] = true
		if other.upstream == t {
			other.upstream = nil
			other.lookAgain()
		} else if other.term != nil {
			other.term.drop(t)
		}
	})
	t.closed[by.number] = true
}
