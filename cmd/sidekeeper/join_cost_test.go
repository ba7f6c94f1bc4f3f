package main

import (
	"context"
	"fmt"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	membershipv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/membership/v1"
	"github.com/sidekeeper/sidekeeper/test/support/link"
)

const joinsCounted = 100

// What a member may cost that leaves at once and has a session of an earlier one. Its node is made; a transaction and a look right behind it, in
// the same write, say that the node is its session's still; then the node is deleted.
var (
	joinKinds = map[link.Opcode]bound{
		link.Multi:         {most: 2.2, goal: 2}, // the first two of the transactions, and a heartbeat now and then
		link.Exists:        {most: 1.5, goal: 1}, // and a heartbeat now and then
		link.Delete:        {most: 1.05, goal: 1},
		link.CreateSession: {most: 0.05},
		link.CloseSession:  {most: 0.05},
		link.GetData:       {most: 1}, // of a member that is there for a while, as each is on a machine with much to do
	}
	joinBounds = costBounds{requests: bound{4.1, 4}, allocations: bound{280, 250}, goroutines: bound{9, 6}, writes: bound{9, 5}}
	// Over a connection of its own, which gRPC makes of some allocations, goroutines and writes more.
	connectedBounds = costBounds{requests: bound{4.1, 4}, allocations: bound{415, 380}, goroutines: bound{14, 10}, writes: bound{12, 8}}
)

func TestAMemberCostsNoMoreThanItDid(t *testing.T) {
	s := startCounted(t)
	members := membershipv1.NewMembershipServiceClient(s.connection)
	s.joinsCost(t, joinBounds, func(member int) { joinAndLeave(t, members, member) })
}

func TestAMemberOverAConnectionOfItsOwnCostsNoMoreThanItDid(t *testing.T) {
	s := startCounted(t)
	s.joinsCost(t, connectedBounds, func(member int) {
		connection, err := grpc.NewClient(s.connection.Target(), grpc.WithTransportCredentials(insecure.NewCredentials()))
		mustCount(t, err)
		defer connection.Close()
		joinAndLeave(t, membershipv1.NewMembershipServiceClient(connection), member)
	})
}

// joinsCost counts what joins cost, and what each asks of the ensemble.
func (s *countedSidecar) joinsCost(t *testing.T, bounds costBounds, join func(member int)) {
	t.Helper()
	joinAll := func() {
		for member := range joinsCounted {
			join(member)
		}
	}
	joinAll() // so that the directory and a session are there
	var each cost
	var asked map[link.Opcode]int
	for range batches {
		each, asked = s.cost(t, joinAll, joinsCounted)
		delete(asked, link.Ping)
		kept := true
		for operation, count := range asked {
			if operation != link.GetData { // which joinKinds bounds
				each.requests += float64(count) / joinsCounted
			}
			kept = kept && joinKinds[operation].holds(float64(count)/joinsCounted)
		}
		if kept && bounds.hold(each) {
			break
		}
	}
	for operation, count := range asked {
		joinKinds[operation].check(t, operation.String(), float64(count)/joinsCounted)
	}
	bounds.check(t, each)
}

// joinAndLeave returns when the stream has ended for its caller.
func joinAndLeave(t *testing.T, members membershipv1.MembershipServiceClient, member int) {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	stream, err := members.Join(ctx, &membershipv1.JoinRequest{Group: "group", Member: fmt.Sprint(member)}, grpc.WaitForReady(true))
	mustCount(t, err)
	_, err = stream.Recv()
	mustCount(t, err)
	leave()
	if _, err := stream.Recv(); err == nil {
		t.Fatal("the stream goes on")
	}
}
