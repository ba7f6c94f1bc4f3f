package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	assignmentv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/assignment/v1"
)

// shares is the experiment in which members share the items of a set, while one joins, one is killed, and all are replaced one after the other.
type shares struct {
	members, items int
	away           time.Duration // for how long a member is that is replaced
}

// A shareWay is one way of sharing items.
type shareWay struct {
	name     string
	begin    func(ctx context.Context, member string, of *workBook) (leave func(kill bool), err error)
	graceful bool
}

// quietFor is how long nothing may have changed for a set to have settled.
const quietFor = 6 * time.Second

var shareColumns = []string{"", "moved", "must move", "moved ÷ must", "idle item-seconds", "seconds", "worked on twice"}

func (s shares) run(ctx context.Context, on *stage) (*table, error) {
	sidecar, err := on.startSidecar(ctx, on.addresses())
	if err != nil {
		return nil, err
	}
	defer sidecar.stop()
	connection, err := sidecar.dial()
	if err != nil {
		return nil, err
	}
	defer connection.Close()
	_, err = assignmentv1.NewAssignmentServiceClient(connection).Define(ctx, &assignmentv1.DefineRequest{Set: "shares", Count: int32(s.items)})
	if err != nil {
		return nil, err
	}
	t := &table{header: shareColumns}
	for _, way := range []shareWay{
		{name: "Sidekeeper", begin: sidekeeperShares(sidecar)},
		{name: "hash modulo members", begin: moduloShares(sidecar, s.items)},
		{name: "kazoo's SetPartitioner", begin: kazooShares(on.addresses(), s.items)},
	} {
		if err := s.play(ctx, way, t); err != nil {
			return nil, fmt.Errorf("%s: %w", way.name, err)
		}
	}
	t.notes = append(t.notes, fmt.Sprintf("%d members, %d items. A member that is replaced is away for %v, and the next one follows when the set has settled. "+
		"`must move` is what moves at least if parts differ by at most one, or by 5 %%.", s.members, s.items, s.away))
	return t, nil
}

// play has the members of one way live, and adds a row for each thing that happens to them.
func (s shares) play(ctx context.Context, way shareWay, t *table) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	of, leave := newWorkBook(s.items), map[string]func(kill bool){}
	defer func() {
		for _, each := range leave {
			each(true)
		}
	}()
	begin := func(member string) (err error) {
		leave[member], err = way.begin(ctx, member, of)
		return err
	}
	for member := range s.members {
		if err := begin(named(member)); err != nil {
			return err
		}
	}
	if err := of.settle(ctx); err != nil {
		return err
	}
	part := func(members int) int { return s.items / members }
	joins := func() error { return begin(named(s.members)) }
	dies := func() error { leave[named(0)](true); delete(leave, named(0)); return nil }
	replaced := func() error {
		for member := range s.members - 1 {
			leave[named(member+1)](false)
			if err := pause(ctx, s.away); err != nil {
				return err
			}
			if err := begin(named(member + 1)); err != nil {
				return err
			}
			if err := of.settle(ctx); err != nil {
				return err
			}
		}
		return nil
	}
	for _, event := range []struct {
		what string
		do   func() error
		must int
	}{
		{"one joins", joins, part(s.members+1) - 1},
		{"one is killed", dies, part(s.members + 1)},
		{"all are replaced", replaced, (s.members - 1) * (2*part(s.members) - 1)},
	} {
		began := time.Now()
		of.reset()
		err := event.do()
		if err == nil {
			err = of.settle(ctx)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", event.what, err)
		}
		moved, idle, twice := of.found()
		t.add(way.name+": "+event.what, strconv.Itoa(moved), strconv.Itoa(event.must), fmt.Sprintf("%.2f", float64(moved)/float64(event.must)),
			fmt.Sprintf("%.1f", idle.Seconds()), fmt.Sprintf("%.0f", (time.Since(began)-quietFor).Seconds()), strconv.Itoa(twice))
	}
	return nil
}

func named(member int) string { return fmt.Sprintf("m%02d", member) }

// A workBook is who works on which item, as the members say.
type workBook struct {
	mu      sync.Mutex
	holders []map[string]bool // of each item
	last    []string          // who has worked on it last
	since   []time.Time       // when its last holder has left it; zero while it has one
	changed time.Time
	moved   int
	idle    time.Duration
	twice   int
}

func newWorkBook(items int) *workBook {
	t := &workBook{last: make([]string, items), since: make([]time.Time, items), changed: time.Now()}
	for range items {
		t.holders = append(t.holders, map[string]bool{})
	}
	for i := range t.since {
		t.since[i] = t.changed
	}
	return t
}

func (t *workBook) takes(item int, member string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if len(t.holders[item]) > 0 {
		t.twice++
	}
	if t.last[item] != member {
		t.moved++
	}
	if !t.since[item].IsZero() {
		t.idle += now.Sub(t.since[item])
	}
	t.holders[item][member], t.last[item], t.since[item], t.changed = true, member, time.Time{}, now
}

func (t *workBook) leaves(item int, member string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.holders[item][member] {
		return
	}
	t.changed = time.Now()
	delete(t.holders[item], member)
	if len(t.holders[item]) == 0 {
		t.since[item] = t.changed
	}
}

// dies is when a member works on nothing any more.
func (t *workBook) dies(member string) {
	for item := range t.holders {
		t.leaves(item, member)
	}
}

func (t *workBook) reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.moved, t.idle, t.twice, t.changed = 0, 0, 0, time.Now()
}

func (t *workBook) found() (moved int, idle time.Duration, twice int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.moved, t.idle, t.twice
}

// settle returns when each item has had a member for a while, and nothing has changed.
func (t *workBook) settle(ctx context.Context) error {
	ctx, stop := context.WithTimeout(ctx, 5*time.Minute)
	defer stop()
	for {
		t.mu.Lock()
		idle := slices.ContainsFunc(t.holders, func(of map[string]bool) bool { return len(of) == 0 })
		quiet := time.Since(t.changed)
		t.mu.Unlock()
		if !idle && quiet > quietFor {
			return nil
		}
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

// perMember counts how many items each has.
func (t *workBook) perMember() map[string]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	count := map[string]int{}
	for _, of := range t.holders {
		for member := range maps.Keys(of) {
			count[member]++
		}
	}
	return count
}
