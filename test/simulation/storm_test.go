package simulation_test

import (
	"context"
	"net"
	"slices"
	"sync"
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
				for range 1000 {
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
