package main

import (
	"context"
	"fmt"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
)

// permits is the experiment in which callers queue for the one permit of a semaphore, others to lead in an election, and others for a lock.
type permits struct{ handover }

func (p permits) run(ctx context.Context, on *stage) (*table, error) {
	s, err := on.startSidecar(ctx, on.addresses())
	if err != nil {
		return nil, err
	}
	defer s.stop()
	contenders := []contender{
		{name: "lock", sidecar: s, open: func(ctx context.Context, _ int) (caller, error) { return openClient(ctx, s) }},
		{name: electionName, sidecar: s, open: func(ctx context.Context, number int) (caller, error) { return openCandidate(ctx, s, number) }},
		{name: permitName, sidecar: s, open: func(ctx context.Context, _ int) (caller, error) { return openPermits(ctx, s) }},
	}
	timed, err := interleave(ctx, p.rounds, contenders, p.batch)
	if err != nil {
		return nil, err
	}
	t := &table{header: []string{"through the Go client", "p50 µs", "p99 µs", "cycles/s", "p50 ÷ lock"}}
	for i, c := range contenders {
		all := total(timed[i])
		t.add(c.name, microseconds(percentile(all.took, 50)), microseconds(percentile(all.took, 99)), fmt.Sprintf("%.0f", all.rate()),
			ratio(timed[i], timed[0], batch.median))
	}
	return t, nil
}

// A permitsCaller takes the one permit of a semaphore through the Go client.
type permitsCaller struct {
	*clientCaller

	held *sidekeeper.Permits
}

func openPermits(ctx context.Context, s *sidecar) (caller, error) {
	opened, err := openClient(ctx, s)
	if err != nil {
		return nil, err
	}
	c := &permitsCaller{clientCaller: opened.(*clientCaller)}
	if err := c.client.CreateSemaphore(ctx, contended, 1); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

func (c *permitsCaller) lock(ctx context.Context, name string) (err error) {
	c.held, err = c.client.AcquirePermits(ctx, name, sidekeeper.PermitsOptions{Lease: c.lease})
	return err
}

func (c *permitsCaller) unlock(ctx context.Context) error { return c.held.Release(ctx) }

// A candidateCaller leads in an election through the Go client.
type candidateCaller struct {
	*clientCaller

	name string
	led  *sidekeeper.Leadership
}

func openCandidate(ctx context.Context, s *sidecar, number int) (caller, error) {
	opened, err := openClient(ctx, s)
	if err != nil {
		return nil, err
	}
	return &candidateCaller{clientCaller: opened.(*clientCaller), name: fmt.Sprint("candidate-", number)}, nil
}

func (c *candidateCaller) lock(ctx context.Context, name string) (err error) {
	c.led, err = c.client.Campaign(ctx, name+"-election", sidekeeper.CampaignOptions{Candidate: c.name, Lease: c.lease})
	return err
}

func (c *candidateCaller) unlock(ctx context.Context) error { return c.led.Resign(ctx) }
