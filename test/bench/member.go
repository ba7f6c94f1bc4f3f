package main

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	membershipv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/membership/v1"
)

// joins is the experiment in which callers join a group and leave it, each time with another lease or session and under
// another name.
type joins struct {
	callers int
	each    int // joins of each caller in a round
	rounds  int
}

const joinedGroup = "joined"

// joined counts joins, so that no two have the same name.
var joined atomic.Int64

func (j joins) run(ctx context.Context, on *stage) (*table, error) {
	if err := makeDirectories(ctx, on.addresses(), []string{joinedGroup}); err != nil {
		return nil, err
	}
	sidecar, err := on.startSidecar(ctx, on.addresses())
	if err != nil {
		return nil, err
	}
	defer sidecar.stop()
	contenders := joinersOn(sidecar, on.addresses())
	batches, err := interleave(ctx, j.rounds, contenders, j.batch)
	if err != nil {
		return nil, err
	}
	err = on.profile(ctx, sidecar, fmt.Sprintf("joins-%d", j.callers), func() error {
		_, err := j.batch(ctx, contenders[len(contenders)-1])
		return err
	})
	return j.table(contenders, batches), err
}

// batch is one contender's part of a round. It is over when everybody is gone from the ensemble.
func (j joins) batch(ctx context.Context, c contender) (batch, error) {
	callers, err := c.openAll(ctx, j.callers)
	if err != nil {
		return batch{}, err
	}
	defer closeAll(callers)
	if _, err := j.joinAll(ctx, callers, 1); err != nil {
		return batch{}, err
	}
	var took []time.Duration
	measured, err := c.measure(func() (err error) {
		if took, err = j.joinAll(ctx, callers, j.each); err == nil && c.sidecar != nil {
			err = awaitEmpty(ctx, c.sidecar)
		}
		return err
	})
	measured.took, measured.count = took, len(took)
	return measured, err
}

// joinAll has all callers at once join and leave so many times, and tells how long each took to join.
func (j joins) joinAll(ctx context.Context, callers []caller, each int) ([]time.Duration, error) {
	took := make([]time.Duration, len(callers)*each)
	err := eachOf(len(callers), len(callers), func(i int) error {
		for n := range each {
			began := time.Now()
			if err := callers[i].lock(ctx, "m-"+strconv.FormatInt(joined.Add(1), 10)); err != nil {
				return fmt.Errorf("join: %w", err)
			}
			took[i*each+n] = time.Since(began)
			if err := callers[i].unlock(ctx); err != nil {
				return fmt.Errorf("leave: %w", err)
			}
		}
		return nil
	})
	return took, err
}

// awaitEmpty returns when the group has no members.
func awaitEmpty(ctx context.Context, s *sidecar) error {
	connection, err := s.dial()
	if err != nil {
		return err
	}
	defer connection.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := membershipv1.NewMembershipServiceClient(connection).Watch(ctx, &membershipv1.WatchRequest{Group: joinedGroup})
	for err == nil {
		var seen *membershipv1.WatchResponse
		if seen, err = stream.Recv(); err == nil && len(seen.GetView().GetMembers()) == 0 {
			return nil
		}
	}
	return err
}

func (j joins) table(contenders []contender, batches [][]batch) *table {
	t := &table{header: []string{
		"", "join p50 µs", "p99 µs", "joins/s", "client CPU µs", "sidecar CPU µs", "rate ÷ floor", "rate ÷ go-zookeeper",
	}}
	for i, c := range contenders {
		all := total(batches[i])
		t.add(c.name,
			microseconds(percentile(all.took, 50)), microseconds(percentile(all.took, 99)),
			fmt.Sprintf("%.0f", all.rate()),
			perPair(all.client, all), only(c.sidecar != nil, perPair(all.sidecar, all)),
			ratio(batches[i], batches[floorPlace], batch.rate), ratio(batches[i], batches[directPlace], batch.rate))
	}
	t.notes = append(t.notes, "A join is a session of its own, an ephemeral node, and the end of both.")
	return t
}
