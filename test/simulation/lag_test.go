package simulation_test

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/zookeeper"
	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/simulation"
)

// What a reader shows may be old. No answer may rest on it that says more than that.
func TestNoAnswerRestsOnWhatALaggingServerShows(t *testing.T) {
	orders := recipes.Lock{Path: "/locks/orders"}
	invoices := recipes.Sequence{Path: "/locks/invoices"}
	limit := semaphore.Path + recipes.LimitSuffix
	for _, c := range []struct {
		what                    string
		before, meanwhile, late func(*lagScene)
		changed                 string // what the reader shows otherwise than it is
	}{{
		what:      "a Resize to the limit that there was",
		before:    func(s *lagScene) { s.must(semaphore.Create(s.Context(), s.other, 3)) },
		meanwhile: func(s *lagScene) { s.resize(s.other, 5) },
		late: func(s *lagScene) {
			s.resize(s.sidecar, 3)
			if stored := binary.BigEndian.Uint32(s.Data(limit)); stored != 3 {
				s.Errorf("the limit is %d", stored)
			}
		},
		changed: limit,
	}, {
		what:      "a Resize of a semaphore that was just made",
		meanwhile: func(s *lagScene) { s.must(semaphore.Create(s.Context(), s.other, 3)) },
		late:      func(s *lagScene) { s.resize(s.sidecar, 5) },
		changed:   limit,
	}, {
		what:      "a look at a semaphore that was just made",
		meanwhile: func(s *lagScene) { s.must(semaphore.Create(s.Context(), s.other, 3)) },
		late: func(s *lagScene) {
			if view, err := semaphore.View(s.Context(), s.sidecar); err != nil || view.Limit != 3 {
				s.Errorf("limit %d, %v", view.Limit, err)
			}
		},
		changed: limit,
	}, {
		what:      "an Acquire of as many permits as there are again",
		before:    func(s *lagScene) { s.must(semaphore.Create(s.Context(), s.other, 2)) },
		meanwhile: func(s *lagScene) { s.resize(s.other, 3) },
		late: func(s *lagScene) {
			permits, err := semaphore.Join(s.Context(), s.open(s.sidecar, lasting), 3, recipes.About{})
			s.must(err)
			if turn, err := permits.Look(s.Context()); err != nil || !turn.Granted {
				s.Errorf("%+v, %v", turn, err)
			}
		},
		changed: limit,
	}, {
		what:      "a Revoke of a lock that was just granted",
		meanwhile: func(s *lagScene) { s.grant(orders) },
		late: func(s *lagScene) {
			if asked, err := orders.Revoke(s.Context(), s.sidecar, "operator", "", nil); err != nil || asked != 1 {
				s.Errorf("%d holders were asked, %v", asked, err)
			}
		},
		changed: orders.Path,
	}, {
		what:   "a Delete of a sequence that was just made anew",
		before: func(s *lagScene) { s.begin(invoices) },
		meanwhile: func(s *lagScene) {
			s.must(invoices.Delete(s.Context(), s.other))
			s.begin(invoices)
		},
		late: func(s *lagScene) {
			s.must(invoices.Delete(s.Context(), s.sidecar))
			if _, there := s.Stat(invoices.Path); there {
				s.Error("the sequence is still there")
			}
		},
		changed: invoices.Path,
	}, {
		what:   "the end of a member whose name was another's",
		before: func(s *lagScene) { s.member = s.join(short) },
		meanwhile: func(s *lagScene) {
			s.member.Leave(s.Context())
			s.join(lasting)
		},
		late: func(s *lagScene) {
			began := time.Now()
			for { // as Join with REPLACE does
				_, err := shop.Join(s.Context(), s.open(s.sidecar, lasting), "a", recipes.About{Timeout: lasting})
				if err == nil {
					break
				}
				if !errors.Is(err, recipes.ErrMemberExists) {
					s.Fatal(err)
				}
				_, err = shop.Evict(s.Context(), s.sidecar, "a", recipes.Eviction{Replace: true, ForceAfter: patience})
				s.must(err)
			}
			if left := lasting + tick - time.Since(began); left > 0 {
				s.Errorf("the member is removed from outside %v too soon: it counts as one with the other's session", left)
			}
		},
		changed: shop.Path + "/a",
	}} {
		t.Run(c.what, func(t *testing.T) {
			inBubble(t, simulation.Options{Hosts: 2}, func(t *testing.T, e *simulation.Ensemble, w *witness) {
				s := newLagScene(t, e, w)
				defer s.close()
				if c.before != nil {
					c.before(s)
				}
				s.lag()
				c.meanwhile(s)
				s.wantOld(c.changed)
				c.late(s)
			})
		})
	}
}

// A lagScene has two sidecars. The reader of one is attached to a server that is behind the others for a while.
type lagScene struct {
	*testing.T
	*simulation.Ensemble
	*witness
	behind   int // the server
	sidecar  *zookeeper.Client
	other    *zookeeper.Client
	member   *recipes.Membership
	sessions []*zookeeper.Session
}

func newLagScene(t *testing.T, e *simulation.Ensemble, w *witness) *lagScene {
	t.Helper()
	s := &lagScene{T: t, Ensemble: e, witness: w, behind: (e.Leader() + 1) % 3}
	addresses, began := e.Addresses(), time.Now()
	s.other = newClient(t, e, 0, lasting, addresses[e.Leader()])
	connections := atomic.Int64{}
	var err error
	s.sidecar, err = zookeeper.New(zookeeper.Config{
		Servers: addresses[:1], SessionTimeout: lasting, TickTime: tick, SyncLimit: 5, Heartbeat: 2 * time.Second, Directories: []string{"/locks"},
		Clock: func() time.Duration { return time.Since(began) },
		Dial: func(ctx context.Context, network, _ string) (net.Conn, error) { // an address that leads to several servers
			server := s.behind
			if connections.Add(1) > 1 {
				server = e.Leader()
			}
			return e.Dialer(1)(ctx, network, addresses[server])
		},
	})
	s.must(err)
	s.must(s.sidecar.CatchUp(t.Context()))
	return s
}

func (s *lagScene) close() {
	for _, session := range s.sessions {
		s.witness.close(session)
	}
	s.sidecar.Close()
	s.other.Close()
}

// lag has the sidecar's reader show for a while what there is now.
func (s *lagScene) lag() {
	s.Helper()
	s.must(s.sidecar.CatchUp(s.Context()))
	s.Lag(s.behind, time.Second)
}

// wantOld fails unless the sidecar's reader shows a node otherwise than it is.
func (s *lagScene) wantOld(path string) {
	s.Helper()
	shown, err := s.sidecar.Get(s.Context(), path)
	if now, _ := s.Stat(path); err != nil && !errors.Is(err, recipes.ErrNoNode) || now.Mzxid == shown.Mzxid {
		s.Fatalf("%s is shown as it is, %v", path, err)
	}
}

func (s *lagScene) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *lagScene) open(c *zookeeper.Client, timeout time.Duration) *zookeeper.Session {
	s.Helper()
	session, err := c.Open(s.Context(), timeout)
	s.must(err)
	s.watch(session)
	s.sessions = append(s.sessions, session)
	return session
}

func (s *lagScene) resize(through *zookeeper.Client, limit int) {
	s.Helper()
	_, err := semaphore.Resize(s.Context(), through, limit, "operator", "", nil)
	s.must(err)
}

func (s *lagScene) begin(sequence recipes.Sequence) {
	s.Helper()
	_, err := sequence.Create(s.Context(), s.other, 1)
	s.must(err)
}

func (s *lagScene) grant(lock recipes.Lock) {
	s.Helper()
	place, err := lock.Join(s.Context(), s.open(s.other, lasting), recipes.Exclusive, recipes.About{})
	s.must(err)
	if place.GrantAtOnce() == nil {
		s.Fatal("not granted")
	}
}

func (s *lagScene) join(timeout time.Duration) *recipes.Membership {
	s.Helper()
	member, err := shop.Join(s.Context(), s.open(s.other, timeout), "a", recipes.About{Timeout: timeout})
	s.must(err)
	return member
}
