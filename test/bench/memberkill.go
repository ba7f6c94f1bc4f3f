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
type killed struct {
	callers int // in all
	atOnce  int // where many die together
}

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
	for _, row := range []struct {
		name   string
		at     *sidecar
		atOnce int
	}{
		{"a watcher at the same sidecar", theirs, 1},
		{"a watcher at another sidecar", other, 1},
		{strconv.Itoa(k.atOnce) + " at once, a watcher at another sidecar", other, k.atOnce},
	} {
		took, err := k.killAll(ctx, theirs, row.at, row.atOnce)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", row.name, err)
		}
		t.add(row.name, microseconds(percentile(took, 50)), microseconds(percentile(took, 99)))
	}
	t.notes = append(t.notes, "A client of ZooKeeper that is killed is seen when its session expires: seconds.")
	return t, nil
}

// killAll has callers join and die, so many together.
func (k killed) killAll(ctx context.Context, on, watched *sidecar, atOnce int) ([]time.Duration, error) {
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
	for range k.callers / atOnce {
		one, err := k.kill(ctx, on, view, atOnce)
		if err != nil {
			return nil, err
		}
		took = append(took, one)
	}
	return took, nil
}

// kill tells how long it took the watcher to see that so many callers' members are gone, each of which had a connection of its own.
func (k killed) kill(
	ctx context.Context, on *sidecar, view grpc.ServerStreamingClient[membershipv1.WatchResponse], members int,
) (time.Duration, error) {
	connections := make([]*grpc.ClientConn, members)
	defer func() {
		for _, connection := range connections {
			if connection != nil {
				connection.Close()
			}
		}
	}()
	err := eachOf(members, members, func(n int) (err error) {
		if connections[n], err = on.dial(); err != nil {
			return err
		}
		stream, err := membershipv1.NewMembershipServiceClient(connections[n]).Join(ctx, &membershipv1.JoinRequest{
			Group: "killed", Member: "m-" + strconv.Itoa(n),
		})
		if err == nil {
			_, err = stream.Recv()
		}
		return err
	})
	if err != nil {
		return 0, err
	}
	if err := awaitCount(view, members); err != nil {
		return 0, err
	}
	began := time.Now()
	for _, connection := range connections {
		if err := connection.Close(); err != nil {
			return 0, err
		}
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
