package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/embedded"
	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/support/standin"
)

func TestAMutexIsHeldByOneAtATimeInTheOrderOfArrival(t *testing.T) {
	inBubble(t, func(w world) {
		var contenders []*contender
		for range 50 {
			contenders = append(contenders, w.join(recipes.Exclusive))
		}
		token := int64(0)
		for i, c := range contenders {
			for j, other := range contenders {
				if (other.state == "holding") != (i == j) {
					w.Fatalf("at grant %d, contender %d is %s", i, j, other.state)
				}
			}
			if c.hold.Token <= token {
				w.Fatalf("token %d after %d", c.hold.Token, token)
			}
			token = c.hold.Token
			c.quit()
		}
		w.empty()
	})
}

func TestReadersHoldTogetherAndWritersAloneInTurn(t *testing.T) {
	inBubble(t, func(w world) {
		r1, r2, w3 := w.join(recipes.Read), w.join(recipes.Read), w.join(recipes.Write)
		r4, r5, w6, w7 := w.join(recipes.Read), w.join(recipes.Read), w.join(recipes.Write), w.join(recipes.Write)
		w.expect("holding, holding, waiting, waiting, waiting, waiting, waiting", r1, r2, w3, r4, r5, w6, w7)
		r2.quit()
		w.expect("holding, waiting, waiting", r1, w3, r4)
		r1.quit()
		w.expect("holding, waiting, waiting, waiting", w3, r4, r5, w6)
		w3.quit()
		w.expect("holding, holding, waiting, waiting", r4, r5, w6, w7)
		r4.quit()
		w.expect("holding, waiting, waiting", r5, w6, w7)
		r5.quit()
		w.expect("holding, waiting", w6, w7)
		w6.quit()
		w.expect("holding", w7)
		w7.quit()
		w.empty()
	})
}

func TestACancelledPlaceInTheMiddleLetsNobodyOvertake(t *testing.T) {
	for _, mode := range []recipes.Mode{recipes.Exclusive, recipes.Write} {
		inBubble(t, func(w world) {
			first, second, third, fourth := w.join(mode), w.join(mode), w.join(mode), w.join(mode)
			third.quit()
			w.expect("holding, waiting, waiting", first, second, fourth)
			second.quit()
			w.expect("holding, waiting", first, fourth)
			first.quit()
			w.expect("holding", fourth)
			fourth.quit()
			w.empty()
		})
	}
}

func TestGivingUpLeavesNothingBehind(t *testing.T) {
	inBubble(t, func(w world) {
		holder, waiter := w.join(recipes.Exclusive), w.join(recipes.Exclusive)
		waiter.quit()
		waiter.place.Leave(w.living)
		if names := w.Names(orders.Path); len(names) != 1 {
			w.Errorf("children: %q", names)
		}
		holder.quit()
		w.expect("left, left", holder, waiter)
		w.empty()
	})
}

func TestAPlaceRemovedByHandIsLost(t *testing.T) {
	inBubble(t, func(w world) {
		holder, waiter, last := w.join(recipes.Exclusive), w.join(recipes.Exclusive), w.join(recipes.Exclusive)
		w.delete(w.pathOf(waiter))
		w.expect("holding, gone, waiting", holder, waiter, last)
		w.delete(w.pathOf(holder))
		w.expect("gone, holding", holder, last)
		select {
		case <-holder.place.Gone().Done():
		default:
			w.Error("Gone is not closed")
		}
	})
}

func TestANodeOfTheSameNameThatAnotherClientMadeIsNotOurs(t *testing.T) {
	inBubble(t, func(w world) {
		holder, waiter := w.join(recipes.Exclusive), w.session()
		place, err := orders.Join(w.living, waiter, recipes.Exclusive, recipes.About{})
		if err != nil {
			w.Fatal(err)
		}
		path := w.pathOf(&contender{session: waiter})
		w.delete(path)
		w.foreign(path[strings.LastIndexByte(path, '/')+1:], embedded.Ephemeral, "")
		holder.quit()
		if _, err := place.Look(w.Context()); !errors.Is(err, recipes.ErrGone) {
			w.Errorf("look: %v", err)
		}
		if _, err := place.Grant(w.Context()); !errors.Is(err, recipes.ErrGone) {
			w.Errorf("grant: %v", err)
		}
	})
}

func TestASessionThatEndsFreesItsPlaces(t *testing.T) {
	inBubble(t, func(w world) {
		holder, waiter, last := w.join(recipes.Exclusive), w.join(recipes.Exclusive), w.join(recipes.Exclusive)
		waiter.session.Expire()
		w.expect("holding, waiting", holder, last)
		if _, err := waiter.place.Look(w.Context()); !errors.Is(err, recipes.ErrSessionEnded) {
			w.Errorf("look: %v", err)
		}
		if _, err := waiter.place.Grant(w.Context()); !errors.Is(err, recipes.ErrSessionEnded) {
			w.Errorf("grant: %v", err)
		}
		holder.session.Expire()
		w.expect("holding", last)
		if _, _, err := holder.hold.Look(w.Context()); !errors.Is(err, recipes.ErrSessionEnded) {
			w.Errorf("hold: %v", err)
		}
		waiter.quit()
		holder.quit()
	})
}

func TestNothingIsGrantedToASessionWithoutContact(t *testing.T) {
	inBubble(t, func(w world) {
		holder := w.join(recipes.Exclusive)
		waiter := w.joinWith(w.NewReader().OpenSession(10*time.Second), orders, recipes.Exclusive)
		waiter.session.Suspend() // its reader sees on
		holder.quit()
		w.expect("waiting", waiter)
		waiter.session.Resume()
		w.expect("holding", waiter)
	})
}

func TestNothingIsGrantedWithoutProof(t *testing.T) {
	inBubble(t, func(w world) {
		unproven := errors.New("not proven")
		session := w.session()
		session.Before(func(o standin.Operation) error {
			if o.Name == "Prove" {
				return unproven
			}
			return nil
		})
		place, err := orders.Join(w.living, session, recipes.Exclusive, recipes.About{})
		if err != nil {
			w.Fatal(err)
		}
		if turn, err := place.Look(w.Context()); err != nil || !turn.First {
			w.Fatalf("%+v, %v", turn, err)
		}
		if _, err := place.Grant(w.Context()); !errors.Is(err, unproven) {
			w.Errorf("grant: %v", err)
		}
	})
}

func TestAPlaceRemovedWhileItsSessionProvesItselfIsNotGranted(t *testing.T) {
	inBubble(t, func(w world) {
		session := w.session()
		session.Before(func(o standin.Operation) error {
			if o.Name == "Prove" {
				return w.Delete(w.pathOf(&contender{session: session}))
			}
			return nil
		})
		if c := w.joinWith(session, orders, recipes.Exclusive); c.state != "gone" {
			w.Errorf("the contender is %s", c.state)
		}
	})
}

func TestAReaderThatLagsDelaysATurnAndNeverCausesOne(t *testing.T) {
	inBubble(t, func(w world) {
		reader := w.NewReader()
		reader.Lag()
		holder := w.join(recipes.Exclusive)
		late := w.joinWith(reader.OpenSession(10*time.Second), orders, recipes.Exclusive)
		w.expect("holding, waiting", holder, late)
		if got := late.session.Count("CatchUp"); got != 1 {
			w.Errorf("caught up %d times", got)
		}
		holder.quit()
		w.expect("waiting", late)
		reader.KeepUp()
		w.expect("holding", late)
	})
}

func TestATokenGrowsAlsoWhenTheDirectoryIsMadeAnew(t *testing.T) {
	inBubble(t, func(w world) {
		first := w.join(recipes.Exclusive)
		first.quit()
		time.Sleep(time.Hour) // of virtual time: empty containers are removed
		if names := w.Names("/locks"); len(names) != 0 {
			w.Fatalf("still there: %q", names)
		}
		second := w.join(recipes.Exclusive)
		w.expect("holding", second)
		if second.hold.Token <= first.hold.Token {
			w.Errorf("token %d after %d", second.hold.Token, first.hold.Token)
		}
	})
}

func TestAReleaseWakesOneWaiter(t *testing.T) {
	inBubble(t, func(w world) {
		holder := w.join(recipes.Exclusive)
		var waiters []*contender
		for range 40 {
			waiters = append(waiters, w.join(recipes.Exclusive))
		}
		holder.quit()
		woken := 0
		for _, c := range waiters {
			woken += c.looks - 1
		}
		if woken != 1 {
			w.Errorf("%d waiters looked again", woken)
		}
	})
}

// What wakes a waiter is a word about the node that it watches, or about its own, and not always that its predecessor has gone.
func TestAWaiterThatIsWokenHasItsTurnOnlyWhenItsPredecessorIsGone(t *testing.T) {
	for name, wake := range map[string]func(w world, holder, waiter *contender) error{
		"a word to the predecessor": func(w world, holder, _ *contender) error {
			return w.Set(w.pathOf(holder), []byte("unlock"))
		},
		"a word to itself": func(w world, _, waiter *contender) error {
			return w.Set(w.pathOf(waiter), []byte("unlock"))
		},
	} {
		for _, modes := range [][2]recipes.Mode{{recipes.Exclusive, recipes.Exclusive}, {recipes.Write, recipes.Read}} {
			inBubble(t, func(w world) {
				holder, waiter := w.join(modes[0]), w.join(modes[1])
				if err := wake(w, holder, waiter); err != nil {
					w.Fatal(err)
				}
				synctest.Wait()
				if waiter.looks != 2 || waiter.state != "waiting" {
					w.Errorf("%s: the waiter has looked %d times and is %s beside the holder", name, waiter.looks, waiter.state)
				}
				holder.quit()
				if waiter.hold == nil {
					w.Errorf("%s: the holder has left, and the waiter is %s", name, waiter.state)
				}
			})
		}
	}
}

func TestAWaitEndsWithItsContext(t *testing.T) {
	inBubble(t, func(w world) {
		holder, session := w.join(recipes.Exclusive), w.session()
		place, err := orders.Join(w.living, session, recipes.Exclusive, recipes.About{})
		if err != nil {
			w.Fatal(err)
		}
		session.Reader().Delay(time.Hour)
		session.Delay(time.Hour)
		ctx, cancel := context.WithTimeoutCause(w.Context(), time.Minute, errors.New("enough"))
		defer cancel()
		if _, err := place.Look(ctx); err == nil || err.Error() != "enough" {
			w.Errorf("look: %v", err)
		}
		session.Delay(0)
		place.Leave(w.living)
		holder.quit()
		w.empty()
	})
}

func TestWaitersSeeWhoHolds(t *testing.T) {
	inBubble(t, func(w world) {
		w.join(recipes.Read)
		w.join(recipes.Read)
		writer := w.session()
		place, err := orders.Join(w.living, writer, recipes.Write, recipes.About{})
		if err != nil {
			w.Fatal(err)
		}
		turn, err := place.Look(w.Context())
		if got := fmt.Sprintf("%d %v %v", turn.Position, owners(turn.Holders), err); got != "2 [read] <nil>" {
			w.Errorf("look: %s", got)
		}
		for range 3 {
			before := requests(writer)
			turn, err = place.Glance(w.Context())
			if got := fmt.Sprintf("%d %v %v", turn.Position, owners(turn.Holders), err); got != "2 [read read] <nil>" {
				w.Errorf("glance: %s", got)
			}
			if got := requests(writer) - before; got > 2 {
				w.Errorf("a glance took %d requests", got)
			}
		}
	})
}
