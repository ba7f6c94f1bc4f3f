package simulation_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/zookeeper"
	"github.com/sidekeeper/sidekeeper/test/simulation"
)

// A heartbeat that is to find what was seen just before finds something newer, again and again.

func TestAskingAgainAndAgainCostsNoLock(t *testing.T) {
	floods := []int{1}
	if !isBrief() { // with the race detector the largest takes a minute
		floods = append(floods, 4, 32)
	}
	for _, loops := range floods {
		t.Run(fmt.Sprint(loops), func(t *testing.T) {
			inBubble(t, simulation.Options{Hosts: 2, SyncLimit: 3}, func(t *testing.T, e *simulation.Ensemble, w *witness) {
				s := newScene(t, e, w, zookeeper.ProofQuorum, lasting)
				defer s.close()
				h := s.hold("orders")
				s.flood(loops, func(i int) {
					if asked, _ := h.lock.Revoke(s.over, s.operator, "somebody", fmt.Sprint(i, time.Now()), nil); asked == 0 {
						time.Sleep(time.Millisecond)
					}
				})
			})
		})
	}
}

// flood does something in so many loops, which must not end the session.
func (s *scene) flood(loops int, do func(i int)) {
	s.Helper()
	end := time.Now().Add(time.Minute)
	var floods sync.WaitGroup
	defer floods.Wait()
	for i := range loops {
		floods.Go(func() {
			for time.Now().Before(end) {
				do(i)
			}
		})
	}
	s.wantValid(time.Minute)
}
