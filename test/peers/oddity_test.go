package peers

import (
	"strings"
	"testing"

	"github.com/go-zookeeper/zk"
)

func TestAWriterOfCuratorThatBecomesAReaderLetsOurReadersIn(t *testing.T) {
	on(t, func(t *testing.T, s stage) {
		curator, ours := s.contenders(t, "curator"), s.contenders(t, "sidekeeper")
		const path = lockRoot + "downgraded"
		holdWith(t, curator, "downgradable", path)
		for id, recipe := range map[string]string{"reader": "read", "writer": "write"} {
			expect(t, ours, "made", "make", id, recipe, path)
		}
		session := s.look(t)
		for i, id := range []string{"reader", "writer"} {
			expect(t, ours, "asked", "ask", id)
			awaitPlaces(t, session, path, i+2)
			expect(t, ours, "waits", "granted", id, 0)
		}
		expect(t, curator, "reads", "downgrade", "holder")
		expect(t, ours, "held", "granted", "reader", patience.Milliseconds())
		expect(t, ours, "released", "release", "reader")
		expect(t, ours, "waits", "granted", "writer", 300)
		expect(t, curator, "released", "release", "holder")
		expect(t, ours, "held", "granted", "writer", patience.Milliseconds())
		expect(t, ours, "released", "release", "writer")
	})
}

// Other libraries give a lock any name that ZooKeeper takes. No caller can ask for it, and each sees who holds it.
func TestALockThatNoCallerCanNameIsShown(t *testing.T) {
	s := realStage(t, 1)
	peers, client := s.foreign(t), s.client(t)
	for library, recipe := range map[string]string{"curator": "mutex", "kazoo": "shared", "go-zookeeper": "lock"} {
		t.Run(library, func(t *testing.T) {
			name := "orders:eu@" + library
			holdWith(t, peers[library], recipe, lockRoot+name)
			listed := map[string]int{}
			for lock, err := range client.List(t.Context(), "") {
				must(t, err)
				listed[lock.Name] = lock.Contenders
			}
			if listed[name] != 1 {
				t.Errorf("%s is listed with %d contenders", name, listed[name])
			}
			view, err := client.Get(t.Context(), name)
			must(t, err)
			if len(view.Holders) != 1 {
				t.Errorf("%s is shown as %v", name, view)
			}
			expect(t, peers[library], "released", "release", "holder")
		})
	}
}

func TestWhatIsNoContenderIsInTheWayOfOthersAndNotOfUs(t *testing.T) {
	on(t, func(t *testing.T, s stage) {
		peers, session := s.all(t), s.look(t)
		for kind, want := range map[kind]string{
			{"sidekeeper", "mutex"}:  "held",
			{"kazoo", "shared"}:      "held",
			{"curator", "mutex"}:     "waits",
			{"go-zookeeper", "lock"}: "failed: strconv.Atoi",
		} {
			t.Run(kind.String(), func(t *testing.T) {
				path := lockRoot + "cluttered-" + kind.library
				clutter(t, session, peers["sidekeeper"], path)
				theirs := peers[kind.library]
				expect(t, theirs, "made", "make", "cluttered", kind.recipe, path)
				expect(t, theirs, "asked", "ask", "cluttered")
				if got := theirs.tell(t, "granted", "cluttered", decision.Milliseconds()/10); !strings.HasPrefix(got, want) {
					t.Errorf("%s, want %s", got, want)
				}
			})
		}
	})
}

// clutter puts something into a lock's node that does not belong there, and that comes before all contenders by its name.
func clutter(t *testing.T, session *zk.Conn, ours *peer, path string) {
	t.Helper()
	holdWith(t, ours, "mutex", path)
	_, err := session.Create(path+"/.meta", nil, 0, zk.WorldACL(zk.PermAll))
	must(t, err)
	expect(t, ours, "released", "release", "holder")
}
