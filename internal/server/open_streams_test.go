package server_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	configv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/config/v1"
	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	membershipv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/membership/v1"
	"github.com/sidekeeper/sidekeeper/internal/server"
)

const everythingFor = `
rules:
- {identities: [%s], methods: ["sidekeeper.lock.v1.LockService/*", "sidekeeper.lease.v1.LeaseService/*"]}
- {identities: [%[1]s], methods: ["sidekeeper.membership.v1.MembershipService/*", "sidekeeper.config.v1.ConfigService/*"]}
`

// begun is the stream when its first message has come, as what returns the outcome of the next one.
func begun[M any](t *testing.T, stream grpc.ServerStreamingClient[M], err error) func() string {
	t.Helper()
	must(t, err)
	_, err = stream.Recv()
	must(t, err)
	return func() string {
		_, err := stream.Recv()
		return outcome(err)
	}
}

func TestANewPolicyEndsTheStreamsThatItDoesNotAllow(t *testing.T) {
	t.Parallel()
	s := newPolicySceneOf(t, fmt.Sprintf(everythingFor, `"socket:app", "socket:web"`), 3*time.Second)
	app, web := s.callers["socket:app"], s.callers["socket:web"]
	locks := lockv1.NewLockServiceClient(app)
	streams := map[string]func() string{}
	held, err := locks.Acquire(within(t), &lockv1.AcquireRequest{Name: "orders"})
	streams["a hold"] = begun(t, held, err)
	waiter, err := locks.Acquire(within(t), &lockv1.AcquireRequest{Name: "orders"})
	streams["a waiter"] = begun(t, waiter, err)
	watch, err := locks.Watch(within(t), &lockv1.WatchRequest{Name: "orders"})
	streams["a watch of a lock"] = begun(t, watch, err)
	lease, err := leasev1.NewLeaseServiceClient(app).Open(within(t), &leasev1.OpenRequest{})
	streams["a lease"] = begun(t, lease, err)
	member, err := membershipv1.NewMembershipServiceClient(app).Join(within(t), &membershipv1.JoinRequest{Group: "shop", Member: "a"})
	streams["a member"] = begun(t, member, err)
	group, err := membershipv1.NewMembershipServiceClient(app).Watch(within(t), &membershipv1.WatchRequest{Group: "shop"})
	streams["a watch of a group"] = begun(t, group, err)
	keys, err := configv1.NewConfigServiceClient(app).Watch(within(t), &configv1.WatchRequest{Prefix: "billing"})
	streams["a watch of keys"] = begun(t, keys, err)
	other, err := lockv1.NewLockServiceClient(web).Acquire(within(t), &lockv1.AcquireRequest{Name: "stock"})
	through := begun(t, other, err)

	s.write(fmt.Sprintf(everythingFor, `"socket:web"`))
	for what, ended := range streams {
		same(t, what, ended(), denied)
	}
	_, err = lockv1.NewLockServiceClient(s.callers["operator"]).Revoke(within(t), &lockv1.RevokeRequest{Name: "stock"})
	must(t, err)
	same(t, "the stream of who is allowed", through(), "OK")
	same(t, "open streams that are judged", server.OpenStreams(s.server), 1)
}

// TestAHoldThatANewPolicyEndsKeepsItsPlace has the caller know of a validity when the rule goes that allowed the hold.
func TestAHoldThatANewPolicyEndsKeepsItsPlace(t *testing.T) {
	t.Parallel()
	const rules = `rules: [{identities: ["socket:app"],
  methods: [%s"sidekeeper.lock.v1.LockService/Check", "sidekeeper.lock.v1.LockService/Release"]}]`
	const acquire = `"sidekeeper.lock.v1.LockService/Acquire", `
	s := newPolicySceneOf(t, fmt.Sprintf(rules, acquire), 3*time.Second)
	app, operator := lockv1.NewLockServiceClient(s.callers["socket:app"]), lockv1.NewLockServiceClient(s.callers["operator"])
	held, err := app.Acquire(within(t), &lockv1.AcquireRequest{Name: "orders"})
	must(t, err)
	granted, err := held.Recv()
	must(t, err)
	id := granted.GetGranted().GetHoldId()
	checked, err := app.Check(within(t), &lockv1.CheckRequest{HoldIds: []string{id}})
	must(t, err)
	if validFor := checked.GetHolds()[0].GetValidFor().AsDuration(); validFor < 30*time.Second {
		t.Fatalf("valid for %v", validFor)
	}

	s.write(fmt.Sprintf(rules, ""))
	_, err = held.Recv()
	same(t, "the hold", outcome(err), denied)
	checked, err = app.Check(within(t), &lockv1.CheckRequest{HoldIds: []string{id}})
	must(t, err)
	same(t, "the ended hold", checked.GetHolds()[0].GetReason()+" "+checked.GetHolds()[0].GetValidFor().String(), "POLICY_DENIED ")
	next := &lockv1.AcquireRequest{Name: "orders", WaitTimeout: durationpb.New(0)}
	try := func() string {
		stream, err := operator.Acquire(within(t), next)
		must(t, err)
		_, err = stream.Recv()
		return outcome(err)
	}
	same(t, "the next, before it is acknowledged", try(), "FailedPrecondition LOCK_HELD")
	_, err = app.Release(within(t), &lockv1.ReleaseRequest{HoldId: id})
	same(t, "the acknowledgment", outcome(err), denied)
	same(t, "the next, then", try(), "OK")
}

// What is begun on a lease's stream is judged by itself, then and by each new policy, and ends alone. Who may acquire may open the lease.
func TestWhatALeasesStreamCarriesIsJudgedByItself(t *testing.T) {
	t.Parallel()
	const rules = `rules: [{identities: ["socket:app"], methods: ["sidekeeper.lock.v1.LockService/Acquire"], prefixes: [%s]}]`
	s := newPolicySceneOf(t, fmt.Sprintf(rules, "billing, orders"), 3*time.Second)
	stream, err := leasev1.NewLeaseServiceClient(s.callers["socket:app"]).Multiplex(within(t))
	must(t, err)
	send := func(message *leasev1.MultiplexRequest) { t.Helper(); must(t, stream.Send(message)) }
	next := func() string {
		t.Helper()
		message, err := stream.Recv()
		must(t, err)
		ended := message.GetEnded()
		return fmt.Sprint(ended.GetRequestId(), " ", ended.GetReason())
	}
	start := func(id uint64, lock string) {
		acquire := &leasev1.Start_Acquire{Acquire: &lockv1.AcquireRequest{Name: lock}}
		send(&leasev1.MultiplexRequest{Request: &leasev1.MultiplexRequest_Start{Start: &leasev1.Start{RequestId: id, Request: acquire}}})
	}
	send(&leasev1.MultiplexRequest{Request: &leasev1.MultiplexRequest_Open{Open: &leasev1.OpenRequest{}}})
	_, err = stream.Recv()
	must(t, err)
	for id, lock := range []string{1: "billing", 2: "orders"} {
		if lock != "" {
			start(uint64(id), lock)
			same(t, lock, next(), "0 ")
		}
	}
	start(3, "stock")
	same(t, "a name that is denied", next(), "3 POLICY_DENIED")
	s.write(fmt.Sprintf(rules, "orders"))
	same(t, "a name that a new policy denies", next(), "1 POLICY_DENIED")
	send(&leasev1.MultiplexRequest{Request: &leasev1.MultiplexRequest_Stop{Stop: &leasev1.Stop{RequestId: 2}}})
	same(t, "what is allowed still", next(), "2 ")
	same(t, "the denial in the audit", strings.Contains(s.record.Text(), `"stock"`), true)
}

// A lock on a lease's stream is a write, and no session.
func TestWhatALeasesStreamCarriesIsPacedAsWhatItIs(t *testing.T) {
	t.Parallel()
	s := newPolicySceneOf(t, `rules:
- {identities: ["socket:app"], methods: ["sidekeeper.lease.v1.LeaseService/*", "sidekeeper.lock.v1.LockService/*"]}
limits: [{identities: ["socket:app"], sessions_per_second: 1, writes_per_second: 3}]`, 3*time.Second)
	stream, err := leasev1.NewLeaseServiceClient(s.callers["socket:app"]).Multiplex(within(t))
	must(t, err)
	must(t, stream.Send(&leasev1.MultiplexRequest{Request: &leasev1.MultiplexRequest_Open{Open: &leasev1.OpenRequest{}}}))
	_, err = stream.Recv()
	must(t, err)
	for id := range uint64(100) { // the work of half a minute
		acquire := &leasev1.Start_Acquire{Acquire: &lockv1.AcquireRequest{Name: fmt.Sprint(id)}}
		start := &leasev1.Start{RequestId: id + 1, Request: acquire}
		must(t, stream.Send(&leasev1.MultiplexRequest{Request: &leasev1.MultiplexRequest_Start{Start: start}}))
	}
	granted := 0
	var refused *leasev1.Ended
	for refused == nil {
		message, err := stream.Recv()
		must(t, err)
		if refused = message.GetEnded(); refused == nil && message.GetEvent().GetAcquire().GetGranted() != nil {
			granted++
		}
	}
	same(t, "the limit", refused.GetReason()+" "+refused.GetMetadata()["limit"], "QUOTA_EXCEEDED writes_per_second")
	for granted < 6 { // the work of two seconds at once
		message, err := stream.Recv()
		must(t, err)
		if message.GetEvent().GetAcquire().GetGranted() != nil {
			granted++
		}
	}
}

func TestWhoHasAnOwnNameJoinsUnderNoOther(t *testing.T) {
	t.Parallel()
	s := newPolicyScene(t, `
rules:
- identities: ["spiffe://test/ns/web/*"]
  methods: ["sidekeeper.membership.v1.MembershipService/*"]
  prefixes: [group]
  members: ["{identity}"]
`)
	client := membershipv1.NewMembershipServiceClient(s.callers["spiffe://test/ns/web/shop"])
	join := func(group, member string) string {
		stream, err := client.Join(within(t), &membershipv1.JoinRequest{Group: group, Member: member})
		must(t, err)
		_, err = stream.Recv()
		return outcome(err)
	}
	same(t, "its own name", join("group", "shop"), "OK")
	same(t, "another's name", join("group", "cart"), denied)
	same(t, "another group", join("others", "shop"), denied)
	_, err := client.Update(within(t), &membershipv1.UpdateRequest{Group: "group", Member: "cart"})
	same(t, "an update of another", outcome(err), denied)
	_, err = client.Get(within(t), &membershipv1.GetRequest{Group: "group"})
	same(t, "who else is there", outcome(err), "OK")
}
