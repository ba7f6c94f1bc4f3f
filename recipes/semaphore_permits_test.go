package recipes_test

import (
	"strings"
	"testing"

	"github.com/sidekeeper/sidekeeper/recipes"
)

// Behind the making of a permit come the list of permits and the limit.
func TestPermitsThatThereIsRoomForAreGrantedWithoutAnotherList(t *testing.T) {
	inBubble(t, func(w world) {
		if err := calls.Create(w.living, w.session(), 3); err != nil {
			w.Fatal(err)
		}
		take := func(count, lists int, want bool) *recipes.Permits {
			w.Helper()
			session := w.session()
			permits, err := calls.Join(w.living, session, count, recipes.About{})
			if err != nil {
				w.Fatal(err)
			}
			turn, err := permits.Look(w.living)
			if err != nil || turn.Granted != want || session.Count("WatchChildren") != lists {
				w.Fatalf("%d permits: %+v, %v, after %d lists", count, turn, err, session.Count("WatchChildren"))
			}
			return permits
		}
		first := take(2, 0, true)
		first.LeaveQueue(w.living)
		take(1, 0, true).Leave(w.living)
		second := take(2, 1, false)
		first.Leave(w.living)
		if turn, err := second.Look(w.living); err != nil || !turn.Granted {
			w.Fatal(turn, err)
		}
	})
}

var calls = recipes.Semaphore{Path: "/semaphores/calls"}

// permits has a caller with a session of its own look once whether it is granted so many.
func (w world) permits(count int, about recipes.About) (permits *recipes.Permits, granted bool) {
	w.Helper()
	permits, err := calls.Join(w.living, w.session(), count, about)
	if err != nil {
		w.Fatal(err)
	}
	turn, err := permits.Look(w.living)
	if err != nil {
		w.Fatal(err)
	}
	if turn.Granted {
		permits.LeaveQueue(w.living)
	}
	return permits, turn.Granted
}

func TestAResizeSaysOfHowManyPermitsHoldersWereAskedAndNotWaiters(t *testing.T) {
	inBubble(t, func(w world) {
		store := w.NewReader()
		if err := calls.Create(w.living, store, 3); err != nil {
			w.Fatal(err)
		}
		holder, _ := w.permits(3, recipes.About{})
		waiter, granted := w.permits(2, recipes.About{})
		if granted || len(w.Names(calls.Path+"/leases")) != 5 {
			w.Fatal(granted, w.Names(calls.Path+"/leases"))
		}
		for _, c := range []struct{ limit, want int }{{3, 0}, {2, 1}} {
			if asked, err := calls.Resize(w.living, store, c.limit, "", "", nil); asked != c.want || err != nil {
				w.Errorf("of %d permits holders were asked, not of %d: %v", asked, c.want, err)
			}
		}
		waiter.Leave(w.living)
		holder.Leave(w.living)
	})
}

func TestAViewCountsThePermitsOfHoldersThatItHasNoRoomFor(t *testing.T) {
	inBubble(t, func(w world) {
		store := w.NewReader()
		const holders = 1500
		if err := calls.Create(w.living, store, 2*holders); err != nil {
			w.Fatal(err)
		}
		wide := recipes.About{Metadata: map[string]string{"x": strings.Repeat("x", 1000)}}
		for range holders {
			if _, granted := w.permits(2, wide); !granted {
				w.Fatal("not granted")
			}
		}
		if _, granted := w.permits(1, wide); granted {
			w.Fatal("granted beyond the limit")
		}
		view, err := calls.View(w.living, store)
		if err != nil || view.Taken != 2*holders || len(view.Holders) == 0 || len(view.Holders) >= holders || len(view.Waiters) != 1 {
			w.Errorf("%d permits of %d holders, %d waiters: %v", view.Taken, len(view.Holders), len(view.Waiters), err)
		}
		for _, holder := range view.Holders {
			if holder.Permits != 2 {
				w.Fatalf("a holder of %d permits", holder.Permits)
			}
		}
	})
}
