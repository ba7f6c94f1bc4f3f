package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/sidekeeper/sidekeeper/test/support/ensemble"
)

// regions is the experiment in which each of three servers stands in a region of its own, with a sidecar beside it that uses no other server.
type regions struct {
	trips  []time.Duration // that a message and its answer take between two regions
	cycles int
}

// run builds an ensemble of its own, whose servers talk through links.
func (r regions) run(ctx context.Context, on *stage) (*table, error) {
	directory, err := os.MkdirTemp("", "bench")
	if err != nil {
		return nil, err
	}
	apart := &stage{settings: on.settings, directory: directory}
	defer os.RemoveAll(directory)
	apart.ensemble, err = ensemble.Start(ctx, ensemble.Options{
		Servers: 3, MaxClientConnections: -1, Config: []string{"forceSync=yes", "preAllocSize=65536"},
	})
	if err != nil {
		return nil, err
	}
	defer apart.ensemble.Close()
	if err := apart.warmUp(ctx); err != nil {
		return nil, err
	}
	places, stop, err := apart.startRegions(ctx)
	defer stop()
	if err != nil {
		return nil, err
	}
	t := &table{header: []string{"p50 ms"}}
	for _, row := range places.rows() {
		t.rows = append(t.rows, []string{row.name})
	}
	for _, trip := range r.trips {
		apart.spread(trip)
		t.header = append(t.header, trip.String())
		for i, row := range places.rows() {
			took, err := r.measure(ctx, row)
			if err != nil {
				return nil, fmt.Errorf("%s, %v: %w", row.name, trip, err)
			}
			t.rows[i] = append(t.rows[i], fmt.Sprintf("%.1f", took.Seconds()*1000))
		}
	}
	return t, nil
}

// spread has messages between servers take half of a round trip.
func (s *stage) spread(trip time.Duration) {
	for _, from := range s.ensemble.Servers() {
		for _, to := range s.ensemble.Servers() {
			if from == to {
				continue
			}
			quorum, election := s.ensemble.PeerLinks(from.ID(), to.ID())
			quorum.Delay(trip/2, 0)
			election.Delay(trip/2, 0)
		}
	}
}

// regionSidecars are that beside the leader, and those beside the others.
type regionSidecars struct{ leader, one, other *sidecar }

func (s *stage) startRegions(ctx context.Context) (places regionSidecars, stop func(), err error) {
	var started []*sidecar
	stop = func() {
		for _, each := range started {
			each.stop()
		}
	}
	leader, err := s.ensemble.AwaitQuorum(ctx)
	if err != nil {
		return places, stop, err
	}
	others := slices.DeleteFunc(s.ensemble.Servers(), func(one *ensemble.Server) bool { return one == leader })
	servers := append([]*ensemble.Server{leader}, others...)
	for i, place := range []**sidecar{&places.leader, &places.one, &places.other} {
		*place, err = s.startSidecar(ctx, []string{servers[i].RealAddress()}, "--follow-ensemble=false")
		if err != nil {
			return places, stop, err
		}
		started = append(started, *place)
	}
	return places, stop, nil
}

// A regionRow is callers that take one lock in turn: one alone takes it again and again.
type regionRow struct {
	name    string
	callers []*sidecar
}

func (p regionSidecars) rows() []regionRow {
	return []regionRow{
		{"acquire and release, in the leader's region", []*sidecar{p.leader}},
		{"acquire and release, in another region", []*sidecar{p.one}},
		{"hand-over within the leader's region", []*sidecar{p.leader, p.leader}},
		{"hand-over within another region", []*sidecar{p.one, p.one}},
		{"hand-over between the leader's region and another", []*sidecar{p.leader, p.one}},
		{"hand-over between two others", []*sidecar{p.one, p.other}},
	}
}

// measure is the median of what a row is about.
func (r regions) measure(ctx context.Context, row regionRow) (time.Duration, error) {
	var callers []caller
	defer func() { closeAll(callers) }()
	for _, beside := range row.callers {
		opened, err := openStream(ctx, beside)
		if err != nil {
			return 0, err
		}
		callers = append(callers, opened)
	}
	if len(callers) == 1 {
		return r.pair(ctx, callers[0])
	}
	took, err := handover{waiters: len(callers) - 1, cycles: r.cycles}.cycle(ctx, callers)
	return percentile(took, 50), err
}

func (r regions) pair(ctx context.Context, c caller) (time.Duration, error) {
	var took []time.Duration
	for range r.cycles {
		began := time.Now()
		if err := c.lock(ctx, contended); err != nil {
			return 0, err
		}
		if err := c.unlock(ctx); err != nil {
			return 0, err
		}
		took = append(took, time.Since(began))
	}
	return percentile(took, 50), nil
}
