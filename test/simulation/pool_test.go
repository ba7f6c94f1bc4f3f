package simulation_test

import (
	"context"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/zookeeper"
	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/simulation"
)

// A lender opens sessions one after the other, each of which has a place for a while.
type lender struct {
	*testing.T
	*simulation.Ensemble
	by      *refuser
	client  *zookeeper.Client
	secrets [][]byte
}

func (l *lender) open(timeout time.Duration) *zookeeper.PooledSession {
	l.Helper()
	s, err := l.client.OpenPooled(l.Context(), timeout)
	if err != nil {
		l.Fatal(err)
	}
	if owned := l.Owned(s.ID()); len(owned) > 0 {
		l.Errorf("it owns %q from before", owned)
	}
	return s
}

func (l *lender) enqueue(s *zookeeper.PooledSession) string {
	l.Helper()
	made, err := s.Enqueue(l.Context(), "/locks/orders", "-lock-", nil)
	if err != nil {
		l.Fatal(err)
	}
	name := made.Name
	return "/locks/orders/" + name
}

// What may happen to a session while it is lent and while it is idle, and whether the next lease gets it.
var loans = []struct {
	name         string
	lent         func(l *lender, s *zookeeper.PooledSession)
	idle         func(l *lender)
	next         time.Duration // the timeout that the next one asks for
	used, closed bool          // used again; closed soon
}{
	{name: "with a place that its user has left", lent: func(l *lender, s *zookeeper.PooledSession) {
		s.Dequeue(l.Context(), l.enqueue(s))
	}, used: true},
	{name: "with a place", lent: func(l *lender, s *zookeeper.PooledSession) { l.enqueue(s) }, used: true},
	{name: "with a member", lent: func(l *lender, s *zookeeper.PooledSession) {
		if _, _, err := s.Create(l.Context(), "/locks/orders/m", nil); err != nil {
			l.Fatal(err)
		}
	}, used: true},
	{name: "with a place that somebody else has deleted", lent: func(l *lender, s *zookeeper.PooledSession) {
		if _, err := l.client.Commit(l.Context(), recipes.Delete(l.enqueue(s), -1)); err != nil {
			l.Fatal(err)
		}
	}, used: true},
	{name: "idle for a while", idle: func(*lender) { time.Sleep(4 * time.Second) }, used: true},
	{name: "idle for long", idle: func(*lender) { time.Sleep(6 * time.Second) }, closed: true},
	{name: "with two places", lent: func(l *lender, s *zookeeper.PooledSession) { l.enqueue(s); l.enqueue(s) }, closed: true},
	{name: "with a request that was refused", lent: func(l *lender, s *zookeeper.PooledSession) {
		l.by.refuse(kindPlace, codeThrottled, 1)
		l.enqueue(s)
	}, closed: true},
	{name: "with a request whose answer was lost", lent: func(l *lender, s *zookeeper.PooledSession) {
		l.by.refuse(kindPlace, codeLost, 1)
		l.enqueue(s)
	}, closed: true},
	{name: "with a deletion that was refused", lent: func(l *lender, s *zookeeper.PooledSession) {
		l.enqueue(s)
		l.by.refuse(kindDelete, codeNoAuth, 1)
	}, closed: true},
	{name: "with a request under way", lent: func(l *lender, s *zookeeper.PooledSession) {
		for server := range 3 {
			l.Lag(server, 100*time.Millisecond)
		}
		go func() { _, _ = s.Enqueue(context.WithoutCancel(l.Context()), "/locks/orders", "-lock-", nil) }()
		time.Sleep(time.Millisecond)
	}, closed: true},
	{name: "with another connection than at first", lent: func(l *lender, s *zookeeper.PooledSession) {
		l.Reset(0, l.ServerOf(s.ID()))
		time.Sleep(4 * time.Second)
	}, closed: true},
	{name: "without a connection", lent: func(l *lender, s *zookeeper.PooledSession) {
		for server := range 3 {
			l.Kill(server)
		}
		time.Sleep(time.Second)
	}, idle: func(l *lender) {
		for server := range 3 {
			l.Start(server)
		}
		l.Await()
	}},
	{name: "that lost its connection while it was idle", idle: func(l *lender) {
		for server := range 3 {
			l.Reset(0, server)
		}
		time.Sleep(4 * time.Second)
	}},
	{name: "whose heartbeat is late", lent: func(l *lender, _ *zookeeper.PooledSession) {
		l.by.refuse(kindMulti, codeThrottled, -1)
		time.Sleep(6 * time.Second)
	}, idle: func(l *lender) { l.by.refuse(kindMulti, codeThrottled, 0) }, closed: true},
	{name: "for another timeout", next: 10 * time.Second},
	{name: "with credentials that are old by then", idle: func(l *lender) { l.secrets = [][]byte{[]byte("new:secret")} }},
}

// A session is used again where nothing can tell it from a new one, and nowhere else.
func TestASessionIsUsedAgainIfItIsClean(t *testing.T) {
	for _, loan := range loans {
		t.Run(loan.name, func(t *testing.T) {
			inBubble(t, simulation.Options{}, func(t *testing.T, e *simulation.Ensemble, _ *witness) {
				l := &lender{T: t, Ensemble: e, by: &refuser{}}
				l.client = refusing(t, e, l.by, func(c *zookeeper.Config) {
					c.Auth, c.ACL = func() [][]byte { return l.secrets }, "open"
				})
				defer l.client.Close()
				first := l.open(0)
				kept := l.enqueue(first) // so that the directory stays
				s := l.open(0)
				id := s.ID()
				if loan.lent != nil {
					loan.lent(l, s)
				}
				s.Close(t.Context())
				if s.ValidFor() > 0 || s.Err() == nil {
					t.Errorf("closed, it is valid for %v, %v", s.ValidFor(), s.Err())
				}
				if _, err := s.Enqueue(t.Context(), "/locks/orders", "-lock-", nil); err == nil {
					t.Error("closed, it takes a place")
				}
				if loan.idle != nil {
					loan.idle(l)
				}
				if names := e.Names("/locks/orders"); len(names) != 1 || "/locks/orders/"+names[0] != kept {
					t.Errorf("there are %q", names)
				}
				next := l.open(loan.next)
				if used := next.ID() == id; used != loan.used {
					t.Errorf("used again: %t", used)
				}
				s.Close(t.Context()) // once more, which is nobody else's end
				next.Close(t.Context())
				first.Close(t.Context())
				if _, ended := e.EndOf(id); loan.closed && !ended {
					t.Error("it was kept open")
				}
			})
		})
	}
}

// As many sessions are idle as were asked for of late, and none when the client is closed.
func TestNoMoreSessionsAreIdleThanWereAskedForOfLate(t *testing.T) {
	inBubble(t, simulation.Options{}, func(t *testing.T, e *simulation.Ensemble, _ *witness) {
		l := &lender{T: t, Ensemble: e, by: &refuser{}}
		l.client = refusing(t, e, l.by)
		time.Sleep(time.Second)
		readers := e.Sessions()
		var many []*zookeeper.PooledSession
		for range 20 {
			many = append(many, l.open(0))
		}
		time.Sleep(time.Minute)
		for range 3 {
			many = append(many, l.open(0))
		}
		for _, s := range many {
			s.Close(t.Context())
		}
		e.Await()
		if idle := e.Sessions() - readers; idle != 3 {
			t.Errorf("%d are idle", idle)
		}
		l.client.Close()
		time.Sleep(time.Second)
		if left := e.Sessions(); left != readers-1 {
			t.Errorf("%d sessions are left", left)
		}
	})
}

// Whoever lets go of a place while its lease is being closed is told so when the place is gone, like anybody else.
func TestAPlaceIsGoneWhenItIsGivenUpBesideItsLease(t *testing.T) {
	inBubble(t, simulation.Options{}, func(t *testing.T, e *simulation.Ensemble, _ *witness) {
		l := &lender{T: t, Ensemble: e, by: &refuser{}}
		l.client = refusing(t, e, l.by)
		defer l.client.Close()
		for what, giveUp := range map[string]func(s *zookeeper.PooledSession, place, member string){
			"Dequeue": func(s *zookeeper.PooledSession, place, _ string) { s.Dequeue(t.Context(), place) },
			"Delete":  func(s *zookeeper.PooledSession, _, member string) { s.Delete(t.Context(), member) },
			"Close":   func(s *zookeeper.PooledSession, _, _ string) { s.Close(t.Context()) },
		} {
			s, member := l.open(0), "/locks/orders/m"
			place := l.enqueue(s)
			if _, _, err := s.Create(t.Context(), member, nil); err != nil {
				t.Fatal(err)
			}
			for server := range 3 {
				l.Lag(server, 100*time.Millisecond)
			}
			closed := make(chan struct{})
			go func() {
				defer close(closed)
				s.Close(context.WithoutCancel(t.Context()))
			}()
			time.Sleep(time.Millisecond)
			giveUp(s, place, member)
			if names := e.Names("/locks/orders"); len(names) > 0 {
				t.Errorf("after %s there are %q", what, names)
			}
			<-closed
			for server := range 3 {
				l.Lag(server, 0)
			}
		}
	})
}

// A name that somebody was told is gone is never another place's, though the reply to its making was lost.
func TestAPlaceThatIsMadeAgainHasAnotherName(t *testing.T) {
	inBubble(t, simulation.Options{}, func(t *testing.T, e *simulation.Ensemble, _ *witness) {
		l := &lender{T: t, Ensemble: e, by: &refuser{}}
		l.client = refusing(t, e, l.by)
		other := refusing(t, e, &refuser{})
		defer l.client.Close()
		defer other.Close()
		const directory = "/locks/orders"
		if _, err := other.Commit(t.Context(), recipes.Create(directory, nil)); err != nil {
			t.Fatal(err)
		}
		s := l.open(0)
		l.by.refuse(kindPlace, codeLost, 1)
		l.by.refuse(kindMulti, codeThrottled, -1) // so that it looks for the node only when that is gone
		again := make(chan string)
		go func() { again <- l.enqueue(s) }()
		time.Sleep(time.Second)
		first := directory + "/" + e.Names(directory)[0]
		for _, gone := range []string{first, directory} {
			if _, err := other.Commit(t.Context(), recipes.Delete(gone, -1)); err != nil {
				t.Fatal(err)
			}
		}
		l.by.refuse(kindMulti, codeThrottled, 0)
		if second := <-again; second == first {
			t.Errorf("both are %s", second)
		}
		s.Close(t.Context())
	})
}
