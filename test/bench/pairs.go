package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// pairs is the experiment in which callers acquire and release, each a lock of its own.
type pairs struct {
	callers int
	each    int // pairs of each caller in a round
	rounds  int
}

func (p pairs) run(ctx context.Context, on *stage) (*table, error) {
	if err := makeDirectories(ctx, on.addresses(), p.locks()); err != nil {
		return nil, err
	}
	field, err := on.startField(ctx)
	if err != nil {
		return nil, err
	}
	defer field.stop()
	contenders := append(field.contenders(), field.older()...)
	batches, err := interleave(ctx, p.rounds, contenders, p.batch)
	if err != nil {
		return nil, err
	}
	for place, name := range map[int]string{streamPlace: "stream", leasePlace: "lease"} {
		if err := p.profile(ctx, on, contenders[place], name); err != nil {
			return nil, err
		}
	}
	return p.table(contenders, batches), nil
}

func (p pairs) locks() []string {
	var names []string
	for i := range p.callers {
		names = append(names, lockOf(i))
	}
	return names
}

func lockOf(caller int) string { return "lock-of-" + strconv.Itoa(caller) }

// batch is one contender's part of a round.
func (p pairs) batch(ctx context.Context, c contender) (batch, error) {
	callers, err := c.openAll(ctx, p.callers)
	if err != nil {
		return batch{}, err
	}
	defer closeAll(callers)
	if _, err := p.lockAll(ctx, callers, max(1, p.each/10)); err != nil { // so that directories and buffers are there
		return batch{}, err
	}
	var took []time.Duration
	measured, err := c.measure(func() (err error) {
		took, err = p.lockAll(ctx, callers, p.each)
		return err
	})
	measured.took, measured.count = took, len(took)
	return measured, err
}

// lockAll has all callers at once acquire and release so many times, and tells how long each pair took.
func (p pairs) lockAll(ctx context.Context, callers []caller, each int) ([]time.Duration, error) {
	took := make([]time.Duration, len(callers)*each)
	err := eachOf(len(callers), len(callers), func(i int) error {
		for n := range each {
			began := time.Now()
			if err := callers[i].lock(ctx, lockOf(i)); err != nil {
				return fmt.Errorf("acquire: %w", err)
			}
			if err := callers[i].unlock(ctx); err != nil {
				return fmt.Errorf("release: %w", err)
			}
			took[i*each+n] = time.Since(began)
		}
		return nil
	})
	return took, err
}

// profile has one contender go on while its sidecar is profiled.
func (p pairs) profile(ctx context.Context, on *stage, c contender, name string) error {
	if on.settings.profiles == "" {
		return nil
	}
	callers, err := c.openAll(ctx, p.callers)
	if err != nil {
		return err
	}
	defer closeAll(callers)
	return on.profile(ctx, c.sidecar, fmt.Sprintf("pairs-%d-%s", p.callers, name), func() error {
		_, err := p.lockAll(ctx, callers, p.each)
		return err
	})
}

func (p pairs) table(contenders []contender, batches [][]batch) *table {
	t := &table{header: []string{
		"", "p50 µs", "p99 µs", "pairs/s", "client CPU µs", "sidecar CPU µs", "CPU µs in all",
		"p50 ÷ floor", "p50 ÷ v3lock", "rate ÷ floor", "rate ÷ zk.Lock", "rate ÷ v3lock", "rate ÷ lease", "CPU ÷ v3lock", "sidecar CPU ÷ before",
	}}
	for i, c := range contenders {
		all := total(batches[i])
		t.add(c.name,
			microseconds(percentile(all.took, 50)), microseconds(percentile(all.took, 99)),
			fmt.Sprintf("%.0f", all.rate()),
			perPair(all.client, all), only(c.sidecar != nil, perPair(all.sidecar, all)), fmt.Sprintf("%.0f", 1e6*all.cost()),
			ratio(batches[i], batches[floorPlace], batch.median), ratio(batches[i], batches[etcdPlace], batch.median),
			ratio(batches[i], batches[floorPlace], batch.rate), ratio(batches[i], batches[directPlace], batch.rate),
			ratio(batches[i], batches[etcdPlace], batch.rate), ratio(batches[i], batches[leasePlace], batch.rate),
			ratio(batches[i], batches[etcdPlace], batch.cost), toBefore(contenders, batches, i))
	}
	return t
}

func perPair(d time.Duration, of batch) string {
	return microseconds(d / time.Duration(of.count))
}

// toBefore is what the sidecar of a contender costs, to what that of an older build does.
func toBefore(contenders []contender, batches [][]batch, of int) string {
	older := slices.IndexFunc(contenders, func(c contender) bool { return c.name == beforeWords+contenders[of].name })
	if older < 0 {
		return "–"
	}
	return ratio(batches[of], batches[older], func(b batch) float64 { return b.sidecar.Seconds() / float64(b.count) })
}
