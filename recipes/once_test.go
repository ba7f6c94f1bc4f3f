package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/support/standin"
)

var nightly = recipes.Once{Path: "/once/nightly", Clock: "/once/=clock", LockOf: func(key string, perKey bool) recipes.Lock {
	if perKey {
		return recipes.Lock{Path: "/locks/nightly%2F" + key}
	}
	return recipes.Lock{Path: "/locks/nightly"}
}}

const keep = time.Hour

var tonight = recipes.Work{Key: "tonight", Keep: keep, RepeatLost: true, RepeatFailed: true, Most: 3, About: recipes.About{Owner: "ann"}}

// An attempt is a holder of the lock, and what it was told.
type attempt struct {
	*contender
	reader *standin.Reader // of its sidecar, which writes the records
	world  world
	work   recipes.Work
	record recipes.Record
}

// holds has a caller hold the lock of the work.
func (w world) holds(work recipes.Work) *attempt {
	w.Helper()
	c := w.joinWith(w.session(), nightly.LockOf(work.Key, work.PerKey), recipes.Exclusive)
	w.expect("holding", c)
	return &attempt{contender: c, reader: w.NewReader(), world: w, work: work}
}

// begins asks for the work, and returns what the caller is told.
func (a *attempt) begins() string {
	record, err := nightly.Begin(a.world.living, a.reader, a.hold, a.work)
	if err != nil {
		return word(err)
	}
	a.record = record
	told := fmt.Sprintf("begun %d", record.Attempt)
	if before := record.Previous; before != nil {
		told += fmt.Sprintf(" after %s %d by %s", before.Outcome, before.Attempt, before.Owner)
	}
	return told
}

func (a *attempt) finishes(outcome recipes.Outcome) string {
	return word(nightly.Finish(a.world.living, a.reader, a.record, a.hold, outcome, "a note"))
}

// finishesUnder finishes an attempt whose hold is over.
func (a *attempt) finishesUnder(other *attempt, outcome recipes.Outcome) string {
	return word(nightly.FinishLost(a.world.living, other.reader, a.record, other.hold, outcome, "late"))
}

// word is a word for what a caller is told of an error.
func word(err error) string {
	for text, kind := range map[string]error{
		"done": recipes.ErrDone, "not repeated": recipes.ErrNotRepeated, "superseded": recipes.ErrSuperseded, "none": recipes.ErrNoRecord,
		"another lock": recipes.ErrOtherLock, "stands": recipes.ErrStands, "too many": recipes.ErrTooManyKeys,
		"malformed": recipes.ErrMalformedRecord, "unknown": recipes.ErrOutcomeUnknown, "guard lost": recipes.ErrGuardLost, "held": recipes.ErrHeld,
	} {
		if errors.Is(err, kind) {
			return text
		}
	}
	if err == nil {
		return "ok"
	}
	return ending(err)
}

func (w world) told(what, got, want string) {
	w.Helper()
	if got != want {
		w.Errorf("%s: told %q, want %q", what, got, want)
	}
}

// shown is a record in words.
func (w world) shown(key string) string {
	record, err := nightly.Get(w.living, w.NewReader(), key)
	if err != nil {
		return word(err)
	}
	text := fmt.Sprintf("%s %d %s %s", record.Outcome, record.Attempt, record.Owner, record.Note)
	if record.Lost {
		text = "LOST " + text
	}
	return text
}

func TestWorkThatHasSucceededIsNotBegunAgain(t *testing.T) {
	inBubble(t, func(w world) {
		w.told("before", w.shown("tonight"), "none")
		first := w.holds(tonight)
		w.told("first", first.begins(), "begun 1")
		w.told("asked again", first.begins(), "begun 1")
		w.told("while it runs", w.shown("tonight"), "BEGUN 1 ann ")
		w.told("finish", first.finishes(recipes.Succeeded), "ok")
		w.expect("gone", first.contender)
		w.told("record", w.shown("tonight"), "SUCCEEDED 1 ann a note")
		w.told("before the queue", word(nightly.Done(w.living, w.NewReader(), "tonight")), "done")
		w.told("behind it", w.holds(tonight).begins(), "done")
	})
}

func TestAnAttemptThatDidNotSucceedIsRepeatedAsFarAsThatIsWanted(t *testing.T) {
	inBubble(t, func(w world) {
		skips := tonight
		skips.RepeatLost, skips.RepeatFailed = false, false
		first := w.holds(tonight)
		w.told("first", first.begins(), "begun 1")
		first.session.Expire()
		w.told("lost", w.shown("tonight"), "LOST BEGUN 1 ann ")
		skipping := w.holds(skips)
		w.told("skips what was lost", skipping.begins(), "not repeated")
		skipping.quit()
		second := w.holds(tonight)
		w.told("second", second.begins(), "begun 2 after BEGUN 1 by ann")
		w.told("told again", second.begins(), "begun 2 after BEGUN 1 by ann")
		w.told("fails", second.finishes(recipes.Failed), "ok")
		skipping = w.holds(skips)
		w.told("skips what has failed", skipping.begins(), "not repeated")
		skipping.quit()
		third := w.holds(tonight)
		w.told("third", third.begins(), "begun 3 after FAILED 2 by ann")
		third.quit()
		w.told("after the last", w.holds(tonight).begins(), "not repeated")
	})
}

func TestARecordIsWrittenOnceWhateverBecomesOfTheReplies(t *testing.T) {
	for name, fault := range map[string]func(*standin.Reader){
		"the write was carried out": func(r *standin.Reader) { r.After(oneLost()) },
		"the write was not":         func(r *standin.Reader) { r.Before(oneLost()) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(w world) {
				first := w.holds(tonight)
				fault(first.reader)
				w.told("first", first.begins(), "begun 1")
				fault(first.reader)
				w.told("finish", first.finishes(recipes.Succeeded), "unknown")
				is, err := nightly.IsFinished(w.living, first.reader, first.record, recipes.Succeeded)
				if err != nil || is != (w.shown("tonight") == "SUCCEEDED 1 ann a note") {
					t.Errorf("finished: %v, %v; the record is %s", is, err, w.shown("tonight"))
				}
			})
		})
	}
}

// oneLost has the reply of one write lost, or the write itself.
func oneLost() standin.Hook {
	lost := false
	return func(of standin.Operation) error {
		if lost || of.Name != "Commit" {
			return nil
		}
		lost = true
		return recipes.ErrOutcomeUnknown
	}
}

// The record is made anew meanwhile, with the version that the late write expects.
func TestAWriteThatComesLateChangesNothing(t *testing.T) {
	lost := func(a *attempt) recipes.Record {
		a.begins()
		return a.record
	}
	for name, write := range map[string]func(a *attempt, of recipes.Record, late recipes.Store) error{
		"begin": func(a *attempt, _ recipes.Record, late recipes.Store) error {
			_, err := nightly.Begin(a.world.living, late, a.hold, a.work)
			return err
		},
		"finish": func(a *attempt, of recipes.Record, late recipes.Store) error {
			return nightly.FinishLost(a.world.living, late, of, a.hold, recipes.Succeeded, "")
		},
		"forget": func(a *attempt, of recipes.Record, late recipes.Store) error {
			return nightly.Forget(a.world.living, late, of, a.hold)
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(w world) {
				before := w.holds(tonight)
				of := lost(before)
				before.session.Expire()
				first, late, arrives := w.holds(tonight), w.NewReader(), make(chan struct{})
				late.Before(func(of standin.Operation) error {
					if of.Name == "Commit" {
						<-arrives
					}
					return nil
				})
				answer := make(chan error, 1)
				go func() { answer <- write(first, of, late) }()
				synctest.Wait()
				first.session.Expire()
				second := w.holds(tonight)
				w.told("forget", word(nightly.Forget(w.living, second.reader, of, second.hold)), "ok")
				w.told("second", second.begins(), "begun 1")
				close(arrives)
				w.told("late", word(<-answer), "gone")
				w.told("record", w.shown("tonight"), "BEGUN 1 ann ")
				w.told("finish", second.finishes(recipes.Succeeded), "ok")
			})
		})
	}
}

func TestAnAttemptWhoseHoldWasLostIsFinishedUnlessAnotherHasBegun(t *testing.T) {
	inBubble(t, func(w world) {
		first := w.holds(tonight)
		first.begins()
		first.session.Expire()
		w.told("finish without the hold", first.finishes(recipes.Succeeded), "guard lost")
		other := w.holds(tonight)
		w.told("finish under another", first.finishesUnder(other, recipes.Succeeded), "ok")
		w.told("again", first.finishesUnder(other, recipes.Succeeded), "ok")
		w.told("otherwise", first.finishesUnder(other, recipes.Failed), "done")
		w.told("record", w.shown("tonight"), "SUCCEEDED 1 ann late")
		other.quit()

		tomorrow := tonight
		tomorrow.Key = "tomorrow"
		first = w.holds(tomorrow)
		first.begins()
		first.session.Expire()
		second := w.holds(tomorrow)
		w.told("second", second.begins(), "begun 2 after BEGUN 1 by ann")
		w.told("finish of the first", first.finishesUnder(second, recipes.Succeeded), "superseded")
		w.told("forget", word(nightly.Forget(w.living, second.session, second.record, second.hold)), "ok")
		w.told("forget again", word(nightly.Forget(w.living, second.session, second.record, second.hold)), "none")
		w.told("finish of what is forgotten", second.finishesUnder(second, recipes.Failed), "superseded")
	})
}

func TestAKeyIsGuardedByOneLock(t *testing.T) {
	inBubble(t, func(w world) {
		perKey := tonight
		perKey.PerKey = true
		first := w.holds(tonight)
		first.begins()
		other := w.holds(perKey)
		w.told("while it runs", other.begins(), "another lock")
		w.told("forget", word(nightly.Forget(w.living, first.session, recipes.Record{Key: "tonight"}, first.hold)), "ok")
		w.told("per key", other.begins(), "begun 1")
	})
}

// skewed is a store over an ensemble whose clock is off.
type skewed struct {
	recipes.Store
	read, written time.Duration
}

func (s skewed) Get(ctx context.Context, path string) (recipes.Node, error) {
	node, err := s.Store.Get(ctx, path)
	node.Modified = node.Modified.Add(s.read)
	return node, err
}

func (s skewed) Commit(ctx context.Context, changes ...recipes.Change) ([]recipes.Node, error) {
	nodes, err := s.Store.Commit(ctx, changes...)
	for i := range nodes {
		nodes[i].Modified = nodes[i].Modified.Add(s.written)
	}
	return nodes, err
}

func TestARecordIsKeptUntilBothClocksSayThatItsTimeIsOver(t *testing.T) {
	const year = 365 * 24 * time.Hour
	inBubble(t, func(w world) {
		first := w.holds(tonight)
		first.begins()
		first.finishes(recipes.Succeeded)
		done := func(store recipes.Store) string { return word(nightly.Done(w.living, store, "tonight")) }
		w.told("the ensemble is ahead", done(skewed{w.NewReader(), 0, year}), "done")
		w.told("the machine is ahead", done(skewed{w.NewReader(), -year, -year}), "done")
		w.told("the ensemble was late at Finish", done(skewed{w.NewReader(), -year, 0}), "done")
		time.Sleep(keep)
		w.told("within the tolerance", done(w.NewReader()), "done")
		time.Sleep(6 * time.Second)
		w.told("afterwards", done(w.NewReader()), "ok")
		w.told("anew", w.holds(tonight).begins(), "begun 1")
	})
}

// The attempt is finished after its record was read, and before its place is looked for.
func TestAnAttemptThatIsFinishedMeanwhileIsNotLost(t *testing.T) {
	inBubble(t, func(w world) {
		first := w.holds(tonight)
		first.begins()
		reader, finished := w.NewReader(), false
		reader.Before(func(of standin.Operation) error {
			if of.Name == "Get" && strings.HasPrefix(of.Path, "/locks/") && !finished {
				finished = true
				w.told("finish", first.finishes(recipes.Succeeded), "ok")
				synctest.Wait()
			}
			return nil
		})
		record, err := nightly.Get(w.living, reader, "tonight")
		if err != nil || record.Lost || record.Outcome != recipes.Succeeded || !finished {
			t.Errorf("lost: %v, %s, %v", record.Lost, record.Outcome, err)
		}
	})
}

func TestFinishNeedsNoRoom(t *testing.T) {
	inBubble(t, func(w world) {
		first := w.holds(tonight)
		first.begins()
		before, _ := w.Read(nightly.Path + "/tonight")
		first.finishes(recipes.Succeeded)
		after, _ := w.Read(nightly.Path + "/tonight")
		if len(before.Data) != len(after.Data) {
			t.Errorf("%d bytes, and %d when it is finished", len(before.Data), len(after.Data))
		}
	})
}

func TestALockIsHeldForAsLongAsSomethingRuns(t *testing.T) {
	inBubble(t, func(w world) {
		first := w.holds(tonight)
		do := func(late <-chan struct{}) string {
			session := w.session()
			return word(nightly.LockOf("", false).Do(w.living, session, session, recipes.About{}, late, func(*recipes.Hold) error { return nil }))
		}
		w.told("held", do(nil), "held")
		w.told("held for longer", do(passed(time.Second)), "held")
		answer := make(chan string, 1)
		go func() { answer <- do(make(chan struct{})) }()
		synctest.Wait()
		first.quit()
		w.told("released", <-answer, "ok")
		w.told("free", do(nil), "ok")
	})
}
