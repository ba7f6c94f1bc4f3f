package endtoend

import (
	"context"
	"fmt"
	"testing"
	"time"

	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
)

func TestNoLeaseIsLostWhileAQuorumServes(t *testing.T) {
	e := ensembleOf(t, quickTick)
	steady := quick(e)
	steady.timeout = 15 * time.Second // the default
	steady.flags = []string{"--heartbeat=500ms"}
	var sidecars []*sidecar
	var holders []*contender
	for i := range 3 {
		s := startSidecar(t, steady)
		sidecars = append(sidecars, s)
		for j := range 3 {
			holder := s.acquire(t, fmt.Sprintf("failover/%d-%d", i, j))
			holder.granted(t)
			holders = append(holders, holder)
		}
	}
	serving := func(t *testing.T) {
		t.Helper()
		began := now()
		for _, holder := range holders {
			proveAgain(t, holder, began)
		}
		proved := now()
		var slowest time.Duration
		for _, s := range sidecars {
			asked := now()
			slowest = max(slowest, s.acquire(t, fmt.Sprintf("failover/more-%d", asked)).granted(t).at.since(asked))
		}
		t.Logf("all leases were proved again after %v; another took at most %v to begin", proved.since(began), slowest)
	}
	t.Run("leader killed", func(t *testing.T) {
		leader, err := e.AwaitQuorum(t.Context())
		must(t, err)
		leader.Kill()
		serving(t)
		repair(t, e)
	})
	t.Run("servers frozen one after the other", func(t *testing.T) {
		for _, server := range e.Servers() {
			server.Freeze()
			serving(t)
			repair(t, e)
		}
	})
	t.Run("links hang one after the other", func(t *testing.T) {
		for _, server := range e.Servers() {
			server.ClientLink().Stall()
			serving(t)
			server.ClientLink().Heal()
		}
	})
	t.Run("connections reset", func(t *testing.T) {
		for range 3 {
			for _, server := range e.Servers() {
				server.ClientLink().Reset()
			}
			serving(t)
		}
	})
	t.Run("rolling restart", func(t *testing.T) {
		for _, server := range e.Servers() {
			server.Stop()
			serving(t)
			repair(t, e)
		}
		serving(t)
	})
}

// proveAgain returns when a hold is proved by what was sent after began.
func proveAgain(t *testing.T, holder *contender, began moment) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patient)
	defer cancel()
	for {
		asked := now()
		answer, err := holder.sidecar.locks.Check(ctx, &lockv1.CheckRequest{HoldIds: []string{holder.granted(t).id}})
		must(t, err)
		hold := answer.GetHolds()[0]
		if hold.GetReason() != "" {
			t.Fatalf("the lease was lost: %s", hold.GetReason())
		}
		// 2 % of the timeout for clocks and a twentieth for margin.
		if asked.add(hold.GetValidFor().AsDuration()).since(began) > 15*time.Second*93/100 {
			return
		}
		select {
		case <-after(50 * time.Millisecond):
		case <-holder.finished:
			t.Fatalf("the stream ended with %s", holder.end)
		}
	}
}
