package nemesis

import (
	"context"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	"github.com/sidekeeper/sidekeeper/test/chaos/history"
	"github.com/sidekeeper/sidekeeper/test/chaos/stage"
)

// witnesses is how many callers there are that count no time by themselves, as those with a library do: only their sidecar tells them an end.
const witnesses = 8

// witness has each of them hold a lock, on the stream of a lease of its own that a later process may come back to. It returns when they hold
// it. All of them are to lose it; testified returns when they have been told so.
func (s *scene) witness(ctx context.Context, host *stage.Host) (testified func(), err error) {
	connection, err := grpc.NewClient(host.Address(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute+s.expiry()+s.Patience)
	var holding, told sync.WaitGroup
	for i := range witnesses {
		op := int64(1 + s.strikes*witnesses + i)
		holding.Add(1)
		told.Go(func() {
			s.testify(ctx, leasev1.NewLeaseServiceClient(connection), host, op, sync.OnceFunc(holding.Done))
		})
	}
	holding.Wait()
	return func() {
		told.Wait()
		cancel()
		connection.Close()
	}, nil
}

// testify takes a lock and notes what its sidecar tells. Granted is called once it is granted, or never will be.
func (s *scene) testify(ctx context.Context, leases leasev1.LeaseServiceClient, host *stage.Host, op int64, granted func()) {
	defer granted()
	name := fmt.Sprint(s.Prefix, "/witnessed/", op)
	s.Stage.Note(history.Event{Kind: history.Called, Op: op, Lock: name, Mode: history.Exclusive, Sidecar: host.Number, Resumes: true})
	stream, err := leases.Multiplex(ctx)
	if err != nil {
		s.noteEnd(op, err)
		return
	}
	start := &leasev1.Start{RequestId: 1, Request: &leasev1.Start_Acquire{
		Acquire: &lockv1.AcquireRequest{Name: name, Owner: history.Owner(0, op)},
	}}
	for _, request := range []*leasev1.MultiplexRequest{
		{Request: &leasev1.MultiplexRequest_Open{Open: &leasev1.OpenRequest{}}},
		{Request: &leasev1.MultiplexRequest_Start{Start: start}},
	} {
		_ = stream.Send(request) // Recv says why it fails
	}
	for {
		response, err := stream.Recv()
		if err != nil {
			s.noteEnd(op, err)
			return
		}
		if told := response.GetEvent().GetAcquire().GetGranted(); told != nil {
			s.Stage.Note(history.Event{Kind: history.Granted, Op: op, Token: told.GetFencingToken()})
			granted()
		}
	}
}
