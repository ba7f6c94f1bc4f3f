package recipes_test

import (
	"errors"
	"testing"

	"github.com/sidekeeper/sidekeeper/internal/embedded"
	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/support/standin"
)

const hex32 = "f81d4fae7dec11d0a76500a0c91e6bf6"

func TestTheOrderStandsWhenTheCounterEnds(t *testing.T) {
	for _, stuck := range []bool{false, true} {
		inBubbleWith(t, standin.Options{StuckCounters: stuck}, func(w world) {
			w.startAt(1<<31 - 3)
			var contenders []*contender
			for range 7 {
				contenders = append(contenders, w.join(recipes.Exclusive))
			}
			for i, c := range contenders {
				w.expect("holding", c)
				if i < len(contenders)-1 {
					w.expect("waiting", contenders[i+1:][0])
				}
				c.quit()
			}
			w.empty()
		})
	}
}

func TestNumbersThatGoBackAtTheCounterEndGrantNobodyEarly(t *testing.T) {
	inBubble(t, func(w world) {
		w.startAt(1<<31 - 1)
		first, second := w.join(recipes.Exclusive), w.join(recipes.Exclusive)
		first.quit()
		w.startAt(1<<31 - 1) // as ZooKeeper does when its pipeline has run empty
		third := w.join(recipes.Exclusive)
		w.startAt(-1 << 31)
		fourth := w.join(recipes.Exclusive)
		w.expect("holding, waiting, waiting", second, third, fourth)
		second.quit()
		w.expect("holding, waiting", third, fourth)
		third.quit()
		w.expect("holding", fourth)
	})
}

func TestAPlaceFromBeforeTheCounterEndedStaysAhead(t *testing.T) {
	inBubble(t, func(w world) {
		holder, quitter, waiter := w.join(recipes.Exclusive), w.join(recipes.Exclusive), w.join(recipes.Exclusive)
		w.startAt(-1 << 31)
		late := w.join(recipes.Exclusive)
		w.expect("holding, waiting, waiting", holder, waiter, late)
		quitter.quit()
		holder.quit()
		w.expect("holding, waiting", waiter, late)
		waiter.quit()
		w.expect("holding", late)
	})
}

func TestForeignContendersAreWaitedFor(t *testing.T) {
	uuid := "_c_f81d4fae-7dec-11d0-a765-00a0c91e6bf6"
	for _, test := range []struct {
		name string
		mode recipes.Mode
	}{
		{uuid + "-lock-", recipes.Exclusive},
		{"_c_" + hex32 + "-lock-", recipes.Exclusive},
		{hex32 + "__lock__", recipes.Exclusive},
		{hex32 + "-lock-", recipes.Exclusive},
		{uuid + "-__WRIT__", recipes.Read},
		{uuid + "-__WRIT__", recipes.Write},
		{uuid + "-__READ__", recipes.Write},
		{hex32 + "__rlock__", recipes.Write},
		{"x-72057594037927936-", recipes.Exclusive},
		{"lock-72057594037927936-", recipes.Exclusive},
		{"write-", recipes.Read},
		{"write-", recipes.Write},
		{hex32 + "-read-", recipes.Write},
	} {
		inBubble(t, func(w world) {
			path := w.foreign(test.name, embedded.EphemeralSequential, "10.0.0.1")
			c := w.join(test.mode)
			if w.expect("waiting", c); c.looks != 1 {
				w.Errorf("looked %d times", c.looks)
			}
			w.delete(path)
			w.expect("holding", c)
		})
	}
}

func TestForeignChildrenInTheDirectoryAreNotMinded(t *testing.T) {
	inBubble(t, func(w world) {
		for _, name := range []string{"_c_x", "x", "\u202eé", "-lease-0000000000", "_c_", "lock-1", "n_0000000000"} {
			w.foreign(name, embedded.Persistent, "\xff")
		}
		for range 3000 {
			w.foreign("stranger-", embedded.PersistentSequential, "")
		}
		first, second := w.join(recipes.Exclusive), w.join(recipes.Exclusive)
		w.expect("holding, waiting", first, second)
		view, err := orders.View(w.Context(), first.session)
		if err != nil || len(view.Holders) != 1 || len(view.Waiters) != 1 || view.ForeignChildren != 3007 {
			w.Errorf("%d foreignChildren, %v", view.ForeignChildren, err)
		}
		first.quit()
		w.expect("holding", second)
	})
}

func TestInANestedLayoutADirectoryOfOtherThingsIsNoLock(t *testing.T) {
	inBubble(t, func(w world) {
		nested := recipes.Lock{Path: orders.Path, Nested: true}
		w.joinWith(w.session(), recipes.Lock{Path: orders.Path + "/eu", Nested: true}, recipes.Exclusive)
		c := w.joinWith(w.session(), nested, recipes.Exclusive)
		w.expect("directory", c)
		if _, err := nested.View(w.Context(), w.NewReader()); !errors.Is(err, recipes.ErrDirectory) {
			w.Errorf("view: %v", err)
		}
		if names := w.Names(orders.Path); len(names) != 1 {
			w.Errorf("left behind: %q", names)
		}
	})
}

func TestOnlyWhoStandsBehindTheOtherKindIsRefused(t *testing.T) {
	for _, test := range []struct{ first, second recipes.Mode }{
		{recipes.Exclusive, recipes.Read},
		{recipes.Exclusive, recipes.Write},
		{recipes.Read, recipes.Exclusive},
		{recipes.Write, recipes.Exclusive},
	} {
		inBubble(t, func(w world) {
			first, second := w.join(test.first), w.join(test.second)
			w.expect("holding, mismatch", first, second)
			first.quit()
			w.empty()
		})
	}
}

func TestOfTwoKindsThatComeTogetherExactlyOneIsRefused(t *testing.T) {
	inBubble(t, func(w world) {
		first, second := w.session(), w.session()
		mutex, err := orders.Join(w.living, first, recipes.Exclusive, recipes.About{})
		if err != nil {
			w.Fatal(err)
		}
		reader, err := orders.Join(w.living, second, recipes.Read, recipes.About{})
		if err != nil {
			w.Fatal(err)
		}
		_, refused := reader.Look(w.Context())
		turn, err := mutex.Look(w.Context())
		if !errors.Is(refused, recipes.ErrKindMismatch) || err != nil || !turn.First {
			w.Errorf("the reader got %v, the mutex %+v, %v", refused, turn, err)
		}
	})
}

func TestACuratorWriterThatBecomesAReaderIsStillAhead(t *testing.T) {
	inBubble(t, func(w world) {
		uuid := "_c_f81d4fae-7dec-11d0-a765-00a0c91e6bf6"
		writer := w.foreign(uuid+"-__WRIT__", embedded.EphemeralSequential, "")
		behindWriter := w.join(recipes.Write)
		reader := w.foreign("_c_a"+uuid[4:]+"-__READ__"+writer[len(writer)-10:], embedded.Ephemeral, "")
		w.delete(writer)
		w.expect("waiting", behindWriter)
		w.delete(reader)
		w.expect("holding", behindWriter)
	})
}
