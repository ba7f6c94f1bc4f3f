package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/embedded"
	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/support/standin"
)

var mails = recipes.Queue{Path: "/queues/mails"}

// A taker is one delivery and how far it has come: "waiting", what was delivered, or how it has ended.
type taker struct {
	*contender

	delivery *recipes.Delivery
}

// take waits for an item with this session.
func (w world) take(session *standin.Session) *taker {
	w.Helper()
	return w.takeWith(session, w.NewReader())
}

func (w world) takeWith(session *standin.Session, store recipes.Store) *taker {
	w.Helper()
	return w.takeFrom(mails, session, store)
}

func (w world) takeFrom(queue recipes.Queue, session *standin.Session, store recipes.Store) *taker {
	w.Helper()
	delivery, err := queue.Take(w.living, session, store, recipes.About{Owner: "taker"})
	if err != nil {
		w.Fatal(err)
	}
	ctx, cancel := context.WithCancel(w.living)
	k := &taker{&contender{session: session, store: session, leave: cancel, over: make(chan struct{}), state: "waiting"}, delivery}
	go func() {
		defer close(k.over)
		defer delivery.Leave(w.living)
		k.becomes(ending(k.live(ctx)))
	}()
	synctest.Wait()
	return k
}

func (k *taker) live(ctx context.Context) error {
	for {
		turn, err := k.delivery.Look(ctx)
		if err != nil && !errors.Is(err, recipes.ErrOutcomeUnknown) {
			return err
		}
		if err == nil && turn.Delivered {
			break
		}
		due := make(<-chan struct{})
		if !turn.Due.IsZero() {
			due = passed(time.Until(turn.Due))
		}
		if err == nil {
			err = recipes.Changes{turn.Changed.Done(), turn.Marked.Done(), due}.Wait(ctx)
		}
		if ctx.Err() != nil {
			return err
		}
	}
	k.delivery.LeaveQueue(ctx)
	k.becomes(fmt.Sprintf("%s", k.delivery.Values))
	<-ctx.Done()
	return context.Cause(ctx)
}

func (w world) putItem(order recipes.Order, values ...string) {
	w.Helper()
	for _, value := range values {
		if err := mails.Put(w.living, w.NewReader(), []byte(value), order, recipes.MaxItems); err != nil {
			w.Fatal(err)
		}
	}
	synctest.Wait()
}

// done removes a delivery's item and gives up the delivery.
func (w world) done(k *taker) {
	w.Helper()
	if err := k.delivery.Done(w.living, w.NewReader()); err != nil {
		w.Error(err)
	}
	k.quit()
}

func (w world) takersAre(want string, takers ...*taker) {
	w.Helper()
	synctest.Wait()
	var states []string
	for _, k := range takers {
		states = append(states, k.is())
	}
	if got := strings.Join(states, ", "); got != want {
		w.Fatalf("takers are %s; want %s", got, want)
	}
}

// left is what lies in the queue and beside it.
func (w world) left() string {
	return fmt.Sprint(len(w.Names(mails.Path)), len(w.Names(mails.Path+recipes.TakenSuffix)), len(w.Names(mails.Path+recipes.TakersSuffix)))
}

func TestEachItemIsDeliveredToOneCallerInTheOrderOfThePutsAndOfTheCallers(t *testing.T) {
	inBubble(t, func(w world) {
		w.putItem(recipes.Order{}, "a", "b")
		first, second, third := w.take(w.session()), w.take(w.session()), w.take(w.session())
		w.takersAre("[a], [b], waiting", first, second, third)
		fourth := w.take(w.session())
		w.putItem(recipes.Order{}, "c")
		w.takersAre("[c], waiting", third, fourth)
		for _, k := range []*taker{first, second, third} {
			w.done(k)
		}
		fourth.quit()
		if got := w.left(); got != "0 0 0" {
			t.Errorf("left behind: %s", got)
		}
	})
}

func TestAnItemThatIsNotDoneIsDeliveredAgainWithALargerToken(t *testing.T) {
	for name, end := range map[string]func(*taker){
		"given back": func(k *taker) { k.quit() },
		"expired":    func(k *taker) { k.session.Expire(); synctest.Wait() },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(w world) {
				w.putItem(recipes.Order{}, "a")
				first, second := w.take(w.session()), w.take(w.session())
				w.takersAre("[a], waiting", first, second)
				token := first.delivery.Token
				end(first)
				w.takersAre("[a]", second)
				if second.delivery.Token <= token {
					t.Errorf("token %d after %d", second.delivery.Token, token)
				}
				if err := first.delivery.Done(w.living, w.NewReader()); !errors.Is(err, recipes.ErrGuardLost) {
					t.Errorf("the first delivery was done with %v", err)
				}
				w.takersAre("[a]", second)
				w.done(second)
			})
		})
	}
}

func TestSmallerPrioritiesComeFirstAndDelayedItemsWhenTheyAreDue(t *testing.T) {
	inBubble(t, func(w world) {
		w.putItem(recipes.Order{Priority: 7}, "seven")
		w.putItem(recipes.Order{Due: time.Now().Add(time.Minute)}, "later")
		w.putItem(recipes.Order{Due: time.Now().Add(10 * time.Second)}, "soon")
		w.putItem(recipes.Order{}, "plain")
		w.putItem(recipes.Order{Priority: -1}, "minus one")
		var all []*taker
		for range 5 {
			all = append(all, w.take(w.session()))
		}
		w.takersAre("[minus one], [plain], [seven], waiting, waiting", all...)
		time.Sleep(9 * time.Second)
		w.takersAre("waiting, waiting", all[3:]...)
		time.Sleep(2 * time.Second)
		w.takersAre("[soon], waiting", all[3:]...)
		time.Sleep(50 * time.Second)
		w.takersAre("[soon], [later]", all[3:]...)
	})
}

func TestAQueueHasNoMoreItemsThanItMay(t *testing.T) {
	inBubble(t, func(w world) {
		w.putItem(recipes.Order{}, "a", "b")
		if err := mails.Put(w.living, w.NewReader(), nil, recipes.Order{}, 2); !errors.Is(err, recipes.ErrQueueFull) {
			t.Errorf("the third of two was put with %v", err)
		}
		w.done(w.take(w.session()))
		if err := mails.Put(w.living, w.NewReader(), nil, recipes.Order{}, 2); err != nil {
			t.Error(err)
		}
	})
}

// A consumer of Curator's would hear of nothing more, if the ensemble removed a queue that is empty.
func TestAQueueThatIsEmptyStays(t *testing.T) {
	inBubble(t, func(w world) {
		w.putItem(recipes.Order{}, "a")
		w.done(w.take(w.session()))
		w.Reap()
		w.Reap()
		for _, directory := range []string{mails.Path, mails.Path + recipes.TakenSuffix} {
			if _, err := w.Read(directory); err != nil {
				t.Errorf("%s: %v", directory, err)
			}
		}
	})
}

func TestNamesOfItemsSortAsCuratorsConsumersTakeThem(t *testing.T) {
	inBubble(t, func(w world) {
		for _, priority := range []int32{0, 7, -1, -9} {
			w.putItem(recipes.Order{Priority: priority, Ranked: true}, "x")
		}
		want := []string{"queue-0FFFFFFF70000000003", "queue-0FFFFFFFF0000000002", "queue-1000000000000000000", "queue-1000000070000000001"}
		if got := slices.Sorted(slices.Values(w.Names(mails.Path))); !slices.Equal(got, want) {
			t.Errorf("items are %q, want %q", got, want)
		}
	})
}

// Curator makes such names, and several values in one item; whoever else makes an item is not refused.
func TestItemsOfCuratorAreReadAndWhatIsNoneIsLetAlone(t *testing.T) {
	inBubble(t, func(w world) {
		several := "\x00\x01\x00\x01\x01\x00\x00\x00\x01x\x01\x00\x00\x00\x02yz\x02"
		for name, data := range map[string]string{
			"queue-0FFFFFFFE0000000001": several, "queue-|an id|0000000003": "raw", "queue-1000000010000000002": "",
			"queue-": "no item", "queue-x0000000001": "no item", "other": "no item",
		} {
			if _, err := w.Create(mails.Path+"/"+name, []byte(data), embedded.Persistent, 0); errors.Is(err, recipes.ErrNoNode) {
				w.must(w.NewReader().MakeDirectory(w.living, mails.Path))
				_, err = w.Create(mails.Path+"/"+name, []byte(data), embedded.Persistent, 0)
				w.must(err)
			}
		}
		w.takersAre("[x yz], [raw], [], waiting", w.take(w.session()), w.take(w.session()), w.take(w.session()), w.take(w.session()))
	})
}

func (w world) must(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func TestAnItemThatACuratorClientHasTakenIsLetAlone(t *testing.T) {
	inBubble(t, func(w world) {
		w.putItem(recipes.Order{}, "a")
		w.must(w.NewReader().MakeDirectory(w.living, mails.Path+recipes.TakenSuffix))
		foreign := w.session()
		_, err := w.Create(mails.Path+recipes.TakenSuffix+"/"+w.Names(mails.Path)[0], nil, embedded.Ephemeral, foreign.ID())
		w.must(err)
		k := w.take(w.session())
		w.takersAre("waiting", k)
		foreign.Expire()
		synctest.Wait()
		w.takersAre("[a]", k)
	})
}

// Every request of a delivery may be lost before or after it was carried out, and so may be the answer: the item is delivered, and done once.
func TestADeliveryGoesOnWhereALostReplyBrokeItOff(t *testing.T) {
	for _, operation := range []string{"Enqueue", "Create", "Get", "WatchOwn", "Prove", "CatchUp", "WatchChildren", "Commit"} {
		for _, lost := range []string{"request", "reply"} {
			t.Run(operation+" "+lost, func(t *testing.T) {
				inBubble(t, func(w world) {
					w.putItem(recipes.Order{}, "a")
					session := w.session()
					lose := session.Before
					if lost == "reply" {
						lose = session.After
					}
					if operation != "Enqueue" && (operation != "Create" || lost == "request") { // the session's own: it finds out what became of them
						lose(once(operation, replyLost))
					}
					k := w.take(session)
					w.takersAre("[a]", k)
					if err := k.delivery.Done(w.living, session); err != nil {
						t.Error(err)
					}
					k.quit()
					if got := w.left(); got != "0 0 0" {
						t.Errorf("left behind: %s", got)
					}
				})
			})
		}
	}
}

// An item that comes after another was removed may have its name, where the ensemble has removed the empty queue meanwhile.
func TestWhoIsDoneAgainRemovesNoItemThatCameSince(t *testing.T) {
	inBubble(t, func(w world) {
		w.putItem(recipes.Order{}, "old")
		session := w.session()
		k := w.take(session)
		w.takersAre("[old]", k)
		name := w.Names(mails.Path)[0]
		session.After(once("Commit", func() error {
			_, err := w.Create(mails.Path+"/"+name, []byte("new"), embedded.Persistent, 0)
			w.must(err)
			return recipes.ErrOutcomeUnknown
		}))
		w.must(k.delivery.Done(w.living, session))
		k.quit()
		if got := w.left(); got != "1 0 0" {
			t.Errorf("left behind: %s", got)
		}
	})
}

// A reader that is late shows an item that was there before under the same name: its value is not the new one's.
func TestAReaderThatIsLateDeliversNoOlderItemOfTheSameName(t *testing.T) {
	inBubble(t, func(w world) {
		w.putItem(recipes.Order{}, "old")
		session := w.session()
		name := w.Names(mails.Path)[0]
		session.Before(once("Create", func() error {
			w.must(w.Delete(mails.Path + "/" + name))
			_, err := w.Create(mails.Path+"/"+name, []byte("new"), embedded.Persistent, 0)
			return err
		}))
		w.takersAre("[new]", w.take(session))
	})
}

func TestAnItemThatIsDeliveredAgainAndAgainRestsAndOthersGoBeforeIt(t *testing.T) {
	inBubble(t, func(w world) {
		w.putItem(recipes.Order{}, "poison")
		last := time.Now()
		for i, seconds := range []float64{0, 0, 1, 2, 4, 8, 16, 30, 30} {
			k := w.take(w.session())
			for k.is() == "waiting" {
				time.Sleep(10 * time.Millisecond)
			}
			w.takersAre("[poison]", k)
			if rested := time.Since(last).Round(time.Second / 5).Seconds(); rested != seconds || k.delivery.Times != i+1 {
				t.Errorf("delivered %d times, after %v s; want %d, %v", k.delivery.Times, rested, i+1, seconds)
			}
			last = time.Now()
			k.quit()
		}
		w.putItem(recipes.Order{}, "a")
		k := w.take(w.session())
		w.takersAre("[a]", k)
		w.done(k)
		time.Sleep(31 * time.Second)
		k = w.take(w.session())
		w.takersAre("[poison]", k)
		w.done(k)
		if got := w.left(); got != "0 0 0" {
			t.Errorf("left behind: %s", got)
		}
	})
}

// A worker may take long to fail: the rest begins at its end, where a caller of the same sidecar has seen the item with it.
func TestAnItemRestsFromTheEndOfADelivery(t *testing.T) {
	inBubble(t, func(w world) {
		w.putItem(recipes.Order{}, "poison")
		queue := recipes.Queue{Path: mails.Path, Rests: &recipes.Rests{}}
		for i, seconds := range []float64{0, 0, 1, 2, 4} {
			freed := time.Now()
			k := w.takeFrom(queue, w.session(), w.NewReader())
			for k.is() == "waiting" {
				time.Sleep(10 * time.Millisecond)
			}
			w.takersAre("[poison]", k)
			if rested := time.Since(freed).Round(time.Second / 5).Seconds(); rested != seconds {
				t.Errorf("delivery %d comes %v s after the one before it ended; want %v", i+1, rested, seconds)
			}
			time.Sleep(time.Minute)
			k.quit()
			synctest.Wait()
		}
	})
}

// An ensemble that does not answer for a while does not end the rest.
func TestAnItemThatCouldNotBeReadRestsAllTheSame(t *testing.T) {
	inBubble(t, func(w world) {
		w.putItem(recipes.Order{}, "poison")
		queue := recipes.Queue{Path: mails.Path, Rests: &recipes.Rests{}}
		for range 3 {
			k := w.takeFrom(queue, w.session(), w.NewReader())
			for k.is() == "waiting" {
				time.Sleep(10 * time.Millisecond)
			}
			time.Sleep(time.Minute)
			k.quit()
			synctest.Wait()
		}
		unheard := w.session()
		unheard.Before(once("Get", func() error { return recipes.ErrUnreachable }))
		w.takersAre(recipes.ErrUnreachable.Error(), w.takeFrom(queue, unheard, w.NewReader()))
		w.takersAre("waiting", w.takeFrom(queue, w.session(), w.NewReader()))
	})
}

func TestWhatRestsIsReadOnceAndCountsAsNotDue(t *testing.T) {
	inBubble(t, func(w world) {
		w.putItem(recipes.Order{}, "poison")
		queue := recipes.Queue{Path: mails.Path, Rests: &recipes.Rests{}}
		for range 4 {
			k := w.takeFrom(queue, w.session(), w.NewReader())
			for k.is() == "waiting" {
				time.Sleep(10 * time.Millisecond)
			}
			k.quit()
			synctest.Wait()
		}
		for i, reads := range []int{1, 0, 0} {
			session := w.session()
			k := w.takeFrom(queue, session, w.NewReader())
			w.takersAre("waiting", k)
			if got := session.Count("Get"); got != reads {
				t.Errorf("caller %d has read %d items; want %d", i, got, reads)
			}
			k.quit()
		}
		if state, err := queue.State(w.living, w.NewReader()); err != nil || state != (recipes.QueueState{Items: 1, Delayed: 1}) {
			t.Errorf("%+v, %v", state, err)
		}
	})
}

// Whoever may not write an item, and whoever hears nothing of having written it, has it delivered all the same.
func TestAnItemWhoseDeliveriesCannotBeCountedIsDelivered(t *testing.T) {
	for _, why := range []error{recipes.ErrDenied, recipes.ErrTooLarge, recipes.ErrOutcomeUnknown} {
		inBubble(t, func(w world) {
			w.putItem(recipes.Order{}, "a")
			session := w.session()
			store := w.NewReader()
			store.Before(func(operation standin.Operation) error {
				if operation.Name == "Commit" {
					return why
				}
				return nil
			})
			k := w.takeWith(session, store)
			w.takersAre("[a]", k)
			w.done(k)
		})
	}
}

// An item that somebody has removed by hand while its delivery was counted is not delivered, and neither is one of its name as that.
func TestAnItemThatChangesWhileItsDeliveryIsCountedIsReadAnew(t *testing.T) {
	for want, change := range map[string]func(w world, item string) error{
		"waiting": func(w world, item string) error { return w.Delete(item) },
		"[other]": func(w world, item string) error {
			_, err := w.NewReader().Commit(w.living, recipes.Set(item, []byte("other"), -1))
			return err
		},
	} {
		inBubble(t, func(w world) {
			w.putItem(recipes.Order{}, "a")
			item, store := mails.Path+"/"+w.Names(mails.Path)[0], w.NewReader()
			store.Before(once("Commit", func() error { return change(w, item) }))
			k := w.takeWith(w.session(), store)
			w.takersAre(want, k)
			k.quit()
		})
	}
}

func TestAnItemThatMayNotBeReadIsLeftOut(t *testing.T) {
	inBubble(t, func(w world) {
		w.putItem(recipes.Order{}, "secret")
		w.putItem(recipes.Order{}, "a")
		session, secret := w.session(), mails.Path+"/"+w.Names(mails.Path)[0]
		session.Before(func(operation standin.Operation) error {
			if operation.Name == "Get" && operation.Path == secret {
				return recipes.ErrDenied
			}
			return nil
		})
		k := w.take(session)
		w.takersAre("[a]", k)
		if taken := w.Names(mails.Path + recipes.TakenSuffix); len(taken) != 2 { // the item's, and the delivery's
			t.Errorf("taken: %q", taken)
		}
	})
}

// A reader that is late still shows an item that another caller is done with.
func TestAnItemThatAnotherIsDoneWithIsNotDelivered(t *testing.T) {
	inBubble(t, func(w world) {
		w.putItem(recipes.Order{}, "a")
		session := w.session()
		session.Before(once("Create", func() error {
			session.Reader().Lag()
			return w.Delete(mails.Path + "/" + w.Names(mails.Path)[0])
		}))
		k := w.take(session)
		session.Reader().KeepUp()
		w.takersAre("waiting", k)
		k.quit()
		if got := w.left(); got != "0 0 0" {
			t.Errorf("left behind: %s", got)
		}
	})
}

// What a delivery guards is written only while nobody else can have the item.
func TestADeliveryGuardsWritesUntilTheItemIsGivenBack(t *testing.T) {
	inBubble(t, func(w world) {
		w.putItem(recipes.Order{}, "a")
		first := w.take(w.session())
		guard := first.delivery.Guard()
		write := func() error {
			_, err := recipes.Guarded(w.NewReader(), []recipes.Guard{guard}).Commit(w.living, recipes.CreateNumbered("/written", nil))
			return err
		}
		w.must(write())
		first.quit()
		second := w.take(w.session())
		w.takersAre("[a]", second)
		if err := write(); !errors.Is(err, recipes.ErrGuardLost) {
			t.Errorf("written with %v while another has the item", err)
		}
		if !strings.HasPrefix(guard.Path, mails.Path+recipes.TakenSuffix) {
			t.Errorf("the place is %s", guard.Path)
		}
	})
}
