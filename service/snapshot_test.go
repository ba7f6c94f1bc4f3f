package service

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	membershipv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/membership/v1"
	"github.com/sidekeeper/sidekeeper/internal/caller"
	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/support/standin"
)

func TestTheStateTellsWhoHoldsAndWaitsAndNoID(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	lease := s.open(s.callers, &leasev1.OpenRequest{Owner: "billing"})
	held := s.hold(s.callers, &lockv1.AcquireRequest{Name: "orders", LeaseId: lease.id})
	waiter := s.acquire(s.callers, &lockv1.AcquireRequest{Name: "orders", Owner: "shipping"})
	waiter.sees("queued 1")
	member, err := s.groups.Join(s.context(), &membershipv1.JoinRequest{Group: "web", Member: "web-1", LeaseId: lease.id})
	s.must(err)
	_, err = member.Recv()
	s.must(err)

	state := s.services.Snapshot()
	same(t, "counts", state.Counts, Counts{Leases: 2, MaxLeases: 10000, Holds: 1, Waiters: 1, Members: 1})
	same(t, "leases", len(state.Leases), 2)
	first := state.Leases[0]
	same(t, "the oldest", fmt.Sprint(first.Owner, first.Caller, first.Holds, first.Waits, first.Members), "billinguid:"+uid()+"1 0 1")
	same(t, "validity", first.ValidFor > 0 && first.ValidFor <= first.TTL, true)
	lock := state.Locks[0]
	same(t, "lock", lock.Name, "orders")
	same(t, "holder", lock.Holders[0].Owner+" "+lock.Holders[0].Token, fmt.Sprint("billing ", held.token))
	same(t, "waiter", lock.Waiters[0].Owner+lock.Waiters[0].Token, "shipping")
	same(t, "holder's lease", lock.Holders[0].LogID, first.LogID)
	same(t, "member", fmt.Sprint(state.Members[0].Name, state.Members[0].Joined), "web/web-1true")
	text, err := json.Marshal(state)
	s.must(err)
	for _, id := range []string{lease.id, held.hold} {
		same(t, "an id in it", strings.Contains(string(text), id), false)
	}
}

func TestOfVeryManyLeasesTheStateListsSome(t *testing.T) {
	t.Parallel()
	services := manyHolders(t, 300)
	state := services.Snapshot()
	same(t, "counted", state.Counts.Leases, 300)
	same(t, "listed", len(state.Leases), mostShown)
	same(t, "locks listed", len(state.Locks), mostShown)
}

// manyHolders are services with so many leases, each of which holds a lock.
func manyHolders(tb testing.TB, leases int) *Services {
	tb.Helper()
	memory := standin.New(standin.Options{Tick: time.Second})
	tb.Cleanup(memory.Close)
	services := New(Options{}, &sceneEnsemble{Reader: memory.NewReader(), memory: memory, opened: make(chan *standin.Session, leases)})
	for i := range leases {
		made, err := services.leases.begin(context.Background(), caller.Caller{Identity: "uid:0"}, recipes.About{Owner: "billing"}, 10*time.Second)
		if err != nil {
			tb.Fatal(err)
		}
		lock := resource{kindLock, fmt.Sprint("lock-", i)}
		made.begin([]resource{lock}, nil)
		made.has([]resource{lock}, int64(i))
	}
	return services
}

// What a look costs while somebody looks, once in a second.
func BenchmarkStateOfAThousandLeases(b *testing.B) {
	services := manyHolders(b, 1000)
	for b.Loop() {
		if _, err := json.Marshal(services.Snapshot()); err != nil {
			b.Fatal(err)
		}
	}
}
