package recipes_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/support/standin"
)

// An office is a random schedule of callers that want the same work done. Their sessions expire. Their readers lag, lose replies and send
// late. Sweepers remove records whose time is over.
type office struct {
	world
	readers []*standin.Reader

	mu     sync.Mutex
	counts map[*standin.Session]bool // of those that were told `begun` and have not finished
	done   bool                      // a caller was told that SUCCEEDED is recorded
	begun  int
	swept  int // records
}

func TestOfOneKeyOneCallerAtATimeIsToldBegunAndNoneAfterItHasSucceeded(t *testing.T) {
	begun, done, swept := 0, 0, 0
	for seed := *firstSeed; seed < *firstSeed+*seeds; seed++ {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			inBubble(t, func(w world) {
				o := &office{world: w, counts: map[*standin.Session]bool{}}
				o.run(rand.New(rand.NewPCG(seed, 7)))
				begun, swept = begun+o.begun, swept+o.swept
				if o.done {
					done++
				}
			})
		})
	}
	if begun < int(*seeds)*3/2 || done < int(*seeds)/4 || swept < int(*seeds)/8 {
		t.Errorf("begun %d times, done %d times and swept %d times in %d schedules", begun, done, swept, *seeds)
	}
	t.Logf("begun %d times, done %d times and swept %d times", begun, done, swept)
}

func (o *office) run(dice *rand.Rand) {
	for range 3 {
		o.readers = append(o.readers, o.NewReader())
	}
	o.leavesAnOldRecord()
	sweeping, stop := context.WithCancel(o.living)
	var workers, sweepers sync.WaitGroup
	for range 2 {
		reader, seed := o.readers[dice.IntN(len(o.readers))], dice.Uint64()
		sweepers.Go(func() { o.sweep(sweeping, reader, rand.New(rand.NewPCG(seed, 3))) })
	}
	for range 2 + dice.IntN(6) {
		reader, seed := o.readers[dice.IntN(len(o.readers))], dice.Uint64()
		workers.Go(func() { o.work(reader, rand.New(rand.NewPCG(seed, 1))) })
	}
	over := make(chan struct{})
	go o.disturb(rand.New(rand.NewPCG(dice.Uint64(), 2)), over)
	workers.Wait()
	stop()
	sweepers.Wait()
	close(over)
}

// leavesAnOldRecord has the schedule begin with a record whose time is over.
func (o *office) leavesAnOldRecord() {
	old := o.holds(tonight)
	old.begins()
	old.finishes(recipes.Succeeded)
	time.Sleep(keep + time.Minute)
}

// sweep removes records whose time is over, under a lock of its own, until ctx ends.
func (o *office) sweep(ctx context.Context, reader *standin.Reader, dice *rand.Rand) {
	session := reader.OpenSession(time.Hour)
	defer session.Close(o.living)
	elsewhere := nightly.LockOf(fmt.Sprint("sweeper-", dice.Uint64()), true)
	_ = elsewhere.Do(o.living, session, reader, recipes.About{}, nil, func(hold *recipes.Hold) error {
		for ctx.Err() == nil {
			removed, _ := nightly.Sweep(o.living, reader, hold, recipes.About{})
			o.mu.Lock()
			o.swept += removed
			o.mu.Unlock()
			time.Sleep(upTo(dice, 100*time.Millisecond))
		}
		return nil
	})
}

// disturb loses writes and replies, has writes wait on their way, and has readers lag.
func (o *office) disturb(dice *rand.Rand, over <-chan struct{}) {
	var mu sync.Mutex
	throw := func(sides int) int {
		mu.Lock()
		defer mu.Unlock()
		return dice.IntN(sides)
	}
	for _, reader := range o.readers {
		reader.Before(func(of standin.Operation) error {
			if of.Name == "Commit" && throw(4) == 0 {
				time.Sleep(300 * time.Millisecond)
			}
			if of.Name == "Commit" && throw(8) == 0 {
				return recipes.ErrOutcomeUnknown
			}
			return nil
		})
		reader.After(func(of standin.Operation) error {
			if of.Name == "Commit" && throw(6) == 0 {
				return recipes.ErrOutcomeUnknown
			}
			return nil
		})
	}
	for lagging := false; ; lagging = !lagging {
		select {
		case <-over:
			return
		case <-time.After(200 * time.Millisecond):
		}
		if of := o.readers[throw(len(o.readers))]; lagging {
			of.KeepUp()
		} else {
			of.Lag()
		}
	}
}

func (o *office) work(reader *standin.Reader, dice *rand.Rand) {
	for range 1 + dice.IntN(4) {
		time.Sleep(upTo(dice, 200*time.Millisecond))
		session := reader.OpenSession(10 * time.Second)
		doomed := dice.IntN(3) == 0
		if doomed {
			time.AfterFunc(upTo(dice, 800*time.Millisecond), session.Expire)
		}
		lost, outcome := recipes.Record{}, []recipes.Outcome{recipes.Failed, recipes.Failed, recipes.Succeeded}[dice.IntN(3)]
		work := tonight
		work.Most = 1000
		_ = nightly.LockOf("", false).Do(o.living, session, reader, recipes.About{}, passed(2*time.Second), func(hold *recipes.Hold) error {
			of, err := nightly.Begin(o.living, reader, hold, work)
			if err != nil || !o.enter(session) {
				return err
			}
			time.Sleep(upTo(dice, 400*time.Millisecond))
			o.leave(session)
			if dice.IntN(4) > 0 {
				lost = of
				o.note(outcome, nightly.Finish(o.living, reader, of, hold, outcome, ""))
			}
			return nil
		})
		session.Close(o.living)
		if lost.Key != "" {
			o.finishLost(reader, lost, outcome)
		}
	}
}

func (o *office) finishLost(reader *standin.Reader, of recipes.Record, outcome recipes.Outcome) {
	session := reader.OpenSession(10 * time.Second)
	defer session.Close(o.living)
	_ = nightly.LockOf("", false).Do(o.living, session, reader, recipes.About{}, passed(time.Second), func(hold *recipes.Hold) error {
		err := nightly.FinishLost(o.living, reader, of, hold, outcome, "")
		o.note(outcome, err)
		return err
	})
}

// enter notes that a caller is told `begun`, and says whether it counts.
func (o *office) enter(session *standin.Session) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if session.ValidFor() == 0 {
		return false
	}
	o.begun++
	if o.done {
		o.Error("begun after SUCCEEDED was recorded")
	}
	for other := range o.counts {
		if other.ValidFor() > 0 {
			o.Error("begun twice at a time")
		}
	}
	o.counts[session] = true
	return true
}

func (o *office) leave(session *standin.Session) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.counts, session)
}

func (o *office) note(outcome recipes.Outcome, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.done = o.done || err == nil && outcome == recipes.Succeeded
}
