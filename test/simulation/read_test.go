package simulation_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/zookeeper"
	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/simulation"
)

const entry = "/locks/entry"

// A leader that the others have left behind does not know it for a while, and answers whoever is attached to it.
func TestALinearizableReadShowsWhatWasCommittedBefore(t *testing.T) {
	answered, schedules := 0, share(40)
	for seed := range schedules {
		inBubble(t, simulation.Options{Seed: seed, Hosts: 2}, func(t *testing.T, e *simulation.Ensemble, _ *witness) {
			leader := e.Leader()
			one, two := (leader+1)%3, (leader+2)%3
			addresses := e.Addresses()
			writer := newClient(t, e, 0, 15*time.Second, addresses[one], addresses[two])
			defer writer.Close()
			reader := newClient(t, e, 1, 15*time.Second, addresses[leader])
			defer reader.Close()
			put(t, writer, recipes.Create(entry, []byte("old")))
			if got := linearizable(t, reader); got != "old" {
				t.Errorf("seed %d: a linearizable read shows %q after old was committed", seed, got)
			}

			e.Isolate(leader)
			for _, server := range []int{one, two} {
				e.Kill(server)
				e.Start(server)
			}
			put(t, writer, recipes.Set(entry, []byte("new"), 0))
			if stale, err := reader.Get(t.Context(), entry); err == nil && string(stale.Data) == "old" {
				answered++
			}
			if got := linearizable(t, reader); got != "new" && got != "" {
				t.Errorf("seed %d: a linearizable read shows %q after new was committed", seed, got)
			}
			e.Rejoin(leader)
			e.Await()
			if got := linearizable(t, reader); got != "new" {
				t.Errorf("seed %d: with a leader that knows, a linearizable read shows %q", seed, got)
			}
		})
	}
	t.Logf("the old leader answered a local read in %d of %d schedules", answered, schedules)
	if schedules >= 40 && answered < 4 {
		t.Error("too seldom to tell")
	}
}

// put carries out a change, for as long as it takes and as often as it is not known to be done.
func put(t *testing.T, c *zookeeper.Client, change recipes.Change) {
	t.Helper()
	for {
		_, err := c.Commit(t.Context(), change)
		switch {
		case err == nil, errors.Is(err, recipes.ErrBadVersion), errors.Is(err, recipes.ErrExists):
			return
		case !errors.Is(err, recipes.ErrUnreachable) && !errors.Is(err, recipes.ErrOutcomeUnknown):
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
}

// linearizable reads as Get of the configuration does; empty if there is no answer.
func linearizable(t *testing.T, c *zookeeper.Client) string {
	t.Helper()
	err := c.CatchUp(t.Context())
	if err == nil {
		var node recipes.Node
		if node, err = c.Get(t.Context(), entry); err == nil {
			return string(node.Data)
		}
	}
	if !errors.Is(err, recipes.ErrUnreachable) {
		t.Error(err)
	}
	return ""
}

// Sessions that move to another server may meet one that is behind. Who has seen something must not see what was before.
func TestATreeNeverShowsLessThanBeforeWhenItsServerChanges(t *testing.T) {
	for seed := range share(960) { // of 240, about one shows what M22 breaks
		inBubble(t, simulation.Options{Seed: seed}, func(t *testing.T, e *simulation.Ensemble, _ *witness) {
			servers := []int{(e.Leader() + 1) % 3, (e.Leader() + 2) % 3}
			client := newClient(t, e, 0, 15*time.Second, e.Addresses()[servers[0]], e.Addresses()[servers[1]])
			defer client.Close()
			put(t, client, recipes.Create(entry, []byte("old")))
			for _, behind := range servers {
				e.Lag(behind, 4*time.Second) // longer than the library waits before it connects again
				put(t, client, recipes.Set(entry, []byte("new"), -1))
				if got := linearizable(t, client); got != "new" {
					t.Errorf("seed %d: %q was committed", seed, got)
				}
				for _, server := range servers {
					e.Reset(0, server)
				}
				var readers sync.WaitGroup
				for range 16 { // who asks while there is no connection
					readers.Go(func() {
						node, err := client.Get(t.Context(), entry)
						if err != nil || string(node.Data) != "new" {
							t.Errorf("seed %d: after new, the tree shows %q, %v", seed, node.Data, err)
						}
					})
				}
				readers.Wait()
				e.Lag(behind, 0)
				time.Sleep(10 * time.Second)
				put(t, client, recipes.Set(entry, []byte("old"), -1))
			}
		})
	}
}
