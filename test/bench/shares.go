package main

import (
	"context"
	"fmt"
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
	name  string
	begin func(ctx context.Context, member string, of *workBook) (leave func(kill bool), err error)
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
		{name: "Sidekeeper", begin: byProgram(byAssignment, sidecar, s.items)},
		{name: "hash modulo members", begin: byProgram(byModulo, sidecar, s.items)},
		{name: "kazoo's SetPartitioner", begin: kazooShares(on.addresses(), s.items)},
	} {
		if err := s.play(ctx, way, t); err != nil {
			return nil, fmt.Errorf("%s: %w", way.name, err)
		}
	}
	t.notes = append(t.notes, fmt.Sprintf("%d members, %d items. A member that is replaced is away for %v. When it is back, the next one "+
		"leaves, as a Deployment has it. `must move` is what moves at least if parts differ by at most one, or by 5 %%: all that is replaced "+
		"has to move once, and the last one gets a part.", s.members, s.items, s.away))
	return t, nil
}

// A troupe is the members of one way.
type troupe struct {
	shares

	way   shareWay
	of    *workBook
	leave map[string]func(kill bool)
}

// play has the members of one way live, and adds a row for each thing that happens to them.
func (s shares) play(ctx context.Context, way shareWay, t *table) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	all := &troupe{shares: s, way: way, of: newWorkBook(s.items), leave: map[string]func(kill bool){}}
	defer all.end()
	for member := range s.members {
		if err := all.begin(ctx, member); err != nil {
			return err
		}
	}
	if err := all.of.settle(ctx); err != nil {
		return err
	}
	part := s.items / s.members
	for _, event := range []struct {
		what string
		do   func(ctx context.Context) error
		must int
	}{
		{"one joins", func(ctx context.Context) error { return all.begin(ctx, s.members) }, s.items / (s.members + 1)},
		{"one is killed", all.dies, s.items / (s.members + 1)},
		{"all are replaced", all.replaced, 2*part + (s.members-2)*(s.items/(s.members-1))},
	} {
		if err := all.undergo(ctx, event.what, event.must, event.do, t); err != nil {
			return fmt.Errorf("%s: %w", event.what, err)
		}
	}
	return nil
}

// undergo has something happen to the members, and adds a row for that.
func (a *troupe) undergo(ctx context.Context, what string, must int, do func(context.Context) error, t *table) error {
	began := time.Now()
	a.of.reset()
	if err := do(ctx); err != nil {
		return err
	}
	if err := a.of.settle(ctx); err != nil {
		return err
	}
	moved, idle, twice := a.of.found()
	t.add(a.way.name+": "+what, strconv.Itoa(moved), strconv.Itoa(must), fmt.Sprintf("%.2f", float64(moved)/float64(must)),
		fmt.Sprintf("%.1f", idle.Seconds()), fmt.Sprintf("%.0f", (time.Since(began)-quietFor).Seconds()), strconv.Itoa(twice))
	return nil
}

func (a *troupe) begin(ctx context.Context, member int) (err error) {
	a.leave[named(member)], err = a.way.begin(ctx, named(member), a.of)
	return err
}

// dies kills the first member.
func (a *troupe) dies(context.Context) error {
	a.leave[named(0)](true)
	delete(a.leave, named(0))
	return nil
}

// replaced has each of the others leave and come back, one after the other.
func (a *troupe) replaced(ctx context.Context) error {
	for member := 1; member < a.members; member++ {
		a.leave[named(member)](false)
		err := pause(ctx, a.away)
		if err == nil {
			err = a.begin(ctx, member)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (a *troupe) end() {
	for _, leave := range a.leave {
		leave(true)
	}
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
