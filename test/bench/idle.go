package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"google.golang.org/grpc"
)

// idle is the experiment in which leases are open and nothing else happens.
type idle struct {
	leases  int
	seconds int
	flags   []string // of the sidecar, more than it has otherwise
}

var footprints = []string{"", "RSS KiB", "heap KiB", "stacks KiB", "sidecar CPU µs/s", "transactions/s"}

func (i idle) run(ctx context.Context, on *stage) (*table, error) {
	t := &table{header: footprints}
	t.notes = append(t.notes, "Each for one lease.")
	for _, row := range []struct {
		name        string
		connections int
		hold        bool
	}{
		{"one connection for all", 1, false}, {"a connection each", i.leases, false}, {"four connections, each stream holds a lock", 4, true},
	} {
		cells, err := i.row(ctx, on, row.connections, row.hold)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", row.name, err)
		}
		t.add(append([]string{row.name}, cells...)...)
	}
	return t, nil
}

// many is the experiment in which so many leases hold a lock each, and nothing else happens.
type many struct {
	leases  []int
	seconds int
}

// perConnection is how many leases share a connection.
const perConnection = 500

func (m many) run(ctx context.Context, on *stage) (*table, error) {
	t := &table{header: footprints}
	t.notes = append(t.notes, "Each for one lease, which holds a lock; 500 share a connection.")
	for _, leases := range m.leases {
		i := idle{leases: leases, seconds: m.seconds, flags: []string{
			"--max-leases", "100000", "--max-connections", "100000", "--max-streams", "100000", "--max-memory", "16GiB",
		}}
		cells, err := i.row(ctx, on, leases/perConnection, true)
		if err != nil {
			return nil, fmt.Errorf("%d leases: %w", leases, err)
		}
		t.add(append([]string{strconv.Itoa(leases)}, cells...)...)
	}
	return t, nil
}

// untilAsleep is when a lease sleeps on which nothing stands.
const untilAsleep = 20 * time.Second

// A footprint is what a sidecar occupies.
type footprint struct{ resident, heap, stacks int64 }

// row measures a sidecar of its own, whose leases share so many connections and may hold a lock each.
func (i idle) row(ctx context.Context, on *stage, connections int, hold bool) ([]string, error) {
	sidecar, err := on.startSidecar(ctx, on.addresses(), i.flags...)
	if err != nil {
		return nil, err
	}
	defer sidecar.stop()
	before, err := sidecar.footprint(ctx)
	if err != nil {
		return nil, err
	}
	closeLeases, err := i.open(ctx, sidecar, connections, hold)
	defer closeLeases()
	if err != nil {
		return nil, err
	}
	settles := time.Duration(i.seconds) * time.Second / 4 // until every heart has begun to beat
	if !hold {
		settles = untilAsleep
	}
	if err := pause(ctx, settles); err != nil {
		return nil, err
	}
	cost, transactions, err := i.watch(ctx, on, sidecar)
	if err != nil {
		return nil, err
	}
	after, err := sidecar.footprint(ctx)
	if err != nil {
		return nil, err
	}
	perSecond := float64(i.leases) * float64(i.seconds)
	return []string{
		i.each(after.resident - before.resident), i.each(after.heap - before.heap), i.each(after.stacks - before.stacks),
		fmt.Sprintf("%.1f", float64(cost.Microseconds())/perSecond), fmt.Sprintf("%.4f", float64(transactions)/perSecond),
	}, nil
}

func (i idle) each(bytes int64) string {
	return fmt.Sprintf("%.1f", float64(bytes)/float64(i.leases)/1024)
}

// footprint asks for the memory in use first, which has garbage collected, and for what is resident then.
func (s *sidecar) footprint(ctx context.Context) (footprint, error) {
	memory, err := s.memory(ctx, "HeapInuse", "Stack")
	if err != nil {
		return footprint{}, err
	}
	resident, err := s.resident()
	return footprint{resident, memory["HeapInuse"], memory["Stack"]}, err
}

// open opens the leases. What it returns closes what was opened, also after an error.
func (i idle) open(ctx context.Context, s *sidecar, connections int, hold bool) (closeAll func(), err error) {
	opened := make([]*grpc.ClientConn, connections)
	ends := make([]func(), i.leases)
	closeAll = func() {
		_ = eachOf(len(ends), openings, func(n int) error {
			if ends[n] != nil {
				ends[n]()
			}
			return nil
		})
		for _, connection := range opened {
			if connection != nil {
				connection.Close()
			}
		}
	}
	for n := range opened {
		if opened[n], err = s.dial(); err != nil {
			return closeAll, err
		}
	}
	return closeAll, eachOf(i.leases, openings, func(n int) (err error) {
		if !hold {
			_, ends[n], err = beginLease(ctx, opened[n%connections])
			return err
		}
		c, err := beginStream(ctx, opened[n%connections])
		if err != nil {
			return err
		}
		ends[n] = c.end
		return c.lock(ctx, lockOf(n))
	})
}

// watch tells what time of processors the sidecar, and what transactions the ensemble needs in the seconds that follow.
func (i idle) watch(ctx context.Context, on *stage, s *sidecar) (cost time.Duration, transactions int64, err error) {
	costBefore, err := s.processor()
	if err != nil {
		return 0, 0, err
	}
	before, err := on.transactions(ctx)
	if err != nil {
		return 0, 0, err
	}
	if err := pause(ctx, time.Duration(i.seconds)*time.Second); err != nil {
		return 0, 0, err
	}
	after, err := on.transactions(ctx)
	if err != nil {
		return 0, 0, err
	}
	costAfter, err := s.processor()
	return costAfter - costBefore, after - before, err
}
