package peers

import (
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
)

// deaf are holders that nobody can ask: nothing happens to them, nor to those behind them. They say this when they let go
// of a lock that was broken.
var deaf = map[kind]string{
	{"curator", "mutex"}:     "released",
	{"kazoo", "shared"}:      "released",
	{"go-zookeeper", "lock"}: "failed: zk: node does not exist",
}

func TestHoldersAreAskedToLetGoWhoeverAsksWhom(t *testing.T) {
	on(t, func(t *testing.T, s stage) {
		client, peers := s.client(t), s.all(t)
		t.Run("Curator's Revoker asks our holder", func(t *testing.T) { beAsked(t, s, peers["curator"]) })
		t.Run("we ask a revocable holder of Curator", func(t *testing.T) { askCurator(t, client, peers["curator"]) })
		for kind, told := range deaf {
			holder := peers[kind.library]
			t.Run(kind.String()+" does not listen", func(t *testing.T) { askInVain(t, client, holder, kind) })
			t.Run(kind.String()+" is broken and does not know", func(t *testing.T) {
				breakUnknowing(t, client, dial(t, s.operators), holder, kind, told)
			})
		}
	})
}

func beAsked(t *testing.T, s stage, curator *peer) {
	t.Helper()
	ours, err := s.client(t).Acquire(t.Context(), "revoked", sidekeeper.LockOptions{Owner: "billing-7"})
	must(t, err)
	expect(t, curator, "revoked", "revoke", onlyPlace(t, s.look(t), lockRoot+"revoked"))
	select {
	case asked := <-ours.Revocation():
		if !asked.Deadline.IsZero() || !ours.Valid() {
			t.Errorf("asked with %+v; the lock is valid: %v", asked, ours.Valid())
		}
	case <-time.After(patience):
		t.Fatal("nobody asked our holder")
	}
	must(t, ours.Release(t.Context()))
	holdWith(t, curator, "mutex", lockRoot+"revoked")
	expect(t, curator, "released", "release", "holder")
}

// onlyPlace is the node of the one who holds the lock and for whom nobody waits.
func onlyPlace(t *testing.T, session *zk.Conn, path string) string {
	t.Helper()
	children, _, err := session.Children(path)
	must(t, err)
	if len(children) != 1 {
		t.Fatalf("places: %q", children)
	}
	return path + "/" + children[0]
}

// holdWith has a program's contender hold a lock.
func holdWith(t *testing.T, by *peer, recipe, path string) {
	t.Helper()
	expect(t, by, "made", "make", "holder", recipe, path)
	expect(t, by, "asked", "ask", "holder")
	expect(t, by, "held", "granted", "holder", patience.Milliseconds())
}

func askCurator(t *testing.T, client *sidekeeper.Client, curator *peer) {
	t.Helper()
	holdWith(t, curator, "revocable", lockRoot+"revocable")
	next := acquireBehind(t, client, "revocable")
	expect(t, curator, "undisturbed", "asked", "holder", 0)
	revoke(t, client, "revocable")
	expect(t, curator, "asked", "asked", "holder", patience.Milliseconds())
	expect(t, curator, "released", "release", "holder")
	must(t, (<-next).Release(t.Context()))
}

// revoke asks the one holder of a lock to let go.
func revoke(t *testing.T, client *sidekeeper.Client, name string) {
	t.Helper()
	asked, err := client.Revoke(t.Context(), name, sidekeeper.RevokeOptions{Reason: "maintenance"})
	must(t, err)
	if asked != 1 {
		t.Errorf("%d were asked", asked)
	}
}

func askInVain(t *testing.T, client *sidekeeper.Client, holder *peer, kind kind) {
	t.Helper()
	lock := "deaf-" + kind.library
	holdWith(t, holder, kind.recipe, lockRoot+lock)
	next := acquireBehind(t, client, lock)
	revoke(t, client, lock)
	awaitView(t, client, lock, "holds: , foreign, asked to let go; waits: a waiter")
	expect(t, holder, "released", "release", "holder")
	must(t, (<-next).Release(t.Context()))
}

// An operator may take the place of any holder away. One that is not ours learns of it when it lets go, or never.
func breakUnknowing(t *testing.T, client, operator *sidekeeper.Client, holder *peer, kind kind, told string) {
	t.Helper()
	lock := "broken-" + kind.library
	holdWith(t, holder, kind.recipe, lockRoot+lock)
	next := acquireBehind(t, client, lock)
	view, err := client.Get(t.Context(), lock)
	must(t, err)
	forced, err := operator.Break(t.Context(), lock, view.Holders[0].FencingToken,
		sidekeeper.BreakOptions{Reason: "it hangs", ForceAfter: new(time.Duration)})
	must(t, err)
	if !forced {
		t.Error("it let go by itself")
	}
	ours := <-next
	expect(t, holder, told, "release", "holder")
	must(t, ours.Release(t.Context()))
}
