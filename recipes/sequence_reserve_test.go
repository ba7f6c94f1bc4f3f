package recipes_test

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/support/standin"
)

// relaxed issues numbers and fetches ahead when that is asked for, as services do, but in turn.
func (w world) relaxed(issuer *recipes.Issuer, count int64) (recipes.Numbers, error) {
	numbers, low, err := issuer.NextRelaxed(w.Context(), count)
	if low {
		_ = issuer.Refill(w.Context())
	}
	return numbers, err
}

func TestNumbersFromAReserveTakeNoRequest(t *testing.T) {
	inBubble(t, func(w world) {
		reader, _ := w.made(1)
		issuer := recipes.NewIssuer(invoices, reader)
		seen := map[int64]bool{}
		before := writes(reader) + reads(reader)
		for range 1000 { // in no time at all, so that the blocks grow
			numbers, err := w.relaxed(issuer, 10)
			if err != nil || numbers.Last-numbers.First != 9 {
				t.Fatalf("%+v, %v", numbers, err)
			}
			for n := numbers.First; n <= numbers.Last; n++ {
				if n < 1 || seen[n] {
					t.Fatalf("%d is handed out twice", n)
				}
				seen[n] = true
			}
		}
		if n := writes(reader) + reads(reader) - before; n > 40 {
			t.Errorf("%d requests for 10,000 numbers", n)
		}
		if w.stored() > 50000 {
			t.Errorf("%d reserved for 10,000", w.stored())
		}
	})
}

func TestABlockIsAboutWhatIsUsedInASecond(t *testing.T) {
	for _, test := range []struct {
		every     time.Duration
		low, high int64 // requests in ten minutes
	}{
		{time.Millisecond, 250, 1500},
		{100 * time.Millisecond, 100, 700},
		{20 * time.Second, 2, 60},
	} {
		inBubble(t, func(w world) {
			reader, _ := w.made(1)
			issuer := recipes.NewIssuer(invoices, reader)
			for end := time.Now().Add(10 * time.Minute); time.Now().Before(end); time.Sleep(test.every) {
				if _, err := w.relaxed(issuer, 1); err != nil {
					t.Fatal(err)
				}
			}
			if n := int64(writes(reader)); n < test.low || n > test.high {
				t.Errorf("one every %v: %d writes", test.every, n)
			}
			used := int64(10 * time.Minute / test.every)
			if ahead := w.stored() - used; ahead > max(40, int64(4*time.Second/test.every)) {
				t.Errorf("one every %v: %d reserved ahead", test.every, ahead)
			}
		})
	}
}

func TestABlockIsDroppedWhenItsIncarnationIsGone(t *testing.T) {
	inBubble(t, func(w world) {
		reader, _ := w.made(1)
		issuer := recipes.NewIssuer(invoices, reader)
		old, err := w.relaxed(issuer, 1)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.remake(); err != nil {
			t.Fatal(err)
		}
		numbers, err := w.relaxed(issuer, 1)
		if told(numbers, err) != "1-1" || numbers.Incarnation <= old.Incarnation {
			t.Errorf("%+v after %+v, %v", numbers, old, err)
		}
		if err := invoices.Delete(w.Context(), reader); err != nil {
			t.Fatal(err)
		}
		if _, err := w.relaxed(issuer, 1); !errors.Is(err, recipes.ErrNoSequence) {
			t.Errorf("deleted: %v", err)
		}
	})
}

func TestABlockOutlivesAWatchThatOnlySeemedToFire(t *testing.T) {
	inBubble(t, func(w world) {
		reader, _ := w.made(1)
		issuer := recipes.NewIssuer(invoices, reader)
		if _, err := w.relaxed(issuer, 1); err != nil {
			t.Fatal(err)
		}
		before := writes(reader)
		guard := invoices.Path + "/" + w.Names(invoices.Path)[0]
		if err := w.Set(guard, []byte("touched")); err != nil {
			t.Fatal(err)
		}
		if numbers, err := w.relaxed(issuer, 1); told(numbers, err) != "2-2" || writes(reader) != before {
			t.Errorf("%+v, %v", numbers, err)
		}
	})
}

func TestBlocksGoOnWhenTheSequenceIsAdvanced(t *testing.T) {
	inBubble(t, func(w world) {
		reader, _ := w.made(1)
		issuer := recipes.NewIssuer(invoices, reader)
		_, _ = w.relaxed(issuer, 1)
		if _, err := invoices.AdvanceTo(w.Context(), reader, 5000); err != nil {
			t.Fatal(err)
		}
		if numbers, err := w.relaxed(issuer, 1); told(numbers, err) != "2-2" {
			t.Errorf("%+v, %v", numbers, err)
		}
		if numbers, err := w.relaxed(issuer, 1000); err != nil || numbers.First < 5001 || numbers.Last-numbers.First != 999 {
			t.Errorf("more than is left: %+v, %v", numbers, err)
		}
	})
}

func TestTheLastNumbersAreNotReservedButHandedOut(t *testing.T) {
	inBubble(t, func(w world) {
		reader, _ := w.made(math.MaxInt64 - 2)
		issuer := recipes.NewIssuer(invoices, reader)
		for n := int64(math.MaxInt64 - 2); n > 0; n++ {
			if numbers, err := w.relaxed(issuer, 1); err != nil || numbers.First != n {
				t.Fatalf("%+v, %v; want %d", numbers, err, n)
			}
		}
		if _, err := w.relaxed(issuer, 1); !errors.Is(err, recipes.ErrExhausted) {
			t.Error(err)
		}
	})
}

func TestAReserveLastsWhileTheEnsembleIsAway(t *testing.T) {
	inBubble(t, func(w world) {
		reader, _ := w.made(1)
		issuer := recipes.NewIssuer(invoices, reader)
		for range 100 {
			_, _ = w.relaxed(issuer, 1)
		}
		reader.Before(func(standin.Operation) error { return recipes.ErrUnreachable })
		served := 0
		for ; served < 1000; served++ {
			if _, err := w.relaxed(issuer, 1); err != nil {
				break
			}
		}
		if served < 20 || served == 1000 {
			t.Errorf("%d served", served)
		}
		if _, err := w.relaxed(issuer, 1); !errors.Is(err, recipes.ErrUnreachable) {
			t.Error(err)
		}
		reader.Before(nil)
		if _, err := w.relaxed(issuer, 1); err != nil {
			t.Errorf("afterwards: %v", err)
		}
	})
}
