package simulation_test

import (
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/test/simulation"
)

// What the leader sends to a server stalls; what the server sends to the leader is lost from some moment on; and then what has
// stalled arrives, with the leader's word on all that it had heard of before. Who takes that for news counts too long.
func TestASessionEndsInTimeThoughItsServerHearsOfTheLeaderLateAndIsNotHeard(t *testing.T) {
	schedules := int(share(100))
	ended := 0
	for seed := range uint64(schedules) {
		inBubble(t, simulation.Options{Seed: seed}, func(t *testing.T, e *simulation.Ensemble, w *witness) {
			leader, server := e.Leader(), follower(e)
			client := newClient(t, e, 0, short, e.Addresses()[server])
			defer client.Close()
			session := w.open(t, client)
			time.Sleep(5*time.Second + time.Duration(seed*73)*time.Millisecond)

			e.Cut(leader, server)
			time.Sleep(300*time.Millisecond + time.Duration(seed%25)*50*time.Millisecond)
			e.Cut(server, leader)
			time.Sleep(10 * time.Millisecond)
			e.Mend(leader, server)
			time.Sleep(2 * short)
			if session.Err() == nil {
				t.Errorf("seed %d: the session is valid for %v", seed, session.ValidFor())
			}
			ended += w.ends
			e.Mend(server, leader)
			e.Await()
		})
	}
	if ended < schedules*9/10 {
		t.Errorf("only %d of %d sessions were ended by the ensemble", ended, schedules)
	}
}
