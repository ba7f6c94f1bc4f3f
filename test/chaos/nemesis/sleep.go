package nemesis

import (
	"context"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	"github.com/sidekeeper/sidekeeper/test/chaos/caller"
	"github.com/sidekeeper/sidekeeper/test/chaos/history"
	"github.com/sidekeeper/sidekeeper/test/chaos/stage"
)

// heartbeat is how often sidecars send one by default. What a heartbeat finds out is no look at the clock, and with the fast ones of
// other rounds that would never show.
const heartbeat = 2 * time.Second

func withSleep(options *stage.Options) {
	options.Sidecar = options.Sleeper
	options.Flags = append(options.Flags, "--heartbeat="+heartbeat.String())
}

// sleepers is how many streams stand on leases of their own, each with heartbeats at times of its own, when a machine sleeps.
const sleepers = 8

// sleep has the machine of a sidecar sleep for longer than its leases last, under streams that nobody asks Check for.
func sleep(ctx context.Context, s *scene) error {
	host := s.host()
	connection, err := grpc.NewClient(host.Address(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	holding, cancel := context.WithTimeout(ctx, 2*s.Timeout)
	defer cancel()
	var following sync.WaitGroup
	defer following.Wait()
	for i := range sleepers {
		op := int64(1 + s.strikes*sleepers + i)
		stream, err := s.hold(holding, lockv1.NewLockServiceClient(connection), host, op)
		if err != nil {
			cancel()
			return err
		}
		following.Go(func() { s.follow(op, stream) })
	}
	s.pause(ctx, s.between(0, heartbeat))
	defer s.fault(host.Target())()
	began := history.Now()
	err = host.Sleep(s.between(2*s.Timeout, 4*s.Timeout))
	s.Stage.Note(history.Event{Kind: history.Slept, Target: host.Target(), From: began})
	if err != nil {
		return err
	}
	following.Wait()
	return nil
}

// hold takes a lock that nobody else wants.
func (s *scene) hold(ctx context.Context, locks lockv1.LockServiceClient, host *stage.Host, op int64) (acquireStream, error) {
	name := fmt.Sprint(s.Prefix, "/asleep/", op)
	s.Stage.Note(history.Event{Kind: history.Called, Op: op, Lock: name, Mode: history.Exclusive, Sidecar: host.Number})
	stream, err := locks.Acquire(ctx, &lockv1.AcquireRequest{Name: name, Owner: history.Owner(0, op)})
	if err != nil {
		return nil, err
	}
	for {
		event, err := stream.Recv()
		if err != nil {
			s.noteEnd(op, err)
			return nil, err
		}
		if granted := event.GetGranted(); granted != nil {
			s.Stage.Note(history.Event{Kind: history.Granted, Op: op, Token: granted.GetFencingToken()})
			return stream, nil
		}
	}
}

type acquireStream = grpc.ServerStreamingClient[lockv1.AcquireResponse]

// follow notes the end of a hold.
func (s *scene) follow(op int64, stream acquireStream) {
	for {
		if _, err := stream.Recv(); err != nil {
			s.noteEnd(op, err)
			return
		}
	}
}

func (s *scene) noteEnd(op int64, err error) {
	code, reason := caller.Bare(err)
	s.Stage.Note(history.Event{Kind: history.Ended, Op: op, Code: code, Reason: reason})
}
