package simulation_test

import (
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/zookeeper"
	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/simulation"
)

// joinsUnanswered has a session join the group, of which no answer comes: it is found when the session has come back. It returns when it has
// joined, and until when a caller was told at most that the session is his.
func joinsUnanswered(
	t *testing.T, e *simulation.Ensemble, w *witness, meanwhile func(path string),
) (session *zookeeper.Session, node recipes.Node, told time.Time) {
	t.Helper()
	client := newClient(t, e, 0, 15*time.Second)
	t.Cleanup(client.Close)
	session = w.open(t, client)
	path, joined := group+"/a", make(chan error, 1)
	if made, _, err := session.Create(t.Context(), group+"/b", nil); err != nil || made.Version != 1 { // the group is there
		t.Fatal(made, err)
	}
	for server := range 3 {
		e.CutHost(0, server, false, true)
	}
	go func() {
		var err error
		node, _, err = session.Create(t.Context(), path, []byte("first"))
		joined <- err
	}()
	time.Sleep(100 * time.Millisecond)
	meanwhile(path)
	time.Sleep(5500 * time.Millisecond) // by then it has given its connection up
	for server := range 3 {
		e.MendHost(0, server)
	}
	for {
		select {
		case err := <-joined:
			if err != nil {
				t.Fatal(err)
			}
			return session, node, told
		case <-time.After(time.Millisecond):
			if until := time.Now().Add(session.ValidFor()); until.After(told) {
				told = until
			}
		}
	}
}

// What a caller is told while it is not known what became of a member's making, the member does not take back.
func TestAMemberThatIsFoundBoundsNothingThatWasTold(t *testing.T) {
	for seed := range share(20) {
		inBubble(t, simulation.Options{Seed: seed, Hosts: 2}, func(t *testing.T, e *simulation.Ensemble, w *witness) {
			session, _, told := joinsUnanswered(t, e, w, func(string) {})
			defer w.close(session)
			if left := session.ValidFor(); left < time.Until(told) || left == 0 {
				t.Errorf("valid for %v where %v was told", left, time.Until(told))
			}
		})
	}
}

// A member whose end was asked for before its own session has found it is no member yet: it is made anew.
func TestAMemberWhoseEndWasAskedForBeforeItWasFoundIsMadeAnew(t *testing.T) {
	for seed := range share(20) {
		inBubble(t, simulation.Options{Seed: seed, Hosts: 2}, func(t *testing.T, e *simulation.Ensemble, w *witness) {
			other := newClient(t, e, 1, 15*time.Second)
			defer other.Close()
			asks := w.open(t, other)
			defer w.close(asks)
			var first int64
			session, node, told := joinsUnanswered(t, e, w, func(path string) {
				stat, there := e.Stat(path)
				if first = stat.Czxid; !there || stat.Version != 1 {
					t.Fatalf("%v, %+v", there, stat)
				}
				if _, err := asks.Commit(t.Context(), recipes.Set(path, []byte("leave"), 1)); err != nil {
					t.Fatal(err)
				}
			})
			defer w.close(session)
			stat, there := e.Stat(group + "/a")
			if !there || stat.Owner != session.ID() || stat.Czxid == first || stat.Czxid != node.Czxid || stat.Version != 1 {
				t.Errorf("seed %d: %v: %+v, first made by %x", seed, there, stat, first)
			}
			if left := session.ValidFor(); left < time.Until(told) || left == 0 {
				t.Errorf("valid for %v where %v was told", left, time.Until(told))
			}
		})
	}
}
