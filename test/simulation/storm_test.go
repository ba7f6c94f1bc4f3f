package simulation_test

import (
	"context"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/zookeeper"
	"github.com/sidekeeper/sidekeeper/test/simulation"
)

// Servers beside those that are simulated: one accepts connections and never answers, the way to the other is a black hole.
const hung, unreachable = "192.0.2.101:2181", "192.0.2.102:2181"

func withSilent(dial dialer) dialer {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		switch address {
		case hung:
			return newMute(), nil
		case unreachable:
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}
		return dial(ctx, network, address)
	}
}

// A mute is a connection on which nothing is ever said.
type mute struct {
	net.Conn
	other net.Conn
}

func newMute() *mute {
	ours, theirs := net.Pipe()
	return &mute{Conn: ours, other: theirs}
}

func (m *mute) Write(frame []byte) (int, error) { return len(frame), nil }

func (m *mute) Close() error {
	_ = m.other.Close()
	return m.Conn.Close()
}

// No lease is lost while a quorum serves and the sidecar reaches it, whatever the other servers do to those who come to them.
func TestNoneOfAThousandLeasesIsLostToServersThatAreSilent(t *testing.T) {
	for _, c := range []struct {
		name   string
		silent func(e *simulation.Ensemble, server int) // happens to a follower where nobody is
		beside []string
	}{
		{"a server that hangs", func(e *simulation.Ensemble, server int) { e.Freeze(server) }, nil},
		{"a black hole", func(e *simulation.Ensemble, server int) { e.CutHost(0, server, true, true) }, nil},
		{"a server that hangs and a black hole, of five", nil, []string{hung, unreachable}},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, simulation.Options{}, func(t *testing.T, e *simulation.Ensemble, w *witness) {
				client := stormy(t, e, c.beside...)
				defer client.Close()
				var sessions []*zookeeper.Session
				for range share(1000) {
					sessions = append(sessions, w.open(t, client))
				}
				server := follower(e)
				if c.silent != nil {
					c.silent(e, server)
				}
				time.Sleep(20 * time.Second) // whoever was there has gone elsewhere
				for server := range 3 {
					e.Reset(0, server)
				}
				least := leastValid(sessions, 30*time.Second)
				t.Logf("the least that a lease was still valid for was %v", least)
				if lost := lostOf(sessions); lost > 0 {
					t.Errorf("%d of %d leases are lost", lost, len(sessions))
				}
				e.Heal()
				closeAll(w, sessions)
			})
		})
	}
}

// Two servers of three serve, though they take 600 ms for a connection, and callers who do not wait for it give up on them.
func TestWhoGivesUpEarlyKeepsNobodyFromServersThatAreSlow(t *testing.T) {
	inBubble(t, simulation.Options{}, func(t *testing.T, e *simulation.Ensemble, w *witness) {
		var slow atomic.Bool
		began, dial := time.Now(), e.Dialer(0)
		client, err := zookeeper.New(zookeeper.Config{
			Servers: e.Addresses(), SessionTimeout: 10 * time.Second, TickTime: 2 * time.Second, SyncLimit: 5, Heartbeat: 2 * time.Second,
			Clock: func() time.Duration { return time.Since(began) },
			Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
				conn, err := dial(ctx, network, address)
				if err == nil && slow.Load() {
					time.Sleep(600 * time.Millisecond)
				}
				return conn, err
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		var sessions []*zookeeper.Session
		for range 20 {
			sessions = append(sessions, w.open(t, client))
		}
		time.Sleep(20 * time.Second)
		slow.Store(true)
		e.Kill(follower(e))
		for range 8 {
			giveUpAfter(t, client, 250*time.Millisecond)
		}
		for server := range 3 {
			e.Reset(0, server)
		}
		asked := time.Now()
		sessions = append(sessions, w.open(t, client))
		if took := time.Since(asked); took > time.Second {
			t.Errorf("a session was opened after %v", took)
		}
		time.Sleep(30 * time.Second)
		if lost := lostOf(sessions); lost > 0 {
			t.Errorf("%d of %d leases are lost", lost, len(sessions))
		}
		closeAll(w, sessions)
	})
}

// giveUpAfter has many sessions opened at a time, and waits for so long.
func giveUpAfter(t *testing.T, client *zookeeper.Client, wait time.Duration) {
	ctx, cancel := context.WithTimeout(t.Context(), wait)
	defer cancel()
	var opening sync.WaitGroup
	for range 10 {
		opening.Go(func() {
			if s, err := client.Open(ctx, 0); err == nil {
				s.Close(ctx)
			}
		})
	}
	opening.Wait()
}

// stormy is a client of the simulated servers and of others.
func stormy(t *testing.T, e *simulation.Ensemble, beside ...string) *zookeeper.Client {
	t.Helper()
	began := time.Now()
	c, err := zookeeper.New(zookeeper.Config{
		Servers: slices.Concat(e.Addresses(), beside), SessionTimeout: 15 * time.Second, TickTime: 2 * time.Second, SyncLimit: 5,
		Heartbeat: 2 * time.Second, Dial: withSilent(e.Dialer(0)), Clock: func() time.Duration { return time.Since(began) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// leastValid is the shortest validity that any session had while that time went by.
func leastValid(sessions []*zookeeper.Session, while time.Duration) time.Duration {
	least := sessions[0].Timeout()
	for began := time.Now(); time.Since(began) < while; time.Sleep(250 * time.Millisecond) {
		for _, s := range sessions {
			least = min(least, s.ValidFor())
		}
	}
	return least
}

func lostOf(sessions []*zookeeper.Session) (lost int) {
	for _, s := range sessions {
		if s.Err() != nil {
			lost++
		}
	}
	return lost
}

func closeAll(w *witness, sessions []*zookeeper.Session) {
	var closing sync.WaitGroup
	for _, s := range sessions {
		closing.Go(func() { w.close(s) })
	}
	closing.Wait()
}
