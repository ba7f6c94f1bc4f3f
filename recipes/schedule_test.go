package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/cron"
	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/support/standin"
)

// report is a schedule; a bubble's clock begins at midnight of 1 January 2000, UTC.
var report = recipes.Schedule{
	Path: "/schedules/report", Clock: "/schedules/=clock", Removals: "/schedules/=removals", Tolerance: 2 * time.Hour,
	Line: func(text, zone string) (func(time.Time) time.Time, error) {
		line, err := cron.Parse(text, zone)
		return line.Next, err
	},
}

var (
	reportLock = recipes.Lock{Path: "/locks/report"}
	hourly     = recipes.Rule{Line: "0 * * * *", Zone: "UTC", StartWithin: 5 * time.Minute}
)

// puts makes the schedule or changes its rule.
func (w world) puts(rule recipes.Rule) string {
	w.Helper()
	_, err := report.Put(w.living, w.NewReader(), func(*recipes.Rule) (recipes.Rule, error) { return rule, nil })
	return wordOf(err)
}

func wordOf(err error) string {
	if errors.Is(err, recipes.ErrMalformedRecord) { // whatever is wrong with it
		return word(err)
	}
	for text, kind := range map[string]error{
		"none": recipes.ErrNoSchedule, "clocks": recipes.ErrClocksDisagree, "too many runs": recipes.ErrTooManyRuns, "line": cron.ErrLine,
	} {
		if errors.Is(err, kind) {
			return text
		}
	}
	return word(err)
}

// A shift is a holder of the schedule's lock, and what it was told.
type shift struct {
	*contender
	store recipes.Store // of its sidecar
	world world
	about recipes.About
	fire  *recipes.Fire
	pause time.Duration
	noted []recipes.Fire
}

// worker has a caller hold the lock of the schedule.
func (w world) worker() *shift {
	w.Helper()
	c := w.joinWith(w.session(), reportLock, recipes.Exclusive)
	w.expect("holding", c)
	return &shift{contender: c, store: w.NewReader(), world: w, about: recipes.About{Owner: "ann"}}
}

const clockForm = "02T15:04"

// begins asks for what is due, and says what the worker is told.
func (s *shift) begins() string {
	due, err := report.Begin(s.world.living, s.store, recipes.Worker{Hold: s.hold, About: s.about})
	s.fire, s.pause, s.noted = due.Begun, due.Pause, due.Noted
	switch {
	case err != nil:
		return wordOf(err)
	case s.fire != nil && s.fire.Run != "":
		return fmt.Sprintf("run %s %d", s.fire.Run, s.fire.Attempt)
	case s.fire != nil:
		return fmt.Sprintf("%s %d", s.fire.Tick.Format(clockForm), s.fire.Attempt)
	}
	return "not yet"
}

func (s *shift) finishes(outcome recipes.Outcome) string {
	ended, err := report.Finish(s.world.living, s.store, s.hold.Token, outcome, "a note")
	if s.noted = nil; ended != nil {
		s.noted = []recipes.Fire{*ended}
	}
	return wordOf(err)
}

// ends finishes an attempt and leaves the queue.
func (s *shift) ends(outcome recipes.Outcome) {
	s.world.Helper()
	s.world.told("finish", s.finishes(outcome), "ok")
	s.quit()
}

// schedule is the schedule in words: the next tick, what runs, and the outcomes.
func (w world) schedule() string {
	of, err := report.Get(w.living, w.NewReader())
	if err != nil {
		return wordOf(err)
	}
	text := "next " + of.Next.Format(clockForm)
	if of.Running != nil {
		text += fmt.Sprintf(", runs %s %d", of.Running.Tick.Format(clockForm), of.Running.Attempt)
	}
	if of.Gone {
		text += " lost"
	}
	for i := range of.Recent {
		fire := &of.Recent[i]
		text += fmt.Sprintf(", %s %s %d", fire.Outcome, fire.Tick.Format(clockForm), max(fire.Attempt, fire.Missed))
	}
	return text
}

// at waits until a time of the bubble's clock.
func at(text string) {
	when, err := time.Parse("2006-01-02T15:04:05", "2000-01-"+text)
	if err != nil {
		panic(err)
	}
	time.Sleep(time.Until(when))
}

func TestEachTickBeginsOnceAndTheNextOneFollowsFromIt(t *testing.T) {
	inBubble(t, func(w world) {
		w.told("before", w.schedule(), "none")
		at("01T00:30:00")
		w.told("put", w.puts(hourly), "ok")
		w.told("made", w.schedule(), "next 01T01:00")
		first := w.worker()
		w.told("too early", first.begins(), "not yet")
		if first.pause != hourly.StartWithin/2 {
			t.Errorf("asks again after %v", first.pause)
		}
		at("01T00:59:00")
		w.told("a minute before", first.begins(), "not yet")
		if left := time.Minute - first.pause; left < 0 || left > 100*time.Millisecond {
			t.Errorf("asks again after %v", first.pause)
		}
		at("01T01:00:00")
		w.told("due", first.begins(), "01T01:00 1")
		w.told("told again", first.begins(), "01T01:00 1")
		w.told("while it runs", w.schedule(), "next 01T02:00, runs 01T01:00 1")
		first.ends(recipes.Succeeded)
		second := w.worker()
		w.told("the same tick", second.begins(), "not yet")
		w.told("finish again", first.finishes(recipes.Succeeded), "ok")
		w.told("finish otherwise", first.finishes(recipes.Failed), "done")
		w.told("finish of what never began", second.finishes(recipes.Succeeded), "superseded")
		at("01T02:00:00")
		w.told("the next", second.begins(), "01T02:00 1")
		second.ends(recipes.Failed)
		w.told("a tick that has failed is over", w.worker().begins(), "not yet")
		w.told("after", w.schedule(), "next 01T03:00, SUCCEEDED 01T01:00 1, FAILED 01T02:00 1")
	})
}

func TestALostTickBeginsAgainAsFarAsThatIsWanted(t *testing.T) {
	inBubble(t, func(w world) {
		w.puts(hourly)
		at("01T01:00:00")
		for attempt := range 3 {
			worker := w.worker()
			w.told("attempt", worker.begins(), fmt.Sprint("01T01:00 ", attempt+1))
			worker.session.Expire()
		}
		w.told("lost", w.schedule(), "next 01T02:00, runs 01T01:00 3 lost, LOST 01T01:00 1, LOST 01T01:00 2")
		last := w.worker()
		w.told("after the last", last.begins(), "not yet")
		w.told("noted", last.begins(), "not yet")
		at("01T02:00:00")
		w.told("the next tick", last.begins(), "01T02:00 1")
		last.session.Expire()
		at("01T02:06:00")
		late := w.worker()
		w.told("too late", late.begins(), "not yet")
		skips := hourly
		skips.SkipLost = true
		w.told("put", w.puts(skips), "ok")
		at("01T03:00:00")
		w.told("with skip", late.begins(), "01T03:00 1")
		late.session.Expire()
		w.told("no other", w.worker().begins(), "not yet")
		w.told("all", strings.TrimPrefix(w.schedule(), "next 01T04:00, LOST 01T01:00 1, LOST 01T01:00 2, LOST 01T01:00 3, "),
			"LOST 01T02:00 1, LOST 01T03:00 1")
	})
}

func TestAnOutcomeIsRecordedAfterALossUnlessAnotherAttemptHasFollowed(t *testing.T) {
	inBubble(t, func(w world) {
		skips := hourly
		skips.SkipLost = true
		w.puts(skips)
		at("01T01:00:00")
		first := w.worker()
		first.begins()
		first.session.Expire()
		w.told("before another has looked", first.finishes(recipes.Failed), "ok")
		at("01T02:00:00")
		second := w.worker()
		second.begins()
		second.session.Expire()
		third := w.worker()
		third.begins()
		w.told("with skip", second.finishes(recipes.Succeeded), "ok")
		w.told("outcomes", w.schedule(), "next 01T03:00, FAILED 01T01:00 1, SUCCEEDED 01T02:00 1")
		w.puts(hourly)
		at("01T03:00:00")
		third.begins()
		third.session.Expire()
		fourth := w.worker()
		w.told("again", fourth.begins(), "01T03:00 2")
		w.told("superseded", third.finishes(recipes.Succeeded), "superseded")
		fourth.ends(recipes.Succeeded)
		w.told("superseded still", third.finishes(recipes.Succeeded), "superseded")
	})
}

func TestOfTicksThatAreLateOnlyTheLastBegins(t *testing.T) {
	for name, c := range map[string]struct {
		rule       recipes.Rule
		now        string
		told, then string
	}{
		"in time":  {hourly, "01T03:04:00", "01T03:00 1", "next 01T04:00, runs 01T03:00 1, MISSED 01T01:00 2"},
		"too late": {hourly, "01T03:06:00", "not yet", "next 01T04:00, MISSED 01T01:00 3"},
		"however late": {
			recipes.Rule{Line: "0 * * * *", Zone: "UTC", CatchUp: true},
			"01T03:59:00", "01T03:00 1",
			"next 01T04:00, runs 01T03:00 1, MISSED 01T01:00 2",
		},
		"a single one": {hourly, "01T01:04:00", "01T01:00 1", "next 01T02:00, runs 01T01:00 1"},
		"thousands": {
			recipes.Rule{Line: "* * * * *", Zone: "UTC", StartWithin: time.Minute},
			"09T00:00:10", "09T00:00 1",
			"next 09T00:01, runs 09T00:00 1, MISSED 01T00:01 1000",
		},
		"in one hour a day": {
			recipes.Rule{Line: "*/2 0 * * *", Zone: "UTC", CatchUp: true},
			"31T23:00:00", "31T00:58 1",
			"next 01T00:00, runs 31T00:58 1, MISSED 01T00:02 928",
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(w world) {
				w.puts(c.rule)
				at(c.now)
				w.told("told", w.worker().begins(), c.told)
				w.told("then", w.schedule(), c.then)
			})
		})
	}
}

func TestAPauseLeavesTicksOut(t *testing.T) {
	inBubble(t, func(w world) {
		paused := hourly
		paused.Paused = true
		w.puts(hourly)
		at("01T02:00:30")
		w.told("paused", w.puts(paused), "ok")
		w.told("missed", w.schedule(), "next 01T03:00, MISSED 01T01:00 2")
		worker := w.worker()
		at("01T03:30:00")
		w.told("while it is paused", worker.begins(), "not yet")
		if worker.pause != 0 {
			t.Errorf("looks again after %v", worker.pause)
		}
		w.told("asked", wordOf(report.Ask(w.living, worker.store, "now")), "ok")
		w.told("a run", worker.begins(), "run now 1")
		worker.ends(recipes.Succeeded)
		w.told("resumed", w.puts(hourly), "ok")
		w.told("next", w.schedule(), "next 01T04:00, MISSED 01T01:00 2, SUCCEEDED 01T03:30 1")
	})
}

func TestARunIsOneForItsID(t *testing.T) {
	inBubble(t, func(w world) {
		w.puts(hourly)
		ask := func(id string) string { return wordOf(report.Ask(w.living, w.NewReader(), id)) }
		w.told("asked", ask("a")+ask("a"), "okok")
		worker := w.worker()
		w.told("begins", worker.begins(), "run a 1")
		w.told("asked while it runs", ask("a"), "ok")
		worker.session.Expire()
		again := w.worker()
		w.told("lost", again.begins(), "run a 2")
		again.ends(recipes.Succeeded)
		w.told("asked afterwards", ask("a"), "ok")
		w.told("nothing waits", w.worker().begins(), "not yet")
		for i := range recipes.MaxRuns {
			w.told("many", ask(fmt.Sprint("b", i)), "ok")
		}
		w.told("one more", ask("c"), "too many runs")
		w.told("one that waits", ask("b3"), "ok")
	})
}

func TestAPutThatChangesNothingOfTheTicksLeavesTheNextOne(t *testing.T) {
	inBubble(t, func(w world) {
		w.puts(hourly)
		at("01T01:00:01")
		w.told("the same", w.puts(hourly), "ok")
		other := hourly
		other.StartWithin = time.Minute
		w.told("other than ticks", w.puts(other), "ok")
		w.told("still", w.schedule(), "next 01T01:00")
		worker := w.worker()
		worker.begins()
		worker.ends(recipes.Succeeded)
		often := other
		often.Line = "*/30 * * * *"
		w.told("another line", w.puts(often), "ok")
		w.told("next", w.schedule(), "next 01T01:30, SUCCEEDED 01T01:00 1")
		wrong := other
		wrong.Line = "x"
		w.told("no line", w.puts(wrong), "line")
		w.told("nothing stored", w.schedule(), "next 01T01:30, SUCCEEDED 01T01:00 1")
	})
}

// A store is ahead if the clock of its ensemble's leader is wrong.
type ahead struct {
	recipes.Store
	by time.Duration
}

func (s ahead) Commit(ctx context.Context, changes ...recipes.Change) ([]recipes.Node, error) {
	nodes, err := s.Store.Commit(ctx, changes...)
	for i := range nodes {
		nodes[i].Modified = nodes[i].Modified.Add(s.by)
	}
	return nodes, err
}

func TestNothingBeginsWhileClocksDisagree(t *testing.T) {
	inBubble(t, func(w world) {
		wrong := ahead{w.NewReader(), 24 * 365 * time.Hour}
		put := func(store recipes.Store) string {
			_, err := report.Put(w.living, store, func(*recipes.Rule) (recipes.Rule, error) { return hourly, nil })
			return wordOf(err)
		}
		w.told("put", put(wrong), "clocks")
		w.told("nothing stored", w.schedule(), "none")
		w.puts(hourly)
		worker := w.worker()
		right := worker.store
		at("01T01:00:00")
		worker.store = wrong
		w.told("a year ahead", worker.begins(), "clocks")
		w.told("run", wordOf(report.Ask(w.living, wrong, "a")), "clocks")
		worker.store = ahead{right, -3 * time.Hour}
		w.told("three hours late", worker.begins(), "clocks")
		worker.store = ahead{right, -time.Hour}
		w.told("an hour late", worker.begins(), "not yet")
		w.told("as it was", w.schedule(), "next 01T01:00")
		worker.store = ahead{right, time.Hour}
		w.told("an hour ahead", worker.begins(), "01T02:00 1")
		worker.ends(recipes.Succeeded)
		back := w.worker()
		at("01T02:30:00")
		w.told("the same tick, by the right clock", back.begins(), "not yet")
	})
}

func TestAScheduleThatIsTooFarAheadIsReset(t *testing.T) {
	inBubble(t, func(w world) {
		w.puts(hourly)
		far := report
		far.Tolerance = 1 << 62
		worker := w.worker()
		worker.store = ahead{worker.store, 48 * time.Hour}
		due, err := far.Begin(w.living, worker.store, recipes.Worker{Hold: worker.hold})
		if err != nil || due.Begun == nil {
			t.Fatal(due.Begun, err)
		}
		state, err := report.Get(w.living, w.NewReader())
		if err != nil || !state.IsTooFar(report.Tolerance) {
			t.Errorf("%v is not too far: %v", state.Next, err)
		}
		state, err = report.Reset(w.living, w.NewReader())
		if err != nil || state.IsTooFar(report.Tolerance) || state.Next.Format(clockForm) != "01T01:00" {
			t.Errorf("%v after Reset: %v", state.Next, err)
		}
	})
}

// The node is removed and made anew while a change of it is under way, and has the version again that the change has seen.
func TestALateChangeChangesNoScheduleThatWasMadeAnew(t *testing.T) {
	inBubble(t, func(w world) {
		w.puts(hourly)
		slow, arrives, stalled := w.NewReader(), make(chan struct{}), false
		slow.Before(func(of standin.Operation) error {
			if of.Name == "Commit" && !stalled {
				stalled = true
				<-arrives
			}
			return nil
		})
		answer, daily := make(chan string, 1), hourly
		daily.StartWithin = time.Second
		go func() {
			_, err := report.Put(w.living, slow, func(rule *recipes.Rule) (recipes.Rule, error) {
				if rule.Line != hourly.Line {
					return *rule, nil
				}
				return daily, nil
			})
			answer <- wordOf(err)
		}()
		synctest.Wait()
		w.told("removed", wordOf(report.Remove(w.living, w.NewReader())), "ok")
		w.told("gone", w.schedule(), "none")
		w.told("removed again", wordOf(report.Remove(w.living, w.NewReader())), "none")
		often := hourly
		often.Line = "*/10 * * * *"
		w.told("anew", w.puts(often), "ok")
		close(arrives)
		w.told("late", <-answer, "ok")
		w.told("as it was made", w.schedule(), "next 01T00:10")
	})
}

func TestAnAttemptOfAScheduleThatWasRemovedIsSuperseded(t *testing.T) {
	inBubble(t, func(w world) {
		w.puts(hourly)
		at("01T01:00:00")
		worker := w.worker()
		worker.begins()
		w.told("removed", wordOf(report.Remove(w.living, w.NewReader())), "ok")
		w.told("finish", worker.finishes(recipes.Succeeded), "superseded")
		w.told("anew", w.puts(hourly), "ok")
		w.told("finish of the former", worker.finishes(recipes.Succeeded), "superseded")
	})
}

func TestAScheduleKeepsSoManyOutcomesAndItsRoom(t *testing.T) {
	inBubble(t, func(w world) {
		w.puts(hourly)
		sizes := [2]int{}
		for range recipes.MaxOutcomes + 5 {
			time.Sleep(time.Hour)
			worker := w.worker()
			worker.about.Owner = strings.Repeat("é\"", 40)
			worker.begins()
			data, _ := w.Read(report.Path)
			sizes[0] = len(data.Data)
			note := strings.Repeat(`"`, recipes.MaxNote)
			if _, err := report.Finish(w.living, worker.store, worker.hold.Token, recipes.Succeeded, note); err != nil {
				t.Fatal(err)
			}
			data, _ = w.Read(report.Path)
			if sizes[1] = len(data.Data); sizes[1] > sizes[0] {
				t.Fatalf("%d bytes are %d after Finish", sizes[0], sizes[1])
			}
			worker.quit()
		}
		of, err := report.Get(w.living, w.NewReader())
		if err != nil || len(of.Recent) != recipes.MaxOutcomes || sizes[1] > 128<<10 {
			t.Errorf("%d outcomes in %d bytes: %v", len(of.Recent), sizes[1], err)
		}
	})
}

func TestAScheduleThatAnotherProgramHasWrittenIsMalformed(t *testing.T) {
	for _, data := range []string{
		"", "x", `{"cron":"0 * * * *","zone":"UTC","start_within_ns":-1}`,
		`{"cron":"0 * * * *","zone":"UTC","recent":[{"outcome":"BEGUN"}]}`,
		`{"cron":"0 * * * *","zone":"UTC","recent":[{"outcome":"LOST","attempt":-1}]}`,
		`{"cron":"0 * * * *","zone":"UTC","running":{"outcome":"BEGUN","attempt":1,"token":7},"place":"/a/../b"}`,
		`{"cron":"0 * * * *","zone":"UTC","running":{"outcome":"LOST","attempt":1,"token":7},` +
			`"place":"/locks/a/_c_0123456789abcdef0123456789abcdef-lock-1"}`,
	} {
		inBubble(t, func(w world) {
			w.puts(hourly)
			if _, err := w.NewReader().Commit(w.living, recipes.Set(report.Path, []byte(data), -1)); err != nil {
				t.Fatal(err)
			}
			worker := w.worker()
			w.told(data, w.schedule()+", "+worker.begins()+", "+w.puts(hourly), "malformed, malformed, malformed")
			w.told("removed", wordOf(report.Remove(w.living, worker.store)), "ok")
			w.told("anew", w.puts(hourly), "ok")
		})
	}
}

func TestAWorkerWithoutItsPlaceBeginsNothing(t *testing.T) {
	inBubble(t, func(w world) {
		w.puts(hourly)
		worker := w.worker()
		at("01T01:00:00")
		if err := w.Delete(worker.hold.Guard().Path); err != nil {
			t.Fatal(err)
		}
		w.told("told", worker.begins(), "gone")
		w.told("as it was", w.schedule(), "next 01T01:00")
	})
}

func TestNothingBeginsWhileThePlaceOfAnAttemptStands(t *testing.T) {
	inBubble(t, func(w world) {
		w.puts(hourly)
		at("01T01:00:00")
		first := w.worker()
		w.told("first", first.begins(), "01T01:00 1")
		c := w.joinWith(w.session(), recipes.Lock{Path: "/elsewhere/report"}, recipes.Exclusive)
		elsewhere := &shift{contender: c, store: w.NewReader(), world: w}
		at("01T02:00:00")
		w.told("where locks lie elsewhere", elsewhere.begins(), "stands")
		first.session.Expire()
		w.told("after its end", elsewhere.begins(), "01T02:00 1")
	})
}
