package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/sidekeeper/sidekeeper/test/support/link"
)

// handover is the experiment in which callers queue for one lock: whoever is granted it releases it at once and queues
// again, so that there are always as many waiters.
type handover struct {
	waiters int
	cycles  int // that are measured in a round
	rounds  int
}

const contended = "contended"

func (h handover) run(ctx context.Context, on *stage) (*table, error) {
	if err := makeDirectories(ctx, on.addresses(), []string{contended}); err != nil {
		return nil, err
	}
	timed, err := h.timed(ctx, on)
	if err != nil {
		return nil, err
	}
	counted, err := h.counted(ctx, on)
	if err != nil {
		return nil, err
	}
	return h.table(timed, counted), nil
}

// timed lets everybody talk to the servers directly.
func (h handover) timed(ctx context.Context, on *stage) ([][]batch, error) {
	field, err := on.startField(ctx)
	if err != nil {
		return nil, err
	}
	defer field.stop()
	return interleave(ctx, h.rounds, field.contenders(), h.batch)
}

// counted has everybody go through links that count requests. One round is enough.
func (h handover) counted(ctx context.Context, on *stage) ([][]batch, error) {
	addresses := on.ensemble.ClientAddresses()
	sidecar, err := on.startSidecar(ctx, addresses)
	if err != nil {
		return nil, err
	}
	defer sidecar.stop()
	contenders := field{addresses: addresses, sidecar: sidecar}.contenders()
	return interleave(ctx, 1, contenders, func(ctx context.Context, c contender) (batch, error) {
		if c.name == contenders[etcdPlace].name {
			return batch{}, nil // no request of its goes to ZooKeeper
		}
		callers, err := c.openAll(ctx, h.waiters+1)
		if err != nil {
			return batch{}, err
		}
		defer closeAll(callers)
		on.resetRequests()
		_, err = h.cycle(ctx, callers)
		return batch{count: h.all(), requests: on.resetRequests()}, err
	})
}

// resetRequests begins to count requests anew and returns how many there were, by their kind.
func (s *stage) resetRequests() map[string]int {
	counts := map[string]int{}
	for _, server := range s.ensemble.Servers() {
		for operation, count := range server.ClientLink().ResetRequests() {
			if operation != link.Ping {
				counts[operation.String()] += count
			}
		}
	}
	return counts
}

// all is the cycles of a batch: until the queue is full, those that are measured, and until it is empty.
func (h handover) all() int { return 2*(h.waiters+1) + h.cycles }

func (h handover) batch(ctx context.Context, c contender) (batch, error) {
	callers, err := c.openAll(ctx, h.waiters+1)
	if err != nil {
		return batch{}, err
	}
	defer closeAll(callers)
	var took []time.Duration
	measured, err := c.measure(func() (err error) {
		took, err = h.cycle(ctx, callers)
		return err
	})
	measured.took, measured.count = took, h.all()
	return measured, err
}

// cycle hands the lock round, and tells how long it took from the release by one to the grant of the next.
func (h handover) cycle(ctx context.Context, callers []caller) ([]time.Duration, error) {
	var begun, granted, released atomic.Int64
	all, epoch := int64(h.all()), time.Now()
	took := make([]time.Duration, h.cycles)
	err := eachOf(len(callers), len(callers), func(i int) error {
		for begun.Add(1) <= all {
			if err := callers[i].lock(ctx, contended); err != nil {
				return fmt.Errorf("acquire: %w", err)
			}
			since := time.Since(epoch) - time.Duration(released.Load())
			if turn := int(granted.Add(1)) - 1 - len(callers); turn >= 0 && turn < len(took) {
				took[turn] = since
			}
			released.Store(int64(time.Since(epoch)))
			if err := callers[i].unlock(ctx); err != nil {
				return fmt.Errorf("release: %w", err)
			}
		}
		return nil
	})
	return took, err
}

func (h handover) table(timed, counted [][]batch) *table {
	t := &table{header: []string{
		"", "p50 µs", "p99 µs", "cycles/s", "requests per cycle", "p50 ÷ floor", "p50 ÷ zk.Lock", "p50 ÷ v3lock",
	}}
	for i, c := range (field{}).contenders() {
		all := total(timed[i])
		requests := 0
		for _, count := range counted[i][0].requests {
			requests += count
		}
		t.add(c.name,
			microseconds(percentile(all.took, 50)), microseconds(percentile(all.took, 99)), fmt.Sprintf("%.0f", all.rate()),
			only(i != etcdPlace, fmt.Sprintf("%.2f", float64(requests)/float64(counted[i][0].count))),
			ratio(timed[i], timed[floorPlace], batch.median), ratio(timed[i], timed[directPlace], batch.median),
			ratio(timed[i], timed[etcdPlace], batch.median))
		if i != etcdPlace {
			t.notes = append(t.notes, c.name+": "+perCycle(counted[i][0]))
		}
	}
	return t
}

// perCycle tells the requests of a cycle by their kind.
func perCycle(counted batch) string {
	var kinds []string
	for _, kind := range slices.Sorted(maps.Keys(counted.requests)) {
		kinds = append(kinds, fmt.Sprintf("%s %.2f", kind, float64(counted.requests[kind])/float64(counted.count)))
	}
	return strings.Join(kinds, ", ")
}
