package recipes_test

import (
	"testing"

	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/support/standin"
)

// requests counts what a session has sent and what was read for it.
func requests(s *standin.Session) int {
	sum := 0
	for _, name := range []string{
		"Enqueue", "Dequeue", "Children", "WatchChildren", "Get", "Watch", "CatchUp", "Commit",
	} {
		sum += s.Count(name)
	}
	return sum
}

func TestALockThatIsFreeTakesFourRequests(t *testing.T) {
	inBubble(t, func(w world) {
		c := w.join(recipes.Exclusive)
		w.expect("holding", c)
		c.quit()
		if got := requests(c.session); got != 4 {
			w.Errorf("%d requests", got)
		}
	})
}

// A cycle is: take a place, own node, list, predecessor, delete. Through one reader the predecessor is watched already.
func TestAHandOverTakesAtMostFiveRequestsAndFourThroughOneReader(t *testing.T) {
	for _, test := range []struct {
		waiters, want int
		shared        bool
	}{{1, 5, false}, {2, 6, false}, {16, 6, false}, {1, 4, true}, {2, 4, true}, {16, 4, true}} {
		inBubble(t, func(w world) {
			reader := w.NewReader()
			open := func() *standin.Session {
				if test.shared {
					return reader.OpenSession(0)
				}
				return w.session()
			}
			var queue []*contender
			cycle := func() (leaver *contender) {
				queue = append(queue, w.joinWith(open(), orders, recipes.Exclusive))
				leaver, queue = queue[0], queue[1:]
				leaver.quit()
				w.expect("holding", queue[0])
				return leaver
			}
			for range test.waiters {
				queue = append(queue, w.joinWith(open(), orders, recipes.Exclusive))
			}
			for range test.waiters + 1 {
				cycle()
			}
			for range 10 {
				if got := requests(cycle().session); got > test.want {
					w.Errorf("%d waiting, shared reader %v: %d requests, want %d", test.waiters, test.shared, got, test.want)
				}
			}
		})
	}
}

func TestAnotherLookAtAnUnchangedQueueTakesAtMostOneRequest(t *testing.T) {
	inBubble(t, func(w world) {
		w.join(recipes.Exclusive)
		w.join(recipes.Exclusive)
		session := w.session()
		place, err := orders.Join(w.living, session, recipes.Exclusive, recipes.About{})
		if err != nil {
			w.Fatal(err)
		}
		for i := range 4 {
			before := requests(session)
			turn, err := place.Look(w.Context())
			if err != nil || turn.First || turn.Position != 2 {
				w.Fatalf("%+v, %v", turn, err)
			}
			if got := requests(session) - before; i > 0 && got != 1 {
				w.Errorf("%d requests", got)
			}
		}
	})
}

// Whoever waits for several has its turn when all of them are gone, in whichever order they go.
func TestAWaiterHasItsTurnOnlyWhenAllAheadAreGone(t *testing.T) {
	inBubble(t, func(w world) {
		reader := w.NewReader()
		join := func() *contender { return w.joinWith(reader.OpenSession(0), orders, recipes.Exclusive) }
		first, second, third, last := join(), join(), join(), join()
		w.expect("holding, waiting, waiting, waiting", first, second, third, last)
		third.quit()
		w.expect("holding, waiting, waiting", first, second, last)
		second.quit()
		w.expect("holding, waiting", first, last)
		before := requests(last.session)
		first.quit()
		w.expect("holding", last)
		if got := requests(last.session) - before; got != 0 {
			w.Errorf("%d requests of the waiter from the end of the last one ahead", got)
		}
	})
}
