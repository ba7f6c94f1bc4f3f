package recipes_test

import (
	"math"
	"testing"
	"testing/synctest"

	"github.com/sidekeeper/sidekeeper/internal/embedded"
	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/support/standin"
)

// requests counts what a session has sent and what was read for it. To take a place is to make it and to list the queue.
func requests(s *standin.Session) int {
	sum := s.Count("Enqueue")
	for _, name := range []string{
		"Enqueue", "Dequeue", "Children", "WatchChildren", "Get", "Watch", "CatchUp", "Commit",
	} {
		sum += s.Count(name)
	}
	return sum
}

func TestALockThatIsFreeTakesThreeRequests(t *testing.T) {
	inBubble(t, func(w world) {
		for _, mode := range []recipes.Mode{recipes.Exclusive, recipes.Read, recipes.Write} {
			session := w.session()
			place, err := orders.Join(w.living, session, mode, recipes.About{})
			if err != nil {
				w.Fatal(err)
			}
			hold := place.GrantAtOnce()
			if node, _ := w.Read("/locks/orders/" + w.Names("/locks/orders")[0]); hold == nil || hold.Token != node.Czxid {
				w.Fatal(hold, node.Czxid)
			}
			place.Leave(w.living)
			if got := requests(session); got != 3 {
				w.Errorf("%v: %d requests", mode, got)
			}
		}
	})
}

// A cycle is: take a place, list, own node, predecessor, delete. Through one reader the predecessor is watched already.
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

// A place whose turn it is as it is made is granted without being read again. So nothing but what it was told then may be wrong.
func TestAPlaceIsGrantedAsItIsMadeOnlyWhileItIsItsSessions(t *testing.T) {
	for _, test := range []struct {
		name   string
		happen func(w world, session *standin.Session, place string)
	}{
		{"deleted by somebody else", func(w world, _ *standin.Session, place string) { w.delete(place) }},
		{"session over", func(w world, session *standin.Session, _ string) {
			if err := w.Expire(session.ID()); err != nil {
				w.Fatal(err)
			}
		}},
		{"session not proved", func(_ world, session *standin.Session, _ string) { session.Suspend() }},
	} {
		t.Run(test.name, func(t *testing.T) {
			inBubble(t, func(w world) {
				session := w.session()
				place, err := orders.Join(w.living, session, recipes.Exclusive, recipes.About{})
				if err != nil {
					w.Fatal(err)
				}
				test.happen(w, session, orders.Path+"/"+w.Names(orders.Path)[0])
				synctest.Wait()
				if place.GrantAtOnce() != nil {
					w.Error("it was granted")
				}
				session.Resume()
				place.Leave(w.living)
			})
		})
	}
}

// A list in which anything is unusual grants nothing: then all is read as it always was.
func TestAPlaceIsNotGrantedAsItIsMadeIfAnythingIsUnusual(t *testing.T) {
	for _, test := range []struct {
		name   string
		lock   recipes.Lock
		mode   recipes.Mode
		before func(w world)
		want   string
	}{
		{"somebody ahead", orders, recipes.Exclusive, func(w world) { w.foreign("lock-", embedded.EphemeralSequential, "") }, "waiting"},
		{"a writer ahead", orders, recipes.Read, func(w world) { w.foreign("x__WRIT__", embedded.EphemeralSequential, "") }, "waiting"},
		{"a reader ahead", orders, recipes.Write, func(w world) { w.foreign("x__READ__", embedded.EphemeralSequential, "") }, "waiting"},
		{"another kind ahead", orders, recipes.Read, func(w world) { w.foreign("lock-", embedded.EphemeralSequential, "") }, "mismatch"},
		{"not a lock", recipes.Lock{Path: orders.Path, Nested: true}, recipes.Exclusive, func(w world) {
			w.foreign("other", embedded.Persistent, "")
		}, "directory"},
		{"the last number", orders, recipes.Exclusive, func(w world) { w.startAt(math.MaxInt32) }, "holding"},
	} {
		t.Run(test.name, func(t *testing.T) {
			inBubble(t, func(w world) {
				w.join(recipes.Exclusive).quit() // which makes the directory
				test.before(w)
				session := w.session()
				c := w.joinWith(session, test.lock, test.mode)
				if w.expect(test.want, c); session.Count("Children") > 0 {
					w.Error("the queue was listed once more")
				}
				if session.Count("Watch") == 0 {
					w.Error("nothing was read")
				}
			})
		})
	}
}
