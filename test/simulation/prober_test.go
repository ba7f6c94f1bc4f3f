package simulation_test

import (
	"sync"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/zookeeper"
	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/simulation"
)

// A crowd is sessions of one sidecar that hold a place each.
type crowd struct {
	*testing.T
	*simulation.Ensemble
	*witness
	client   *zookeeper.Client
	sessions []*zookeeper.Session
	least    time.Duration // of the validity of each
}

func newCrowd(t *testing.T, e *simulation.Ensemble, w *witness, timeout time.Duration, sessions int) *crowd {
	t.Helper()
	c := &crowd{T: t, Ensemble: e, witness: w, client: newClient(t, e, 0, timeout)}
	c.least = (&zookeeper.Config{TickTime: 2 * time.Second, SyncLimit: 5, Heartbeat: 2 * time.Second}).Validity(timeout).Least
	if err := c.client.CatchUp(t.Context()); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second) // until it is known which servers there are
	for range sessions {
		s := w.open(t, c.client)
		c.sessions = append(c.sessions, s)
		if _, err := (recipes.Lock{Path: "/locks/orders"}).Join(t.Context(), s, recipes.Read, recipes.About{Owner: "crowd"}); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func (c *crowd) close() {
	for _, s := range c.sessions {
		c.witness.close(s)
	}
	c.client.Close()
}

// wantValid fails if one of the sessions is not as valid as by heartbeats of its own, or a heartbeat is late, at any time of the next while.
func (c *crowd) wantValid(sessions []*zookeeper.Session, while time.Duration) {
	c.Helper()
	for end := time.Now().Add(while); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		for i, s := range sessions {
			if suspended, _ := s.Suspended(); suspended || s.ValidFor() < c.least-100*time.Millisecond {
				c.Fatalf("session %d: valid for %v, want %v; suspended: %v, %v", i, s.ValidFor(), c.least, suspended, s.Err())
			}
		}
	}
}

// rate is how many transactions are committed a second.
func (c *crowd) rate() float64 {
	const while = 20 * time.Second
	before := c.Backup()
	time.Sleep(while)
	return float64(c.Backup()-before) / while.Seconds()
}

func TestSessionsOfOneServerAreProvedTogether(t *testing.T) {
	for _, timeout := range []time.Duration{4 * time.Second, 6 * time.Second, 10 * time.Second, 15 * time.Second, 30 * time.Second} {
		inBubble(t, simulation.Options{}, func(t *testing.T, e *simulation.Ensemble, w *witness) {
			c := newCrowd(t, e, w, timeout, int(share(100)))
			defer c.close()
			c.wantValid(c.sessions, time.Minute)
			heartbeat := min(2*time.Second, timeout*2/15)
			if got, most := c.rate(), 3.3/heartbeat.Seconds(); got > most { // the prober twice as many as the reader
				t.Errorf("timeout %v: %v transactions a second, want %v", timeout, got, most)
			}
		})
	}
}

func TestWhenTheProberClosesAnotherSessionTakesItsPlace(t *testing.T) {
	for _, timeout := range []time.Duration{4 * time.Second, 10 * time.Second} {
		for seed := range share(20) {
			inBubble(t, simulation.Options{Seed: seed}, func(t *testing.T, e *simulation.Ensemble, w *witness) {
				c := newCrowd(t, e, w, timeout, 4)
				defer c.close()
				for i, s := range c.sessions[:3] {
					c.wantValid(c.sessions[i:], timeout+time.Duration(seed)*53*time.Millisecond)
					w.close(s)
				}
				c.wantValid(c.sessions[3:], 2*timeout)
			})
		}
	}
}

// Contact that is late is told as soon as it would be to a session by itself, and ends when it is back.
func TestContactThatIsLateIsLateForAll(t *testing.T) {
	for seed := range share(20) {
		inBubble(t, simulation.Options{Seed: seed}, func(t *testing.T, e *simulation.Ensemble, w *witness) {
			c := newCrowd(t, e, w, 30*time.Second, 20)
			defer c.close()
			c.wantValid(c.sessions, 10*time.Second+time.Duration(seed)*137*time.Millisecond)
			for server := range 3 {
				e.CutHost(0, server, false, true)
			}
			time.Sleep(2*2200*time.Millisecond + 100*time.Millisecond)
			for i, s := range c.sessions {
				if suspended, _ := s.Suspended(); !suspended {
					t.Errorf("seed %d: session %d is not suspended", seed, i)
				}
			}
			for server := range 3 {
				e.MendHost(0, server)
			}
			time.Sleep(15 * time.Second)
			c.wantValid(c.sessions, 20*time.Second)
		})
	}
}

// Sessions are closed while contact is late for all, and the others go on: so is the one that proved them, whose heartbeat fails then.
func TestWhoProvedOthersIsClosedWhileContactIsLate(t *testing.T) {
	for seed := range share(40) {
		inBubble(t, simulation.Options{Seed: seed}, func(t *testing.T, e *simulation.Ensemble, w *witness) {
			c := newCrowd(t, e, w, 30*time.Second, 6)
			defer c.close()
			c.wantValid(c.sessions, 10*time.Second+time.Duration(seed)*137*time.Millisecond)
			for server := range 3 {
				e.CutHost(0, server, false, true)
			}
			time.Sleep(2200*time.Millisecond + time.Duration(seed)*100*time.Millisecond)
			closing, goesOn := c.sessions[:5], c.sessions[5:]
			var closed sync.WaitGroup
			for _, s := range closing {
				closed.Go(func() { c.witness.close(s) })
			}
			time.Sleep(3 * time.Second)
			for server := range 3 {
				e.MendHost(0, server)
			}
			closed.Wait()
			time.Sleep(15 * time.Second)
			c.wantValid(goesOn, 20*time.Second)
		})
	}
}

// A server that is cut off from its leader goes on answering reads. All its sessions go to another one in time.
func TestAServerThatHasLostItsLeaderCostsNoSessionOfMany(t *testing.T) {
	for timeout, seeds := range map[time.Duration]uint64{4 * time.Second: share(40), 6 * time.Second: share(10), 15 * time.Second: share(3)} {
		sessions := 100
		if seeds > 4 {
			sessions = 10
		}
		for seed := range seeds {
			inBubble(t, simulation.Options{Seed: seed}, func(t *testing.T, e *simulation.Ensemble, w *witness) {
				e.Await()
				leader := e.Leader()
				e.CutHost(0, leader, true, true) // so that all sessions are at a follower
				c := newCrowd(t, e, w, timeout, sessions)
				defer c.close()
				e.MendHost(0, leader)
				c.wantValid(c.sessions, 10*time.Second+time.Duration(seed)*137*time.Millisecond)
				server := e.ServerOf(c.sessions[0].ID())
				if server == leader {
					t.Fatalf("timeout %v, seed %d: the sessions are at the leader", timeout, seed)
				}
				e.Cut(leader, server)
				e.Cut(server, leader)
				time.Sleep(timeout)
				e.Mend(leader, server)
				e.Mend(server, leader)
				time.Sleep(time.Minute)
				for i, s := range c.sessions {
					if s.Err() != nil {
						t.Errorf("timeout %v, seed %d: session %d: %v", timeout, seed, i, s.Err())
					}
				}
			})
		}
	}
}

// Who comes back over another connection sends a heartbeat at once, also if its last one was a plain read.
func TestSessionsThatAreProvedByAnotherAreProvedAtOnceWhenTheyComeBack(t *testing.T) {
	for seed := range share(20) {
		inBubble(t, simulation.Options{Seed: seed}, func(t *testing.T, e *simulation.Ensemble, w *witness) {
			c := newCrowd(t, e, w, 15*time.Second, 10)
			defer c.close()
			c.wantValid(c.sessions, 5*time.Second+time.Duration(seed)*137*time.Millisecond)
			for server := range 3 {
				e.Reset(0, server)
			}
			time.Sleep(time.Second)
			for i, s := range c.sessions {
				if suspended, _ := s.Suspended(); suspended || s.ValidFor() < 12*time.Second {
					t.Errorf("seed %d: session %d: valid for %v; suspended: %v", seed, i, s.ValidFor(), suspended)
				}
			}
		})
	}
}
