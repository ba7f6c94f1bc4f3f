package peers

import (
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	sidekeeper "github.com/sidekeeper/sidekeeper/clients/go"
)

func TestCuratorsRevokerAsksOurHolder(t *testing.T) {
	on(t, func(t *testing.T, s stage) {
		client, curator := s.client(t), s.contenders(t, "curator")
		ours, err := client.Acquire(t.Context(), "revoked", sidekeeper.LockOptions{Owner: "billing-7"})
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
	})
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

func TestARevocableHolderOfCuratorIsAskedByUs(t *testing.T) {
	on(t, func(t *testing.T, s stage) {
		client, curator := s.client(t), s.contenders(t, "curator")
		holdWith(t, curator, "revocable", lockRoot+"revocable")
		next := acquireBehind(t, client, "revocable")
		expect(t, curator, "undisturbed", "asked", "holder", 0)
		revoke(t, client, "revocable")
		expect(t, curator, "asked", "asked", "holder", patience.Milliseconds())
		expect(t, curator, "released", "release", "holder")
		must(t, (<-next).Release(t.Context()))
	})
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

// deaf are holders that nobody can ask: nothing happens to them, nor to those behind them. They say this when they let go
// of a lock that was broken.
var deaf = map[kind]string{
	{"curator", "mutex"}:     "released",
	{"kazoo", "shared"}:      "released",
	{"go-zookeeper", "lock"}: "failed: zk: node does not exist",
}

func TestHoldersThatDoNotListenKeepTheLock(t *testing.T) {
	on(t, func(t *testing.T, s stage) {
		client, peers := s.client(t), s.all(t)
		for kind := range deaf {
			t.Run(kind.String(), func(t *testing.T) {
				lock, holder := "deaf-"+kind.library, peers[kind.library]
				holdWith(t, holder, kind.recipe, lockRoot+lock)
				next := acquireBehind(t, client, lock)
				revoke(t, client, lock)
				view, err := client.Get(t.Context(), lock)
				must(t, err)
				if len(view.GetHolders()) != 1 || !view.GetHolders()[0].GetRevocationRequested() || len(view.GetWaiters()) != 1 {
					t.Errorf("the sidecar shows %v", view)
				}
				expect(t, holder, "released", "release", "holder")
				must(t, (<-next).Release(t.Context()))
			})
		}
	})
}

// An operator may take the place of any holder away. One that is not ours learns of it when it lets go, or never.
func TestAHolderThatIsNotOursIsBrokenWithoutKnowing(t *testing.T) {
	on(t, func(t *testing.T, s stage) {
		client, operator, peers := s.client(t), dial(t, s.operators), s.all(t)
		for kind, told := range deaf {
			t.Run(kind.String(), func(t *testing.T) {
				lock, holder := "broken-"+kind.library, peers[kind.library]
				holdWith(t, holder, kind.recipe, lockRoot+lock)
				next := acquireBehind(t, client, lock)
				view, err := client.Get(t.Context(), lock)
				must(t, err)
				forced, err := operator.Break(t.Context(), lock, view.GetHolders()[0].GetFencingToken(),
					sidekeeper.BreakOptions{Reason: "it hangs", ForceAfter: new(time.Duration)})
				must(t, err)
				if !forced {
					t.Error("it let go by itself")
				}
				ours := <-next
				expect(t, holder, told, "release", "holder")
				must(t, ours.Release(t.Context()))
			})
		}
	})
}
