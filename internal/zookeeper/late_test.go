package zookeeper

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/support/link"
)

// A late is a client whose reader is attached to a follower, and goes on at the leader when that follower stands still.
type late struct {
	*Client

	near, far *Client // attached to the leader, and to the follower
	stall     func()  // has the follower stand still: what it is asked to write from now on reaches the leader late
	pass      func()  // lets it go on, and returns when it has
	attach    func()  // has the reader come back to the follower
}

func newLate(t *testing.T) *late {
	t.Helper()
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
	l := &late{Client: at(way.Address()), near: at(leader.RealAddress()), far: at(follower.RealAddress())}
	l.attach = func() {
		way.SetTarget(follower.RealAddress())
		way.Reset()
		settle(t, l.Client, "/sidekeeper")
		settle(t, l.far, "/sidekeeper")
	}
	l.stall = func() {
		e.CutPeers(follower.ID(), leader.ID(), link.Stall)
		way.SetTarget(leader.RealAddress())
	}
	l.pass = func() {
		e.CutPeers(follower.ID(), leader.ID(), link.Pass)
		settle(t, l.far, "/sidekeeper") // behind whatever the follower had
	}
	return l
}

// A transaction whose reply was lost lingers in a server that stands still, while the reader goes on at another one. What that shows of
// the transaction stays true, whatever others do meanwhile.
func TestALostCommitIsNotCarriedOutOnceTheReaderGoesOn(t *testing.T) {
	l := newLate(t)
	for _, overtaken := range []bool{false, true} {
		const path = "/sidekeeper/late"
		commit(t, l.near, recipes.Create(path, []byte("old")))
		l.attach()
		settle(t, l.Client, path)

		l.stall()
		if _, err := l.Commit(t.Context(), recipes.Set(path, []byte("late"), 0)); !errors.Is(err, recipes.ErrOutcomeUnknown) {
			t.Fatal(err)
		}
		if node := settle(t, l.Client, path); string(node.Data) != "old" {
			t.Fatalf("it is %s already", node.Data)
		}
		want := "old"
		if overtaken { // by the same version, made anew
			want = "new"
			commit(t, l.near, recipes.Delete(path, 0))
			commit(t, l.near, recipes.Create(path, []byte(want)))
		}
		l.pass()
		if node := settle(t, l.near, path); string(node.Data) != want || node.Version != 0 {
			t.Errorf("overtaken %v: it is %s in version %d, want %s", overtaken, node.Data, node.Version, want)
		}
		commit(t, l.near, recipes.Delete(path, 0))
	}
}

// A directory that was made and has gone since does not come back.
func TestALostDirectoryIsNotMadeOnceTheReaderGoesOn(t *testing.T) {
	l := newLate(t)
	const path = "/sidekeeper/late-directory"
	l.attach()
	l.stall()
	if err := l.MakeDirectory(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	commit(t, l.near, recipes.Delete(path, 0))
	l.pass()
	settle(t, l.near, "/sidekeeper")
	if _, err := l.near.Get(t.Context(), path); !errors.Is(err, recipes.ErrNoNode) {
		t.Errorf("a directory that was removed has come back: %v", err)
	}
}

// losing counts the commits whose outcome a recipe does not hear of. Before the first one, something happens.
type losing struct {
	recipes.Store

	before func()
	lost   int
}

func (l *losing) Commit(ctx context.Context, changes ...recipes.Change) ([]recipes.Node, error) {
	if l.before != nil {
		l.before()
		l.before = nil
	}
	nodes, err := l.Store.Commit(ctx, changes...)
	if errors.Is(err, recipes.ErrOutcomeUnknown) {
		l.lost++
	}
	return nodes, err
}

// A recipe repeats by itself what it has not heard of. The first one must not be carried out after another caller has done the reverse.
func TestWhatIsRepeatedIsNotDoneTwice(t *testing.T) {
	l := newLate(t)
	barrier := recipes.Barrier{Path: "/sidekeeper/late-barrier"}
	deeds := map[bool]func(context.Context, recipes.Store) error{true: barrier.Set, false: barrier.Remove}
	for _, set := range []bool{true, false} {
		if err := deeds[!set](t.Context(), l.near); err != nil {
			t.Fatal(err)
		}
		l.attach()
		store := &losing{Store: l.Client, before: l.stall}
		if err := deeds[set](t.Context(), store); err != nil || store.lost == 0 {
			t.Fatal("no reply was lost: ", err)
		}
		if err := deeds[!set](t.Context(), l.near); err != nil {
			t.Fatal(err)
		}
		l.pass()
		settle(t, l.near, "/sidekeeper")
		if state, err := barrier.State(t.Context(), l.near); err != nil || state.Set == set {
			t.Errorf("a barrier that others have set %v since is set %v, %v", !set, state.Set, err)
		}
	}
}
