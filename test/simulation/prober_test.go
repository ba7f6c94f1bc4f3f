package simulation_test

import (
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/simulation"
)

func TestSessionsOfOneServerAreProvedTogether(t *testing.T) {
	inBubble(t, simulation.Options{}, func(t *testing.T, e *simulation.Ensemble, w *witness) {
		client := newClient(t, e, 0, 15*time.Second)
		defer client.Close()
		time.Sleep(5 * time.Second)
		const sessions = 100
		for i := range sessions {
			s := w.open(t, client)
			defer w.close(s)
			place, err := recipes.Lock{Path: "/locks/orders"}.Join(t.Context(), s, recipes.Read, recipes.About{})
			if err != nil {
				t.Fatal(i, err)
			}
			defer place.Leave(t.Context())
		}
		for range 20 {
			before := e.Backup()
			time.Sleep(10 * time.Second)
			t.Logf("%d in 10 s", e.Backup()-before)
		}
	})
}
