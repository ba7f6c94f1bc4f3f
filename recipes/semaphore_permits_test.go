package recipes_test

import (
	"testing"

	"github.com/sidekeeper/sidekeeper/recipes"
)

// Behind the making of a permit come the list of permits and the limit.
func TestPermitsThatThereIsRoomForAreGrantedWithoutAnotherList(t *testing.T) {
	inBubble(t, func(w world) {
		calls := recipes.Semaphore{Path: "/semaphores/calls"}
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
