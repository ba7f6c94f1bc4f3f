package simulation_test

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/simulation"
)

func TestSessionsOwnPlacesInTheSimulation(t *testing.T) {
	inBubble(t, simulation.Options{}, func(t *testing.T, e *simulation.Ensemble, w *witness) {
		c := newClient(t, e, 0, 15*time.Second)
		defer c.Close()
		s := w.open(t, c)
		lock := recipes.Lock{Path: "/locks/orders"}
		place, err := lock.Join(t.Context(), s, recipes.Exclusive, recipes.About{Owner: "me"})
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
		place.Leave(t.Context())
		w.close(s)
		if names := e.Names(lock.Path); len(names) > 0 {
			t.Errorf("left behind: %q", names)
		}
	})
}

// Whoever asks again what he got no answer to must not keep the time that the answer takes from passing.
func TestASessionIsClosedUnderWhoeverStillMakesAPlace(t *testing.T) {
	inBubble(t, simulation.Options{}, func(t *testing.T, e *simulation.Ensemble, w *witness) {
		c := newClient(t, e, 0, 15*time.Second)
		defer c.Close()
		s := w.open(t, c)
		var joining sync.WaitGroup
		joining.Go(func() {
			if _, err := s.Enqueue(t.Context(), "/locks/orders", "-lock-", nil); err != nil && !errors.Is(err, recipes.ErrSessionEnded) {
				t.Error(err)
			}
		})
		synctest.Wait()
		w.close(s)
		joining.Wait()
		time.Sleep(time.Second)
		if names := e.Names("/locks/orders"); len(names) > 0 {
			t.Errorf("left behind: %q", names)
		}
	})
}
