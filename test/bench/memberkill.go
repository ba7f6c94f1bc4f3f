package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"google.golang.org/grpc"

	membershipv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/membership/v1"
)

// killed is the experiment in which callers that are members are gone from one moment to the next: how long until others
// see it. What a watcher sees of a process that is killed is that its kernel closes its connection, and so it is done here.
type killed struct{ callers int }

func (k killed) run(ctx context.Context, on *stage) (*table, error) {
	theirs, err := on.startSidecar(ctx, on.addresses())
	if err != nil {
		return nil, err
	}
	defer theirs.stop()
	other, err := on.startSidecar(ctx, on.addresses())
	if err != nil {
		return nil, err
	}
	defer other.stop()
	t := &table{header: []string{"", "p50 µs", "p99 µs"}}
	for _, watcher := range []struct {
		name string
		at   *sidecar
	}{{"a watcher at the same sidecar", theirs}, {"a watcher at another sidecar", other}} {
		took, err := k.killAll(ctx, theirs, watcher.at)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", watcher.name, err)
		}
		t.add(watcher.name, microseconds(percentile(took, 50)), microseconds(percentile(took, 99)))
	}
	t.notes = append(t.notes, "A client of ZooKeeper that is killed is seen when its session expires: seconds.")
	return t, nil
}

// killAll has one caller after the other join and die.
func (k killed) killAll(ctx context.Context, on, watched *sidecar) ([]time.Duration, error) {
	watcher, err := watched.dial()
	if err != nil {
		return nil, err
	}
	defer watcher.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	view, err := membershipv1.NewMembershipServiceClient(watcher).Watch(ctx, &membershipv1.WatchRequest{Group: "killed"})
	if err != nil {
		return nil, err
	}
	var took []time.Duration
	for n := range k.callers {
		one, err := k.kill(ctx, on, view, "m-"+strconv.Itoa(n))
		if err != nil {
			return nil, err
		}
		took = append(took, one)
	}
	return took, nil
}

// kill tells how long it took the watcher to see that a caller's member is gone.
func (k killed) kill(
	ctx context.Context, on *sidecar, view grpc.ServerStreamingClient[membershipv1.WatchResponse], name string,
) (time.Duration, error) {
	connection, err := on.dial()
	if err != nil {
		return 0, err
	}
	defer connection.Close()
	stream, err := membershipv1.NewMembershipServiceClient(connection).Join(ctx, &membershipv1.JoinRequest{
		Group: "killed", Member: name,
	})
	if err != nil {
		return 0, err
	}
	if _, err := stream.Recv(); err != nil {
		return 0, err
	}
	if err := awaitCount(view, 1); err != nil {
		return 0, err
	}
	began := time.Now()
	if err := connection.Close(); err != nil {
		return 0, err
	}
	err = awaitCount(view, 0)
	return time.Since(began), err
}

func awaitCount(view grpc.ServerStreamingClient[membershipv1.WatchResponse], members int) error {
	for {
		seen, err := view.Recv()
		if err != nil || len(seen.GetView().GetMembers()) == members {
			return err
		}
	}
}
