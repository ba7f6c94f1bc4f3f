package recipes_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/support/standin"
)

// An issue is one call's numbers, with when it was asked for and answered.
type issue struct {
	asked, answered time.Time
	numbers         recipes.Numbers
}

// A ledger is what was handed out.
type ledger struct {
	mu     sync.Mutex
	issues []issue
}

func (l *ledger) add(i issue) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.issues = append(l.issues, i)
}

// twice is the first number that was handed out more than once.
func (l *ledger) twice() (int64, bool) {
	sorted := slices.Clone(l.issues)
	slices.SortFunc(sorted, func(a, b issue) int { return int(a.numbers.First - b.numbers.First) })
	for i := 1; i < len(sorted); i++ {
		if sorted[i].numbers.First <= sorted[i-1].numbers.Last {
			return sorted[i].numbers.First, true
		}
	}
	return 0, false
}

// backwards finds numbers that are smaller than some that had been returned before they were asked for.
func (l *ledger) backwards() (earlier, later issue, found bool) {
	asked, answered := slices.Clone(l.issues), slices.Clone(l.issues)
	slices.SortFunc(asked, func(a, b issue) int { return a.asked.Compare(b.asked) })
	slices.SortFunc(answered, func(a, b issue) int { return a.answered.Compare(b.answered) })
	largest, next := issue{}, 0
	for _, i := range asked {
		for ; next < len(answered) && answered[next].answered.Before(i.asked); next++ {
			if answered[next].numbers.Last > largest.numbers.Last {
				largest = answered[next]
			}
		}
		if i.numbers.First <= largest.numbers.Last && largest.numbers.Last != 0 {
			return largest, i, true
		}
	}
	return issue{}, issue{}, false
}

// rivals are sidecars that want the same sequence, each with so many callers, for three seconds.
func (w world) rivals(callers []int, disturb func(*standin.Reader, *rand.Rand)) (ledgers []*ledger, longest []time.Duration) {
	ctx, cancel := context.WithTimeout(w.living, 3*time.Second)
	defer cancel()
	var group sync.WaitGroup
	longest = make([]time.Duration, len(callers))
	for n, count := range callers {
		reader, own := w.NewReader(), &ledger{}
		ledgers = append(ledgers, own)
		issuer := recipes.NewIssuer(invoices, reader)
		disturb(reader, rand.New(rand.NewPCG(uint64(n), 1)))
		for caller := range count {
			dice := rand.New(rand.NewPCG(uint64(n), uint64(caller)))
			group.Go(func() {
				for ctx.Err() == nil {
					asked := time.Now()
					numbers, err := issuer.Next(ctx, 1+dice.Int64N(3))
					if err == nil {
						own.add(issue{asked: asked, answered: time.Now(), numbers: numbers})
						own.mu.Lock()
						longest[n] = max(longest[n], time.Since(asked))
						own.mu.Unlock()
					} else if !errors.Is(err, context.DeadlineExceeded) {
						w.Errorf("%v", err)
						return
					}
					pass(ctx, time.Duration(dice.Int64N(int64(200*time.Microsecond))))
				}
			})
		}
	}
	group.Wait()
	return ledgers, longest
}

func pass(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// distant puts a way of about 300 µs between a sidecar and the ensemble, in each direction.
func distant(reader *standin.Reader, dice *rand.Rand) {
	var mu sync.Mutex
	way := func(standin.Operation) error {
		mu.Lock()
		d := 250*time.Microsecond + time.Duration(dice.Int64N(int64(100*time.Microsecond)))
		mu.Unlock()
		time.Sleep(d)
		return nil
	}
	reader.Before(way)
	reader.After(way)
}

// Of two alone, one may lose by chance a few dozen times in a row: 57 ms in a hundred runs.
func TestNoSidecarIsStarvedByOthers(t *testing.T) {
	for _, test := range []struct {
		callers []int
		within  time.Duration
	}{
		{[]int{16, 16, 16, 16}, 100 * time.Millisecond},
		{[]int{64, 1, 1, 1}, 100 * time.Millisecond},
		{[]int{1, 1}, 150 * time.Millisecond},
		{[]int{1, 1, 1, 1, 1, 1, 1, 1}, 200 * time.Millisecond},
	} {
		callers := test.callers
		inBubble(t, func(w world) {
			w.made(1)
			ledgers, longest := w.rivals(callers, distant)
			for n, own := range ledgers {
				t.Logf("%d of %v: %d calls, longest %v", n, callers, len(own.issues), longest[n])
				if perCaller := len(own.issues) / callers[n]; perCaller < 800/len(callers) {
					t.Errorf("%d of %v: %d calls each", n, callers, perCaller)
				}
				if longest[n] > test.within {
					t.Errorf("%d of %v: somebody waited %v", n, callers, longest[n])
				}
			}
		})
	}
}

func TestNumbersAreUniqueAndInOrderWhateverIsLost(t *testing.T) {
	inBubble(t, func(w world) {
		w.made(1)
		ledgers, _ := w.rivals([]int{4, 4, 1, 1}, func(reader *standin.Reader, dice *rand.Rand) {
			distant(reader, rand.New(rand.NewPCG(dice.Uint64(), 1)))
			var mu sync.Mutex
			reader.After(func(o standin.Operation) error {
				mu.Lock()
				lost := dice.IntN(20) == 0
				d := time.Duration(dice.Int64N(int64(500 * time.Microsecond)))
				mu.Unlock()
				time.Sleep(d)
				if lost && o.Name == "Commit" {
					return recipes.ErrOutcomeUnknown
				}
				return nil
			})
		})
		all := &ledger{}
		for _, own := range ledgers {
			all.issues = append(all.issues, own.issues...)
		}
		t.Logf("%d calls", len(all.issues))
		if number, found := all.twice(); found {
			t.Errorf("%d was handed out twice", number)
		}
		if earlier, later, found := all.backwards(); found {
			t.Errorf("%+v came after %+v", later, earlier)
		}
		if len(all.issues) < 2000 {
			t.Errorf("only %d calls", len(all.issues))
		}
	})
}
