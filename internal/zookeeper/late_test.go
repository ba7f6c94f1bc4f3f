package zookeeper

import (
	"errors"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/support/link"
)

// Why a transaction must depend on a version: one whose reply was lost lingers in a server that stands still, while the reader
// has caught up on another server and shows the tree without it.
func TestALostCommitIsCarriedOutLaterUnlessItsVersionHasPassed(t *testing.T) {
	e := slowTicks.ensemble(t)
	follower, leader := e.Followers(t.Context())[0], e.Leader(t.Context())
	way, err := link.New(link.Options{Target: follower.RealAddress(), ZooKeeper: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(way.Close)
	at := func(address string) *Client {
		return newClient(t, e, func(c *Config) { c.Servers, c.TickTime = []string{address}, 2*time.Second })
	}
	c, near, far := at(way.Address()), at(leader.RealAddress()), at(follower.RealAddress())

	for _, overtaken := range []bool{false, true} {
		const path = "/sidekeeper/late"
		commit(t, near, recipes.Create(path, []byte("old")))
		way.SetTarget(follower.RealAddress())
		way.Reset()
		settle(t, c, path)
		settle(t, far, path)

		e.CutPeers(follower.ID(), leader.ID(), link.Stall)
		way.SetTarget(leader.RealAddress())
		if _, err := c.Commit(t.Context(), recipes.Set(path, []byte("late"), 0)); !errors.Is(err, recipes.ErrOutcomeUnknown) {
			t.Fatal(err)
		}
		if node := settle(t, c, path); string(node.Data) != "old" {
			t.Fatalf("it is %s already", node.Data)
		}
		want := "late"
		if overtaken {
			want = "new"
			commit(t, c, recipes.Set(path, []byte("new"), 0))
		}
		e.CutPeers(follower.ID(), leader.ID(), link.Pass)
		settle(t, far, path) // behind whatever the follower had
		if node := settle(t, near, path); string(node.Data) != want || node.Version != 1 {
			t.Errorf("overtaken %v: it is %s in version %d, want %s", overtaken, node.Data, node.Version, want)
		}
		commit(t, near, recipes.Delete(path, 1))
	}
}
