package simulation_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/simulation"
	"github.com/sidekeeper/sidekeeper/internal/zookeeper"
	"github.com/sidekeeper/sidekeeper/recipes"
)

// inBubble runs a test in virtual time with an ensemble that is complete.
func inBubble(t *testing.T, options simulation.Options, test func(*testing.T, *simulation.Ensemble)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		e := simulation.New(options)
		defer e.Close()
		e.Await()
		test(t, e)
		if disagreement := e.Disagreement(); disagreement != "" {
			t.Error(disagreement)
		}
	})
}

// newClient is one sidecar's, on a host.
func newClient(t *testing.T, e *simulation.Ensemble, host int, timeout time.Duration) *zookeeper.Client {
	t.Helper()
	began := time.Now()
	c, err := zookeeper.New(zookeeper.Config{
		Servers: e.Addresses(), SessionTimeout: timeout, TickTime: 2 * time.Second, SyncLimit: 5,
		Heartbeat: 2 * time.Second, Directories: []string{"/locks"},
		Dial: e.Dialer(host), Clock: func() time.Duration { return time.Since(began) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestSessionsOwnPlacesInTheSimulation(t *testing.T) {
	inBubble(t, simulation.Options{}, func(t *testing.T, e *simulation.Ensemble) {
		c := newClient(t, e, 0, 15*time.Second)
		defer c.Close()
		s, err := c.Open(t.Context(), 0)
		if err != nil {
			t.Fatal(err)
		}
		lock := recipes.Lock{Path: "/locks/orders"}
		place, err := lock.Join(s, recipes.Exclusive, recipes.About{Owner: "me"})
		if err != nil {
			t.Fatal(err)
		}
		if turn, err := place.Look(t.Context()); err != nil || !turn.First {
			t.Fatalf("look: %+v, %v", turn, err)
		}
		if _, err := place.Grant(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if s.ValidFor() < 5*time.Second || len(e.Names(lock.Path)) != 1 {
			t.Errorf("valid for %v, children %q", s.ValidFor(), e.Names(lock.Path))
		}
		place.Leave()
		s.Close()
		if names := e.Names(lock.Path); len(names) > 0 {
			t.Errorf("left behind: %q", names)
		}
	})
}
