package controllers

import (
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	"github.com/sidekeeper/sidekeeper/sidekeepertest"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func await[T any](t *testing.T, what string, news <-chan T) T {
	t.Helper()
	select {
	case got := <-news:
		return got
	case <-time.After(patience):
		t.Fatalf("waited in vain for %s", what)
		panic("unreachable")
	}
}

// pause waits a little, until the test is over at most.
func pause(t *testing.T) {
	t.Helper()
	select {
	case <-time.After(20 * time.Millisecond):
	case <-t.Context().Done():
		t.Fatal("the test is over")
	}
}

func election(t *testing.T, sidecar *sidekeepertest.Sidecar) *sidekeeper.ElectionView {
	t.Helper()
	view, err := sidecar.Client().GetElection(t.Context(), "scheduler")
	must(t, err)
	return view
}

// awaitCandidates waits until so many stand behind the leader.
func awaitCandidates(t *testing.T, sidecar *sidekeepertest.Sidecar, count int) {
	t.Helper()
	for began := time.Now(); len(election(t, sidecar).Candidates) < count; pause(t) {
		if time.Since(began) > patience {
			t.Fatal("waited in vain for candidates")
		}
	}
}

// awaitLeader waits for a term after the one of that number.
func awaitLeader(t *testing.T, sidecar *sidekeepertest.Sidecar, after int64) (term int64) {
	t.Helper()
	for began := time.Now(); term == 0; pause(t) {
		if time.Since(began) > patience {
			t.Fatal("waited in vain for a leader")
		}
		term = termOf(election(t, sidecar), after)
	}
	return term
}

// termOf is the leader's term, if it comes after the one of that number, or else 0.
func termOf(view *sidekeeper.ElectionView, after int64) int64 {
	if view.Leader == nil || view.Leader.Term.FencingToken <= after {
		return 0
	}
	return view.Leader.Term.FencingToken
}
