package simulation_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/zookeeper"
	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/simulation"
)

// tokens makes so many places, one after the other, and returns the largest token.
func tokens(t *testing.T, s *zookeeper.Session, places int) (largest int64) {
	t.Helper()
	for range places {
		made, err := s.Enqueue(t.Context(), "/locks/a", "-lock-", nil)
		if err != nil {
			t.Fatal(err)
		}
		s.Dequeue(t.Context(), "/locks/a/"+made.Name)
		largest = max(largest, made.Czxid)
	}
	return largest
}

// restore puts all servers back to where they were.
func restore(e *simulation.Ensemble, backup int) {
	for server := range e.Addresses() {
		e.Kill(server)
	}
	e.Restore(backup)
	for server := range e.Addresses() {
		e.Start(server)
	}
	e.Await()
}

// Nobody calls, and nobody runs doctor.
func TestAnEnsembleThatIsRestoredIsFoundUnaskedAndGrantsNoTokenAgain(t *testing.T) {
	inBubble(t, simulation.Options{}, func(t *testing.T, e *simulation.Ensemble, w *witness) {
		var found atomic.Int32
		began := time.Now()
		client, err := zookeeper.New(zookeeper.Config{
			Servers: e.Addresses(), SessionTimeout: 15 * time.Second, TickTime: 2 * time.Second, SyncLimit: 5,
			Heartbeat: 2 * time.Second, Directories: []string{"/locks"}, Restored: func() { found.Add(1) },
			Dial: e.Dialer(0), Clock: func() time.Duration { return time.Since(began) },
		})
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		quiet := w.open(t, client) // it is in the backup, and has seen nothing that is not
		backup, busy := e.Backup(), w.open(t, client)
		remembered := tokens(t, busy, 200)
		restore(e, backup)
		time.Sleep(20 * time.Second)
		if times := found.Load(); times != 1 {
			t.Errorf("found %d times", times)
		}
		for name, session := range map[string]*zookeeper.Session{"quiet": quiet, "busy": busy} {
			if session.Err() == nil {
				t.Errorf("the %s session goes on", name)
			}
		}
		if reachable, _ := client.Reachable(); reachable {
			t.Error("it is ready")
		}
		if s, err := client.Open(t.Context(), 0); !errors.Is(err, recipes.ErrRestored) {
			t.Errorf("opened %v, %v", s, err)
		}

		other := newClient(t, e, 0, 15*time.Second) // of a sidecar that has been restarted
		defer other.Close()
		forgetful := w.open(t, other)
		if token := tokens(t, forgetful, 1); token > remembered {
			t.Errorf("token %d after %d: this test shows nothing", token, remembered)
		}
		tokens(t, forgetful, 200)
		w.close(forgetful)
		time.Sleep(5 * time.Second)
		session := w.open(t, client)
		if token := tokens(t, session, 1); token <= remembered {
			t.Errorf("token %d after %d", token, remembered)
		}
		w.close(session)
		if times := found.Load(); times != 1 {
			t.Errorf("found %d times", times)
		}
	})
}
