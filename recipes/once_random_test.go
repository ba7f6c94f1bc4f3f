package recipes_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/support/standin"
)

// An office is a random schedule of callers that want the same work done. Their sessions expire. Their readers lag, lose replies and send
// late.
type office struct {
	world
	readers []*standin.Reader

	mu     sync.Mutex
	counts map[*standin.Session]bool // of those that were told `begun` and have not finished
	done   bool                      // a caller was told that SUCCEEDED is recorded
	begun  int
}

func TestOfOneKeyOneCallerAtATimeIsToldBegunAndNoneAfterItHasSucceeded(t *testing.T) {
	begun, done := 0, 0
	for seed := *firstSeed; seed < *firstSeed+*seeds; seed++ {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			inBubble(t, func(w world) {
				o := &office{world: w, counts: map[*standin.Session]bool{}}
				o.run(rand.New(rand.NewPCG(seed, 7)))
				begun += o.begun
				if o.done {
					done++
				}
			})
		})
	}
	if begun < int(*seeds)*3/2 || done < int(*seeds)/4 {
		t.Errorf("begun %d times, and done %d times, in %d schedules", begun, done, *seeds)
	}
	t.Logf("begun %d times, and done %d times", begun, done)
}

func (o *office) run(dice *rand.Rand) {
	for range 3 {
		o.readers = append(o.readers, o.NewReader())
	}
	var workers sync.WaitGroup
	for range 2 + dice.IntN(6) {
		reader, seed := o.readers[dice.IntN(len(o.readers))], dice.Uint64()
		workers.Go(func() { o.work(reader, rand.New(rand.NewPCG(seed, 1))) })
	}
	over := make(chan struct{})
	go o.disturb(rand.New(rand.NewPCG(dice.Uint64(), 2)), over)
	workers.Wait()
	close(over)
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
