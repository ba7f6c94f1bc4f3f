package lease_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/lease"
)

// An oracle decides as the code did that stood in each stream's goroutines: who was told is a table for each hold and one for the lease, and a
// hold's place goes when no row of a table that was put together at its end stands in the way.
type oracle struct {
	now      time.Duration
	told     table
	closer   lease.Connection
	departed map[lease.Connection]bool
	lost     bool
	holds    map[lease.ID]*oracleHold
}

type table map[lease.Connection]time.Duration

type oracleHold struct {
	on                     lease.Connection
	carried, closed        bool
	told, counting         table
	parting                lease.Parting
	free, handed, accepted bool
	stopped                bool
}

func (t table) note(now time.Duration, e lease.Event) {
	if until := now + e.For + e.For/50; e.For > 0 && until > t[e.On] {
		t[e.On] = until
	}
}

func (o *oracle) all(h *oracleHold) table {
	all := maps.Clone(h.told)
	for on, until := range o.told {
		all[on] = max(all[on], until)
	}
	delete(all, o.closer)
	return all
}

// step says whether what was asked for is refused, and which holds go.
func (o *oracle) step(e lease.Event) (refused bool, gone map[lease.ID]bool) {
	h := o.holds[e.Of]
	switch {
	case e.Kind == lease.Began:
		o.holds[e.Of] = &oracleHold{on: e.On, carried: e.Carried, told: table{}}
	case e.Kind == lease.Told && e.Of == 0:
		o.told.note(o.now, e)
	case e.Kind == lease.Told && (h == nil || h.closed):
		return true, nil
	case e.Kind == lease.Told:
		h.told.note(o.now, e)
	case e.Kind == lease.Closed:
		o.closer = e.On
	case e.Kind == lease.Departed:
		o.departed[e.On] = true
	case e.Kind == lease.Lost:
		o.lost = true
	case h == nil:
	case e.Kind == lease.Acknowledged:
		h.accepted = true
	case e.Kind == lease.Stopped:
		h.stopped = true
	case e.Kind == lease.Ended && !h.closed:
		h.closed, h.parting, h.free = true, e.Parting, e.Free
		if h.counting = o.all(h); e.Parting == lease.Cancelled {
			h.counting = maps.Clone(h.told)
			delete(h.counting, h.on)
		}
	case (e.Kind == lease.Handed || e.Kind == lease.Unread) && h.closed && !h.handed:
		h.handed = true
		if h.carried && h.parting != lease.Cancelled {
			for on, until := range o.all(h) {
				h.counting[on] = max(h.counting[on], until)
			}
		}
	}
	gone = map[lease.ID]bool{}
	for of, h := range o.holds {
		if h.closed && (h.handed || h.stopped && h.accepted) && o.isFree(h) {
			gone[of] = true
			delete(o.holds, of)
		}
	}
	return false, gone
}

func (o *oracle) isFree(h *oracleHold) bool {
	if h.free || o.lost || h.accepted {
		return true
	}
	for on, until := range h.counting {
		left := o.departed[on] && (h.parting == lease.Cancelled || o.departed[h.on])
		if until > o.now && !left {
			return false
		}
	}
	return true
}

func TestTheMachineDecidesAsTheGoroutinesDid(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20_000) {
		if !agree(t, seed) {
			return
		}
	}
}

// agree plays random events. A connection that the machine does not watch may have departed without the machine: it is told when it asks.
func agree(t *testing.T, seed uint64) bool {
	t.Helper()
	dice := rand.New(rand.NewPCG(seed, 7))
	o := &oracle{told: table{}, departed: map[lease.Connection]bool{}, holds: map[lease.ID]*oracleHold{}}
	var m lease.Machine
	var story strings.Builder
	watched, newest := map[lease.Connection]bool{}, lease.ID(0)
	for range 60 {
		e := eventOf(dice, &newest)
		if e.Kind == lease.Ticked {
			o.now += time.Duration(dice.IntN(4000)) * time.Millisecond
		}
		fmt.Fprintf(&story, "%v %+v\n", o.now, e)
		wantRefused, wantGone := o.step(e)
		if e.Kind == lease.Departed && !watched[e.On] {
			continue
		}
		refused, gone := false, map[lease.ID]bool{}
		for pending := []lease.Event{e}; len(pending) > 0; pending = pending[1:] {
			for _, effect := range m.Step(lease.Instant(o.now), pending[0], nil) {
				switch effect.Do {
				case lease.Refuse:
					refused = true
				case lease.Leave:
					gone[effect.Of] = true
				case lease.Unwatch:
					delete(watched, effect.On)
				case lease.Watch:
					if watched[effect.On] = true; o.departed[effect.On] {
						pending = append(pending, lease.Event{Kind: lease.Departed, On: effect.On})
					}
				}
			}
		}
		if refused != wantRefused || !maps.Equal(gone, wantGone) {
			t.Errorf("seed %d: refused %t, gone %v; want %t, %v, after\n%s", seed, refused, gone, wantRefused, wantGone, &story)
			return false
		}
	}
	return true
}

func eventOf(dice *rand.Rand, newest *lease.ID) lease.Event {
	kinds := []lease.Kind{
		lease.Began, lease.Told, lease.Told, lease.Told, lease.Acknowledged, lease.Ended, lease.Ended, lease.Handed, lease.Handed, lease.Unread,
		lease.Departed, lease.Departed, lease.Ticked, lease.Ticked, lease.Granted, lease.Stopped, lease.Closed, lease.Lost,
	}
	e := lease.Event{
		Kind: kinds[dice.IntN(len(kinds))], On: lease.Connection(1 + dice.IntN(3)), For: time.Duration(dice.IntN(10)) * time.Second,
		Token: 1 + dice.Int64N(9), Parting: lease.Parting(dice.IntN(4)), Carried: dice.IntN(2) == 0, Free: dice.IntN(8) == 0,
	}
	switch e.Kind {
	case lease.Began:
		*newest++
		e.Of = *newest
	case lease.Lost, lease.Closed:
		if dice.IntN(10) > 0 {
			e = lease.Event{Kind: lease.Ticked}
		}
	case lease.Told:
		e.Of = lease.ID(dice.IntN(int(*newest) + 1))
	default:
		e.Of = lease.ID(1 + dice.IntN(int(*newest)+1))
	}
	return e
}
