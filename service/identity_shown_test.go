package service_test

import (
	"fmt"
	"os"
	"testing"

	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	membershipv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/membership/v1"
	"github.com/sidekeeper/sidekeeper/internal/embedded"
)

// TestWhoHoldsIsWhoWasVerified has callers who claim to be others, and one whom nothing tells from others.
func TestWhoHoldsIsWhoWasVerified(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	who := fmt.Sprintf("uid:%d", os.Getuid())
	about := map[string]string{"identity": "uid:0"}
	s.hold(s.callers, &lockv1.AcquireRequest{Name: "orders", Owner: "uid:0", Metadata: about})
	s.acquire(s.others, &lockv1.AcquireRequest{Name: "orders", Owner: who}).sees("queued 1")
	s.join(s.callers, &membershipv1.JoinRequest{Group: "shop", Member: "a"}).sees("joined")
	_, err := s.ensemble.memory.Create("/locks/orders/_c_x-lock-", []byte(`{"identity":"uid:0"}`), embedded.PersistentSequential, 0)
	s.must(err)

	response, err := s.Get(s.context(), &lockv1.GetRequest{Name: "orders"})
	s.must(err)
	var seen []string
	for _, one := range append(response.GetView().GetHolders(), response.GetView().GetWaiters()...) {
		seen = append(seen, one.GetIdentity())
	}
	same(t, "identities of contenders", fmt.Sprint(seen), "["+who+"  ]")
	group, err := s.groups.Get(s.context(), &membershipv1.GetRequest{Group: "shop"})
	s.must(err)
	same(t, "identity of the member", group.GetView().GetMembers()[0].GetIdentity(), who)
	leases, err := s.leases.List(s.context(), &leasev1.ListRequest{})
	s.must(err)
	seen = nil
	for _, lease := range leases.GetLeases() {
		seen = append(seen, lease.GetIdentity())
	}
	same(t, "identities of leases", fmt.Sprint(seen), "["+who+"  "+who+"]")
}
