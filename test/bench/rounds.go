package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"time"
)

// A batch is what one contender did in one round.
type batch struct {
	took     []time.Duration // each of what was measured, such as a lock pair
	count    int             // of lock pairs in elapsed
	elapsed  time.Duration
	client   time.Duration // of processor time in this process, which all callers live in
	sidecar  time.Duration // of processor time in the sidecar's
	servers  time.Duration // of processor time in those that store its locks
	requests map[string]int
}

// rate is lock pairs in a second.
func (b batch) rate() float64 { return float64(b.count) / b.elapsed.Seconds() }

// interleave has each contender do its batch in each round, beginning with another one each time.
func interleave(ctx context.Context, rounds int, contenders []contender,
	do func(context.Context, contender) (batch, error),
) ([][]batch, error) {
	batches := make([][]batch, len(contenders))
	for round := range rounds {
		for turn := range contenders {
			which := (round + turn) % len(contenders)
			done, err := do(ctx, contenders[which])
			if err != nil {
				return nil, fmt.Errorf("%s: %w", contenders[which].name, err)
			}
			batches[which] = append(batches[which], done)
		}
	}
	return batches, nil
}

// measure does work and tells how long it took, and what time of processors it cost.
func (c contender) measure(work func() error) (batch, error) {
	runtime.GC() // of what others have left behind
	before, err := c.processors()
	if err != nil {
		return batch{}, err
	}
	began := time.Now()
	if err := work(); err != nil {
		return batch{}, err
	}
	elapsed := time.Since(began)
	after, err := c.processors()
	return batch{
		elapsed: elapsed,
		client:  after.client - before.client, sidecar: after.sidecar - before.sidecar, servers: after.servers - before.servers,
	}, err
}

// processors is the processor time of everybody until now.
func (c contender) processors() (spent batch, err error) {
	spent.client, err = processorTime(os.Getpid())
	if err == nil && c.sidecar != nil {
		spent.sidecar, err = c.sidecar.processor()
	}
	for _, server := range c.servers {
		var more time.Duration
		if err == nil {
			more, err = processorTime(server)
		}
		spent.servers += more
	}
	return spent, err
}

// cost is the processor time of each lock pair, in all processes, in seconds.
func (b batch) cost() float64 { return (b.client + b.sidecar + b.servers).Seconds() / float64(b.count) }
