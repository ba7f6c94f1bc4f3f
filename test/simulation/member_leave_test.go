package simulation_test

import (
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/simulation"
)

// A name may be another member's before its first member leaves: an operator or a program has deleted the node. The version of both nodes is
// the same, and a server that lags still shows the old one.
func TestAMemberThatLeavesLetsAnothersNodeAlone(t *testing.T) {
	for what, lag := range map[string]time.Duration{"at a server that keeps up": 0, "at a server that lags": time.Second} {
		t.Run(what, func(t *testing.T) {
			inBubble(t, simulation.Options{Hosts: 2}, func(t *testing.T, e *simulation.Ensemble, w *witness) {
				s := newLagScene(t, e, w)
				defer s.close()
				late := newClient(t, e, 1, lasting, e.Addresses()[s.behind])
				defer late.Close()
				mine, theirs := s.open(late, lasting), s.open(s.other, lasting)
				const path = "/locks/group/a"
				_, _, err := mine.Create(s.Context(), path, []byte("mine"))
				s.must(err)
				if lag > 0 {
					s.Lag(s.behind, lag)
				}
				_, err = s.other.Commit(s.Context(), recipes.Delete(path, -1))
				s.must(err)
				made, _, err := theirs.Create(s.Context(), path, []byte("theirs"))
				s.must(err)
				mine.Delete(s.Context(), path)
				if stands, there := s.Stat(path); !there || stands.Czxid != made.Czxid {
					s.Error("the other's member is deleted")
				}
			})
		})
	}
}
