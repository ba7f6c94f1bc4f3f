package standin_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sidekeeper/sidekeeper/internal/embedded"
	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/support/standin"
)

func create(t *testing.T, e *standin.Ensemble, path string) {
	t.Helper()
	if _, err := e.Create(path, nil, embedded.Persistent, 0); err != nil {
		t.Fatal(err)
	}
}

func TestALaggingReaderShowsTheOldTreeUntilItCatchesUp(t *testing.T) {
	inBubble(t, func(t *testing.T, e *standin.Ensemble) {
		create(t, e, "/q/a")
		r := e.NewReader()
		r.Lag()
		create(t, e, "/q/b")
		if err := e.Set("/q/a", []byte("new")); err != nil {
			t.Fatal(err)
		}
		names, listChanged, err := r.WatchChildren(t.Context(), "/q")
		if diff := cmp.Diff([]string{"a"}, names); diff != "" || err != nil {
			t.Errorf("list: %v %s", err, diff)
		}
		node, nodeChanged, err := r.Watch(t.Context(), "/q/a")
		if err != nil || node.Data != nil {
			t.Errorf("node: %v %q", err, node.Data)
		}
		if closed(listChanged.Done()) || closed(nodeChanged.Done()) {
			t.Fatal("a watch fired while lagging")
		}
		if err := r.CatchUp(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !closed(listChanged.Done()) || !closed(nodeChanged.Done()) {
			t.Fatal("a watch set on the old tree did not fire")
		}
		create(t, e, "/q/c")
		names, _ = r.Children(t.Context(), "/q")
		if diff := cmp.Diff([]string{"a", "b"}, names); diff != "" {
			t.Error(diff)
		}
		r.KeepUp()
		names, _ = r.Children(t.Context(), "/q")
		if diff := cmp.Diff([]string{"a", "b", "c"}, names); diff != "" {
			t.Error(diff)
		}
	})
}

func TestWatchesFireOnceAndWatchedNodesCostNoRequest(t *testing.T) {
	inBubble(t, func(t *testing.T, e *standin.Ensemble) {
		create(t, e, "/q/a")
		r := e.NewReader()
		_, first, _ := r.Watch(t.Context(), "/q/a")
		_, second, _ := r.Watch(t.Context(), "/q/a")
		if first != second || r.Count("Watch") != 1 {
			t.Errorf("two watches on one node, or %d requests", r.Count("Watch"))
		}
		if err := e.Delete("/q/a"); err != nil || !closed(first.Done()) {
			t.Errorf("delete: %v, or the watch did not fire", err)
		}
		if _, channel, err := r.Watch(t.Context(), "/q/a"); !errors.Is(err, recipes.ErrNoNode) || channel != nil {
			t.Errorf("watch of a missing node: %v", err)
		}
	})
}

func TestAWatchOfAMissingNodesChildrenFiresWhenItIsMade(t *testing.T) {
	inBubble(t, func(t *testing.T, e *standin.Ensemble) {
		r := e.NewReader()
		_, made, err := r.WatchChildren(t.Context(), "/q")
		if !errors.Is(err, recipes.ErrNoNode) || closed(made.Done()) {
			t.Fatalf("list of a missing node: %v", err)
		}
		create(t, e, "/q")
		if !closed(made.Done()) {
			t.Error("not told that the node was made")
		}
	})
}

func TestASuspendedReadersWatchesAreToldAfterwards(t *testing.T) {
	inBubble(t, func(t *testing.T, e *standin.Ensemble) {
		create(t, e, "/q")
		s := e.OpenSession(10 * time.Second)
		_, changed, _ := s.WatchChildren(t.Context(), "/q")
		s.Suspend()
		create(t, e, "/q/a")
		if closed(changed.Done()) {
			t.Fatal("told while suspended")
		}
		s.Resume()
		if !closed(changed.Done()) {
			t.Error("not told after resuming")
		}
	})
}

func TestHooksStepBetweenAnOperationAndItsReply(t *testing.T) {
	inBubble(t, func(t *testing.T, e *standin.Ensemble) {
		create(t, e, "/q/a")
		s := e.OpenSession(10 * time.Second)
		s.After(func(o standin.Operation) error {
			if o.Name == "Commit" {
				return recipes.ErrOutcomeUnknown
			}
			return nil
		})
		if _, err := s.Commit(t.Context(), recipes.Delete("/q/a", -1)); !errors.Is(err, recipes.ErrOutcomeUnknown) {
			t.Errorf("Commit answers %v", err)
		}
		if len(e.Names("/q")) != 0 {
			t.Error("the node was not removed")
		}
		s.After(nil)
		s.Before(func(standin.Operation) error { return recipes.ErrUnreachable })
		if _, err := s.Commit(t.Context(), recipes.Set("/q", []byte("x"), -1)); !errors.Is(err, recipes.ErrUnreachable) {
			t.Errorf("Commit answers %v", err)
		}
		if node, _ := e.Read("/q"); node.Data != nil {
			t.Error("the node was changed")
		}
	})
}

func TestDelayTakesTimeAndVersionsAndRightsAreChecked(t *testing.T) {
	inBubble(t, func(t *testing.T, e *standin.Ensemble) {
		create(t, e, "/q")
		r := e.NewReader()
		r.Delay(time.Second)
		start := time.Now()
		if _, err := r.Commit(t.Context(), recipes.Set("/q", nil, 7)); !errors.Is(err, recipes.ErrBadVersion) {
			t.Errorf("Set with a wrong version answers %v", err)
		}
		if took := time.Since(start); took != time.Second {
			t.Errorf("took %v", took)
		}
		if err := e.Deny("/q", true); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Get(t.Context(), "/q"); !errors.Is(err, recipes.ErrDenied) {
			t.Errorf("Get answers %v", err)
		}
	})
}

func TestEmptiedContainersAreReapedAndFreshOnesAreNot(t *testing.T) {
	inBubble(t, func(t *testing.T, e *standin.Ensemble) {
		s := e.OpenSession(10 * time.Second)
		path, _ := enqueue(t, s)
		s.Dequeue(t.Context(), path)
		if _, err := e.Create("/fresh", nil, embedded.Container, 0); err != nil {
			t.Fatal(err)
		}
		pass(3 * time.Minute)
		if diff := cmp.Diff([]string{"fresh", "zookeeper"}, e.Names("/")); diff != "" {
			t.Error(diff)
		}
	})
}
