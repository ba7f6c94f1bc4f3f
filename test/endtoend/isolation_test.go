package endtoend

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/test/support/ensemble"
	"github.com/sidekeeper/sidekeeper/test/support/link"
)

// shortestTimeout is as short as leases can be proved at ZooKeeper's default tick.
const shortestTimeout = 4 * time.Second

// A fault ends the lease of a caller whose sidecar is attached to the follower, though the follower may go on answering.
type fault struct {
	name    string
	timeout time.Duration // of the session; 0 is shortestTimeout
	strike  func(t *testing.T, e *ensemble.Ensemble, leader, follower *ensemble.Server)
}

var cutOff = fault{"follower cut off from its leader", 0, func(_ *testing.T, e *ensemble.Ensemble, _, follower *ensemble.Server) {
	e.Isolate(follower.ID())
}}

var faults = []fault{
	cutOff,
	{"leader to follower stalls and heals while follower to leader dies", 0, stallHealDie(time.Second)},
	{"the same, for seconds", 10 * time.Second, stallHealDie(3 * time.Second)},
	{"black hole", 0, func(_ *testing.T, _ *ensemble.Ensemble, _, follower *ensemble.Server) {
		follower.ClientLink().Drop()
	}},
	{"requests lost", 0, func(_ *testing.T, _ *ensemble.Ensemble, _, follower *ensemble.Server) {
		follower.ClientLink().Drop(link.ToServer)
	}},
	{"answers lost", 0, func(_ *testing.T, _ *ensemble.Ensemble, _, follower *ensemble.Server) {
		follower.ClientLink().Drop(link.ToClient)
		follower.ClientLink().Refuse() // a handshake would keep the session, though its answer is lost
	}},
	{"server hung", 0, func(_ *testing.T, _ *ensemble.Ensemble, _, follower *ensemble.Server) {
		follower.Freeze()
	}},
}

// stallHealDie makes what the leader sent long ago reach the follower late, whose answers never reach the leader. A lease
// outlives a stall of about that long.
func stallHealDie(about time.Duration) func(*testing.T, *ensemble.Ensemble, *ensemble.Server, *ensemble.Server) {
	return func(t *testing.T, e *ensemble.Ensemble, leader, follower *ensemble.Server) {
		t.Helper()
		e.CutPeers(leader.ID(), follower.ID(), link.Stall)
		await(t, "the stall", patient, after(about*3/4+rand.N(about/2)))
		e.CutPeers(follower.ID(), leader.ID(), link.Drop)
		e.CutPeers(leader.ID(), follower.ID(), link.Pass)
	}
}

func TestTheStreamEndsBeforeAnotherIsGrantedTheLock(t *testing.T) {
	e := ensembleOf(t, defaultTick)
	for _, fault := range faults {
		var margins []time.Duration
		for round := range *rounds {
			t.Run(fmt.Sprintf("%s/%d", fault.name, round+1), func(t *testing.T) {
				margin, end := isolate(t, e, fault, round, sidekeeper)
				if margin < 0 {
					t.Errorf("two callers held the lock for %v", -margin)
				}
				if end != "Aborted LEASE_LOST" {
					t.Errorf("the stream ended with %s", end)
				}
				margins = append(margins, margin)
			})
		}
		if len(margins) > 0 {
			t.Logf("%s: the stream ended %v to %v before the next grant", fault.name, slices.Min(margins), slices.Max(margins))
		}
	}
}

// A sidecar that takes "answered, so alive for another timeout" for the truth is caught by the same fault.
func TestTheIsolatedFollowerCatchesASidecarThatTrustsTheLastAnswer(t *testing.T) {
	e := ensembleOf(t, defaultTick)
	for round := range max(3, *rounds) {
		margin, end := isolate(t, e, cutOff, round, mutant)
		if margin < 0 {
			t.Logf("caught: two callers held the lock for %v, then the first saw %s", -margin, end)
			return
		}
	}
	t.Error("never caught: the fault proves nothing")
}

// isolate runs one round: a caller holds a lock through a sidecar that knows only the follower, another waits behind it
// through a sidecar that knows only the others. It returns how long the holder's stream had ended before the next
// grant, and how.
func isolate(
	t *testing.T, e *ensemble.Ensemble, fault fault, round int, program func() (string, error),
) (margin time.Duration, end string) {
	t.Helper()
	leader, err := e.AwaitQuorum(t.Context())
	must(t, err)
	followers := e.Followers(t.Context())
	follower := followers[round%len(followers)]
	first := startSidecar(t, setup{
		program: program, servers: []string{follower.Address()}, tick: defaultTick, timeout: cmp.Or(fault.timeout, shortestTimeout),
	})
	second := startSidecar(t, setup{servers: others(e, follower), tick: defaultTick, timeout: 15 * time.Second})
	defer mend(t, e, leader, follower)
	defer second.kill()
	defer first.kill()
	holder, waiter := settle(t, first, second, fmt.Sprintf("isolation/%d", now()))
	fault.strike(t, e, leader, follower)
	struck := now()
	margin = handOver(t, holder, waiter)
	t.Logf("%v after the fault the holder's stream ended, and %v later the next was granted", holder.ended.since(struck), margin)
	return margin, holder.end
}

func others(e *ensemble.Ensemble, but *ensemble.Server) (addresses []string) {
	for _, server := range e.Servers() {
		if server != but {
			addresses = append(addresses, server.Address())
		}
	}
	return addresses
}

// settle returns a holder and a waiter once heartbeats of the holder's have counted, at no particular point between two of
// them. With the shortest timeout a busy machine may lose a lease without a fault: then it is done again.
func settle(t *testing.T, first, second *sidecar, name string) (holder, waiter *contender) {
	t.Helper()
	for range 5 {
		holder = first.acquire(t, name)
		if _, granted := holder.events.wait(t, "granted", patient, isGranted); !granted {
			continue
		}
		waiter = second.acquire(t, name)
		waiter.queued(t)
		select {
		case <-after(3*time.Second/2 + rand.N(time.Second)):
			return holder, waiter
		case <-holder.finished:
			t.Logf("lost without a fault: %s", holder.end)
		}
		waiter.cancel()
		waiter.awaitEnd(t, "Canceled")
	}
	t.Fatal("no lease lives long enough")
	return nil, nil
}

// mend undoes a fault. Connections between the two that have lost something would be noticed only after ten seconds.
func mend(t *testing.T, e *ensemble.Ensemble, leader, follower *ensemble.Server) {
	t.Helper()
	e.Heal()
	for _, way := range [][2]int{{leader.ID(), follower.ID()}, {follower.ID(), leader.ID()}} {
		quorum, election := e.PeerLinks(way[0], way[1])
		quorum.Reset()
		election.Reset()
	}
	repair(t, e)
}
