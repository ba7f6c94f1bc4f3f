package zookeeper

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/support/ensemble"
)

// awaitAsleep waits until the session sleeps.
func awaitAsleep(t *testing.T, s *Session) {
	t.Helper()
	for ctx := within(t, 40*time.Second); !s.Asleep(); {
		select {
		case <-time.After(tick):
		case <-s.Done():
			t.Fatalf("the session ended: %v", s.Err())
		case <-ctx.Done():
			t.Fatal("awake")
		}
	}
	if left := s.ValidFor(); left > 0 {
		t.Errorf("asleep and valid for %v", left)
	}
}

func TestASessionThatSleepsIsKeptByAnEnsembleAndWakes(t *testing.T) {
	e := startEnsemble(t, ensemble.Options{})
	s := openSession(t, newClient(t, e, func(c *Config) { c.Sleep, c.SessionTimeout = true, 6*time.Second }))
	serves := func(t *testing.T) {
		t.Helper()
		if err := s.Prove(within(t, 20*time.Second)); err != nil || s.ValidFor() <= 0 || s.Asleep() {
			t.Fatalf("%v: asleep: %v, valid for %v, %v", err, s.Asleep(), s.ValidFor(), s.Err())
		}
		place := enqueue(t, s, "/sidekeeper/sleep")
		node, err := s.Get(t.Context(), place)
		if err != nil || !s.Owns(node) {
			t.Errorf("%+v, %v", node, err)
		}
		s.Dequeue(t.Context(), place)
	}
	t.Run("while all is well", func(t *testing.T) {
		awaitAsleep(t, s)
		serves(t)
	})
	t.Run("while there is no quorum", func(t *testing.T) {
		awaitAsleep(t, s)
		for _, server := range e.Servers() {
			server.Kill()
		}
		<-time.After(s.Timeout() + 5*time.Second)
		if err := s.Err(); err != nil {
			t.Fatal(err)
		}
		for _, server := range e.Servers() {
			if err := server.Restart(); err != nil {
				t.Fatal(err)
			}
		}
		if err := e.AwaitAll(t.Context()); err != nil {
			t.Fatal(err)
		}
		serves(t)
	})
	t.Run("and learns that it was closed by somebody else", func(t *testing.T) {
		awaitAsleep(t, s)
		takeOver(t, attached(e, s).RealAddress(), s.ID(), true)
		await(t, "the session's end", 20*time.Second, s.Done())
		if !errors.Is(s.Err(), recipes.ErrSessionEnded) {
			t.Error(s.Err())
		}
	})
}

// A follower that is cut off from the leader answers reads for syncLimit ticks. The session leaves it while the leader still knows the session.
func TestASessionThatSleepsLeavesAServerThatIsCutOffFromItsLeader(t *testing.T) {
	const timeout = 16 * time.Second // which leaves three seconds for a busy machine
	e := startEnsemble(t, ensemble.Options{SyncLimit: int(2 * timeout / tick)})
	s := openAtFollower(t, e, func(c *Config) { c.Sleep, c.SessionTimeout = true, timeout })
	awaitAsleep(t, s)
	left := attached(e, s)
	e.Isolate(left.ID())
	for ctx := within(t, timeout+10*time.Second); attached(e, s) == left; {
		select {
		case <-time.After(tick):
		case <-ctx.Done():
			t.Fatal("it is at the server that was cut off")
		}
	}
	if err := s.Prove(within(t, 20*time.Second)); err != nil {
		t.Fatal(err)
	}
	e.Rejoin(left.ID())
}

// openAtFollower opens a session that is connected to a follower.
func openAtFollower(t *testing.T, e *ensemble.Ensemble, adjust func(*Config)) *Session {
	t.Helper()
	for {
		c := newClient(t, e, adjust)
		if err := c.CatchUp(within(t, 20*time.Second)); err != nil {
			t.Fatal(err)
		}
		s := openSession(t, c)
		if attached(e, s) != e.Leader(t.Context()) {
			return s
		}
		s.Close(context.Background())
	}
}
