package service_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	membershipv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/membership/v1"
	"github.com/sidekeeper/sidekeeper/service"
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
	same(t, "counts", state.Counts, service.Counts{Leases: 2, MaxLeases: 10000, Holds: 1, Waiters: 1, Members: 1})
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
