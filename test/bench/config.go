package main

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

// watch is the experiment in which many watch one key that is updated: it measures how long it takes until the last of
// them has the new value.
type watch struct {
	watchers int
	updates  int // of each contender in a round
	rounds   int
}

// A ring is some watchers of one key, and somebody who updates it.
type ring struct {
	contender

	open func(ctx context.Context, watchers int, heard *hearing) (setter, error)
}

// A setter updates the key that is watched.
type setter interface {
	set(ctx context.Context, value string) error
	close() // also ends the watching
}

// The ring that the others are compared with, by its place among rings.
const sessionsPlace = 0

// rings are all ways to watch.
func (w watch) rings(s *sidecar, addresses []string) []ring {
	return []ring{
		sessionsPlace: {contender{name: "a session each"}, func(ctx context.Context, watchers int, heard *hearing) (setter, error) {
			return openSessions(ctx, addresses, watchers, heard)
		}},
		{contender{name: "sidecar, a connection each", sidecar: s}, func(ctx context.Context, watchers int, heard *hearing) (setter, error) {
			return openWatches(ctx, s, watchers, watchers, heard)
		}},
		{contender{name: "sidecar, one connection", sidecar: s}, func(ctx context.Context, watchers int, heard *hearing) (setter, error) {
			return openWatches(ctx, s, watchers, 1, heard)
		}},
	}
}

func (w watch) run(ctx context.Context, on *stage) (*table, error) {
	timed, err := w.through(ctx, on, on.addresses(), w.rounds, nil)
	if err != nil {
		return nil, err
	}
	counted, err := w.through(ctx, on, on.ensemble.ClientAddresses(), 1, on.resetRequests)
	if err != nil {
		return nil, err
	}
	return w.table(timed, counted), nil
}

// through does so many rounds with everybody at these addresses, and counts requests if it is told how.
func (w watch) through(
	ctx context.Context, on *stage, addresses []string, rounds int, count func() map[string]int,
) ([][]batch, error) {
	sidecar, err := on.startSidecar(ctx, addresses)
	if err != nil {
		return nil, err
	}
	defer sidecar.stop()
	rings := w.rings(sidecar, addresses)
	var contenders []contender
	byName := map[string]ring{}
	for _, r := range rings {
		contenders = append(contenders, r.contender)
		byName[r.name] = r
	}
	return interleave(ctx, rounds, contenders, func(ctx context.Context, c contender) (batch, error) {
		return w.batch(ctx, byName[c.name], count)
	})
}

// batch is one ring's part of a round. Each update is heard by all before the next is made.
func (w watch) batch(ctx context.Context, around ring, count func() map[string]int) (batch, error) {
	heard := newHearing(w.watchers)
	setter, err := around.open(ctx, w.watchers, heard)
	if err != nil {
		return batch{}, err
	}
	defer setter.close()
	if _, err := heard.update(ctx, setter, max(1, w.updates/10)); err != nil { // so that buffers are there
		return batch{}, err
	}
	if count != nil {
		count()
	}
	var took []time.Duration
	measured, err := around.measure(func() (err error) {
		took, err = heard.update(ctx, setter, w.updates)
		return err
	})
	measured.took, measured.count = took, len(took)
	if count != nil {
		measured.requests = count()
	}
	return measured, err
}

func (w watch) table(timed, counted [][]batch) *table {
	t := &table{header: []string{
		"", "p50 µs", "p99 µs", "client CPU µs", "sidecar CPU µs", "requests per update", "p50 ÷ a session each",
	}}
	for i, r := range w.rings(nil, nil) {
		all := total(timed[i])
		requests := 0
		for _, number := range counted[i][0].requests {
			requests += number
		}
		t.add(r.name,
			microseconds(percentile(all.took, 50)), microseconds(percentile(all.took, 99)),
			perPair(all.client, all), only(all.sidecar > 0, perPair(all.sidecar, all)),
			strconv.FormatFloat(float64(requests)/float64(counted[i][0].count), 'f', 2, 64),
			ratio(timed[i], timed[sessionsPlace], batch.median))
		t.notes = append(t.notes, fmt.Sprintf("%s: %s", r.name, perCycle(counted[i][0])))
	}
	return t
}
