package peers

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
)

// Sidekeeper and Curator make a lock's node a container, which ZooKeeper removes when nobody holds the lock or waits for
// it. kazoo's own lock does not expect that: it makes the node once.
func TestTheSharedLockOfKazooOutlivesTheNodeOfTheLock(t *testing.T) {
	s := realStage(t, 1)
	ours, kazoo, session := s.contenders(t, "sidekeeper"), s.contenders(t, "kazoo"), s.look(t)
	for recipe, again := range map[string]string{"shared": "held", "lock": "failed: NoNodeError"} {
		t.Run(recipe, func(t *testing.T) {
			path := fmt.Sprintf("%scontainer-%d", lockRoot, contentions.Add(1))
			holdWith(t, ours, "mutex", path)
			expect(t, kazoo, "made", "make", "holder", recipe, path)
			expect(t, kazoo, "asked", "ask", "holder")
			awaitPlaces(t, session, path, 2) // so that kazoo has found our container, and made no node that stays
			expect(t, ours, "released", "release", "holder")
			expect(t, kazoo, "held", "granted", "holder", patience.Milliseconds())
			expect(t, kazoo, "released", "release", "holder")
			awaitRemoved(t, session, path)
			expect(t, kazoo, "asked", "ask", "holder")
			if got := kazoo.tell(t, "granted", "holder", patience.Milliseconds()); !strings.HasPrefix(got, again) {
				t.Errorf("%s, want %s", got, again)
			}
		})
	}
}

// awaitRemoved returns when a node is gone.
func awaitRemoved(t *testing.T, session *zk.Conn, path string) {
	t.Helper()
	late := time.After(patience)
	for {
		exists, _, changed, err := session.ExistsW(path)
		must(t, err)
		if !exists {
			return
		}
		select {
		case <-changed:
		case <-late:
			t.Fatalf("%s stays", path)
		}
	}
}
