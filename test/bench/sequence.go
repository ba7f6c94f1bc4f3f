package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	sequencev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/sequence/v1"
)

// sequence is the experiment in which callers take numbers from one sequence, one at a time.
type sequence struct {
	callers int
	lasts   time.Duration // a batch
	rounds  int
}

// A taker takes one number at a time, over a connection of its own.
type taker interface {
	take(ctx context.Context) error
	close()
}

// The ways to take numbers that the others are compared with, by their places among sources.
const (
	naivePlace = iota
	echoPlace
	revisionPlace
)

// A source is one way to take numbers.
type source struct {
	contender

	open func(ctx context.Context, number int) (taker, error)
}

// sources are all ways to take numbers, and one that only asks and is answered.
func (q sequence) sources(s *sidecar, echo string, addresses []string, etcd *etcdCluster) []source {
	through := func(ordering sequencev1.Ordering) func(context.Context, int) (taker, error) {
		return func(context.Context, int) (taker, error) { return openSequence(s, ordering) }
	}
	return []source{
		naivePlace: {contender{name: "read and set"}, func(ctx context.Context, _ int) (taker, error) { return openNaive(ctx, addresses) }},
		echoPlace:  {contender{name: "gRPC echo"}, func(context.Context, int) (taker, error) { return openEcho(echo) }},
		revisionPlace: {contender{name: "etcd revision"}, func(_ context.Context, number int) (taker, error) {
			connection, err := etcd.dial(number)
			if err != nil {
				return nil, err
			}
			return revisionTaker{etcdCaller{connection: connection}}, nil
		}},
		{contender{name: "sidecar, STRICT", sidecar: s}, through(sequencev1.Ordering_ORDERING_STRICT)},
		{contender{name: "sidecar, RELAXED", sidecar: s}, through(sequencev1.Ordering_ORDERING_RELAXED)},
	}
}

func (q sequence) run(ctx context.Context, on *stage) (*table, error) {
	timed, err := q.through(ctx, on, on.addresses(), q.rounds, nil)
	if err != nil {
		return nil, err
	}
	counted, err := q.through(ctx, on, on.ensemble.ClientAddresses(), 1, on.resetRequests)
	if err != nil {
		return nil, err
	}
	return q.table(timed, counted), nil
}

// through does so many rounds with everybody at these addresses, and counts requests if it is told how.
func (q sequence) through(
	ctx context.Context, on *stage, addresses []string, rounds int, count func() map[string]int,
) ([][]batch, error) {
	sidecar, err := on.startSidecar(ctx, addresses)
	if err != nil {
		return nil, err
	}
	defer sidecar.stop()
	echo, err := startEcho(ctx, on.directory)
	if err != nil {
		return nil, err
	}
	defer echo.stop()
	if err := prepareNumbers(ctx, sidecar, addresses); err != nil {
		return nil, err
	}
	var etcd *etcdCluster
	if count == nil {
		if etcd, err = on.startEtcd(ctx); err != nil {
			return nil, err
		}
		defer etcd.stop()
	}
	sources := q.sources(sidecar, echo.socket, addresses, etcd)
	contenders := make([]contender, 0, len(sources))
	for _, s := range sources {
		contenders = append(contenders, s.contender)
	}
	return interleave(ctx, rounds, contenders, func(ctx context.Context, c contender) (batch, error) {
		place := slices.IndexFunc(sources, func(s source) bool { return s.name == c.name })
		if place == revisionPlace && count != nil {
			return batch{}, nil // no request of its goes to ZooKeeper
		}
		return q.batch(ctx, sources[place], count)
	})
}

// batch is one source's part of a round.
func (q sequence) batch(ctx context.Context, from source, count func() map[string]int) (batch, error) {
	takers := make([]taker, q.callers)
	err := eachOf(q.callers, openings, func(i int) (err error) {
		takers[i], err = from.open(ctx, i)
		return err
	})
	defer func() {
		_ = eachOf(len(takers), len(takers), func(i int) error {
			if takers[i] != nil {
				takers[i].close()
			}
			return nil
		})
	}()
	if err == nil {
		_, err = q.takeAll(ctx, takers, q.lasts/4) // so that connections, buffers and stocks are there
	}
	if err != nil {
		return batch{}, err
	}
	if count != nil {
		count()
	}
	var took []time.Duration
	measured, err := from.measure(func() (err error) {
		took, err = q.takeAll(ctx, takers, q.lasts)
		return err
	})
	measured.took, measured.count = took, len(took)
	if count != nil {
		measured.requests = count()
	}
	return measured, err
}

// takeAll has all at once take numbers for a time, and tells how long each took.
func (q sequence) takeAll(ctx context.Context, takers []taker, lasts time.Duration) ([]time.Duration, error) {
	took := make([][]time.Duration, len(takers))
	over := time.Now().Add(lasts)
	err := eachOf(len(takers), len(takers), func(i int) error {
		for began := time.Now(); began.Before(over); {
			if err := takers[i].take(ctx); err != nil {
				return fmt.Errorf("take a number: %w", err)
			}
			now := time.Now()
			took[i] = append(took[i], now.Sub(began))
			began = now
		}
		return nil
	})
	return slices.Concat(took...), err
}

func (q sequence) table(timed, counted [][]batch) *table {
	t := &table{header: []string{
		"", "p50 µs", "p99 µs", "ids/s", "client CPU µs", "sidecar CPU µs", "requests per id", "rate ÷ read and set", "rate ÷ echo", "rate ÷ etcd",
	}}
	for i, s := range q.sources(nil, "", nil, nil) {
		all := total(timed[i])
		requests := 0
		for _, count := range counted[i][0].requests {
			requests += count
		}
		t.add(s.name,
			microseconds(percentile(all.took, 50)), microseconds(percentile(all.took, 99)), fmt.Sprintf("%.0f", all.rate()),
			perPair(all.client, all), only(all.sidecar > 0, perPair(all.sidecar, all)),
			only(i != echoPlace && i != revisionPlace, fmt.Sprintf("%.4f", float64(requests)/float64(counted[i][0].count))),
			ratio(timed[i], timed[naivePlace], batch.rate), ratio(timed[i], timed[echoPlace], batch.rate),
			ratio(timed[i], timed[revisionPlace], batch.rate))
	}
	return t
}
