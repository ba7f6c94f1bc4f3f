package recipes_test

import (
	"strings"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/recipes"
)

func TestAPausedScheduleRepeatsNoTickThatWasLost(t *testing.T) {
	inBubble(t, func(w world) {
		paused := hourly
		paused.Paused = true
		w.puts(hourly)
		at("01T01:00:00")
		first := w.worker()
		first.begins()
		w.told("paused", w.puts(paused), "ok")
		first.session.Expire()
		second := w.worker()
		w.told("the lost tick", second.begins(), "not yet")
		w.told("noted", w.schedule(), "next 01T02:00, LOST 01T01:00 1")
		w.told("asked", wordOf(report.Ask(w.living, second.store, "now")), "ok")
		w.told("a run", second.begins(), "run now 1")
		second.session.Expire()
		w.told("the lost run", w.worker().begins(), "run now 2")
	})
}

func TestATickThatIsDueIsNotLostWithoutANote(t *testing.T) {
	often, always, alwaysOften := hourly, hourly, hourly
	often.Line, alwaysOften.Line, always.CatchUp, alwaysOften.CatchUp = "*/30 * * * *", "*/30 * * * *", true, true
	inBubble(t, func(w world) {
		w.puts(hourly)
		at("01T02:10:00")
		_, err := report.Reset(w.living, w.NewReader())
		w.told("reset", wordOf(err), "ok")
		w.told("by Reset", w.schedule(), "next 01T03:00, MISSED 01T01:00 2")
		at("01T03:10:00")
		w.puts(often)
		w.told("by another line", w.schedule(), "next 01T03:30, MISSED 01T01:00 2, MISSED 01T03:00 1")
	})
	inBubble(t, func(w world) {
		w.puts(always)
		at("01T02:10:00")
		w.puts(alwaysOften)
		w.told("caught up later", w.schedule(), "next 01T02:00, MISSED 01T01:00 1")
		worker := w.worker()
		w.told("begins", worker.begins(), "01T02:00 1")
		worker.ends(recipes.Succeeded)
		w.told("the new line", w.schedule(), "next 01T02:30, MISSED 01T01:00 1, SUCCEEDED 01T02:00 1")
	})
}

func TestPutSaysWhatRuns(t *testing.T) {
	inBubble(t, func(w world) {
		w.puts(hourly)
		at("01T01:00:00")
		w.worker().begins()
		other := hourly
		other.StartWithin = time.Minute
		of, err := report.Put(w.living, w.NewReader(), func(*recipes.Rule) (recipes.Rule, error) { return other, nil })
		if err != nil || of.Running == nil || len(of.Recent) > 0 {
			t.Errorf("runs %v, with outcomes %v: %v", of.Running, of.Recent, err)
		}
	})
}

func TestALineThatThisSidecarCannotReadStopsNeitherFinishNorPut(t *testing.T) {
	for _, of := range []string{`"cron":"0 * * * *","zone":"Europe/Atlantis"`, `"cron":"x","zone":"UTC"`} {
		inBubble(t, func(w world) {
			w.puts(hourly)
			at("01T01:00:00")
			worker := w.worker()
			worker.begins()
			node, _ := w.Read(report.Path)
			data := strings.Replace(string(node.Data), `"cron":"0 * * * *","zone":"UTC"`, of, 1)
			if _, err := w.NewReader().Commit(w.living, recipes.Set(report.Path, []byte(data), -1)); err != nil {
				t.Fatal(err)
			}
			w.told("shown", w.schedule(), "next 01T02:00, runs 01T01:00 1")
			worker.ends(recipes.Succeeded)
			_, err := report.Put(w.living, w.NewReader(), func(rule *recipes.Rule) (recipes.Rule, error) {
				paused := *rule
				paused.Paused = true
				return paused, nil
			})
			w.told("paused", wordOf(err), "ok")
			_, err = report.Reset(w.living, w.NewReader())
			w.told("reset", wordOf(err), "malformed")
			at("01T02:00:00")
			w.told("put", w.puts(hourly), "ok")
			w.told("goes on", w.schedule(), "next 01T03:00, SUCCEEDED 01T01:00 1")
		})
	}
}
