package zookeeper

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/test/support/ensemble"
	"github.com/sidekeeper/sidekeeper/test/support/link"
)

var runs = flag.Int("runs", 1, "how often to run each fault that ends a session")

// attached returns the server the session is attached to.
func attached(e *ensemble.Ensemble, s *Session) *ensemble.Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(e.ClientAddresses(), s.address)
	return e.Server(i + 1)
}

func TestNoSessionIsLostWhileAQuorumServes(t *testing.T) {
	e := startEnsemble(t, ensemble.Options{})
	// Longer than a busy machine takes to elect a leader.
	c := newClient(t, e, func(c *Config) { c.SessionTimeout = 10 * time.Second })
	var sessions []*Session
	for range 9 {
		s := openSession(t, c)
		enqueue(t, s, "/sidekeeper/failover")
		sessions = append(sessions, s)
	}
	serving := func(t *testing.T) {
		t.Helper()
		for _, s := range sessions {
			if err := s.flush(t.Context()); err != nil {
				t.Fatalf("a session was lost: %v", err)
			}
		}
		// Through a session, which is as patient as it lives: the reader may be looking for a server itself.
		if _, err := sessions[0].Children(t.Context(), "/sidekeeper/failover"); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("leader killed", func(t *testing.T) {
		leader := e.Leader(t.Context())
		leader.Kill()
		serving(t)
		if err := leader.Restart(); err != nil {
			t.Fatal(err)
		}
		if err := e.AwaitAll(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("server frozen", func(t *testing.T) {
		server := attached(e, sessions[0])
		server.Freeze()
		serving(t)
		server.Continue()
		if err := e.AwaitAll(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("link to the server hangs", func(t *testing.T) {
		server := attached(e, sessions[0])
		server.ClientLink().Stall()
		serving(t)
		server.ClientLink().Heal()
	})
	t.Run("every server restarted, one after the other", func(t *testing.T) {
		for _, server := range e.Servers() {
			server.Stop()
			serving(t)
			if err := server.Restart(); err != nil {
				t.Fatal(err)
			}
			if err := e.AwaitAll(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		serving(t)
	})
}

// Faults that end a session: here, the session must end before the ensemble gives away what it owned. The tick is
// ZooKeeper's default, so that a server that is cut off answers for ten seconds, and the timeout is as short as can be proved.
func TestASessionEndsBeforeTheEnsembleEndsIt(t *testing.T) {
	e := slowTicks.ensemble(t)
	for _, fault := range faults {
		for run := range *runs {
			t.Run(fmt.Sprintf("%s/%d", fault.name, run+1), func(t *testing.T) {
				if fault.strike == nil {
					t.Parallel()
				}
				follower := e.Followers(t.Context())[run%2]
				leader := e.Leader(t.Context())
				way, err := link.New(link.Options{Target: follower.RealAddress(), ZooKeeper: true})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(way.Close)
				holder := newClient(t, e, func(c *Config) {
					c.Servers = []string{way.Address()}
					c.TickTime = 2 * time.Second
				})
				refusedView := newClient(t, e, func(c *Config) {
					c.Servers = []string{leader.Address()}
					c.TickTime = 2 * time.Second
					c.SessionTimeout = 15 * time.Second
				})
				s := openSession(t, holder)
				path := enqueue(t, s, "/sidekeeper/ends")
				await(t, "heartbeats that count", 10*time.Second, after(3*time.Second))
				if fault.strike == nil {
					fault.onTheWay(way)
				} else {
					fault.strike(t, e, leader, follower)
					defer func() {
						e.Heal()
						if err := e.AwaitAll(context.WithoutCancel(t.Context())); err != nil {
							t.Error(err)
						}
					}()
				}
				struck := now()
				gone := awaitGone(t, refusedView, path)
				select {
				case <-s.Done():
				default:
					t.Fatalf("given away %v after the fault, and still valid for %v", gone.since(struck), s.ValidFor())
				}
				if !errors.Is(s.Err(), errUnproved) && !errors.Is(s.Err(), errExpired) {
					t.Errorf("ended with %v", s.Err())
				}
				t.Logf("given away %v after the fault; ended %v before that", gone.since(struck), gone.since(s.ended))
			})
		}
	}
}

// faults befall either the way to a follower or the ensemble.
var faults = []struct {
	name     string
	onTheWay func(*link.Link)
	strike   func(t *testing.T, e *ensemble.Ensemble, leader, follower *ensemble.Server)
}{
	{name: "black hole", onTheWay: func(way *link.Link) { way.Drop() }},
	{name: "requests lost", onTheWay: func(way *link.Link) { way.Drop(link.ToServer) }},
	{name: "answers lost", onTheWay: func(way *link.Link) {
		way.Drop(link.ToClient)
		way.Refuse()
	}},
	{name: "server hung", onTheWay: func(way *link.Link) { way.Stall() }},
	{name: "follower cut off from the leader", strike: func(_ *testing.T, e *ensemble.Ensemble, _, follower *ensemble.Server) {
		e.Isolate(follower.ID())
	}},
	{
		name: "leader to follower stalls and heals, then follower to leader dies",
		strike: func(t *testing.T, e *ensemble.Ensemble, leader, follower *ensemble.Server) {
			e.CutPeers(leader.ID(), follower.ID(), link.Stall)
			await(t, "the stall", 10*time.Second, after(2*time.Second))
			e.CutPeers(leader.ID(), follower.ID(), link.Pass)
			e.CutPeers(follower.ID(), leader.ID(), link.Drop)
		},
	},
}

// after is closed when d is over: a part of the schedule, not a wait for something.
func after(d time.Duration) <-chan struct{} {
	c := make(chan struct{})
	time.AfterFunc(d, func() { close(c) })
	return c
}
