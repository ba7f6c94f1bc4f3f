package recipes_test

import (
	"testing"

	"github.com/sidekeeper/sidekeeper/recipes"
)

// overdue is from when on the schedule is, in words.
func (w world) overdue() string {
	w.Helper()
	of, err := report.Get(w.living, w.NewReader())
	if err != nil {
		return wordOf(err)
	}
	if from := of.OverdueFrom(); !from.IsZero() {
		return from.Format(clockForm)
	}
	return "never"
}

func TestAScheduleIsOverdueWhenTwoTicksInARowAreOverWithoutSuccess(t *testing.T) {
	inBubble(t, func(w world) {
		w.puts(hourly)
		w.told("made", w.overdue(), "01T02:05")
		at("01T01:00:00")
		first := w.worker()
		first.begins()
		at("01T01:30:00")
		first.ends(recipes.Failed)
		w.told("failed", w.overdue(), "01T02:05")
		at("01T02:00:00")
		second := w.worker()
		second.begins()
		w.told("while the second runs", w.overdue(), "01T03:00")
		at("01T02:10:00")
		second.session.Expire()
		w.told("lost", w.overdue(), "01T02:05")
		third := w.worker()
		third.begins()
		w.told("asked", wordOf(report.Ask(w.living, third.store, "now")), "ok")
		w.told("a run", third.begins(), "run now 1")
		third.ends(recipes.Succeeded)
		w.told("after the success of a run", w.overdue(), "01T04:05")
		at("01T03:00:00")
		last := w.worker()
		last.begins()
		at("01T05:10:00")
		last.ends(recipes.Succeeded)
		w.told("a tick that has taken long", w.overdue(), "01T07:05")
	})
}

func TestAScheduleThatIsPausedOrNewIsNotOverdue(t *testing.T) {
	paused, never, daily := hourly, hourly, hourly
	paused.Paused, daily.Line, never.Line = true, "0 0 * * *", "0 0 29 2 *"
	inBubble(t, func(w world) {
		w.puts(hourly)
		at("01T10:00:00")
		w.told("missed", w.overdue(), "01T02:05")
		w.puts(paused)
		w.told("paused", w.overdue(), "never")
		at("02T10:00:00")
		w.puts(hourly)
		w.told("resumed", w.overdue(), "02T12:05")
		at("03T10:00:00")
		w.puts(daily)
		w.told("another line", w.overdue(), "05T00:05")
		at("06T10:00:00")
		_, err := report.Reset(w.living, w.NewReader())
		w.told("reset", wordOf(err)+w.overdue(), "ok08T00:05")
		w.puts(never)
		w.told("a line that fires once in four years", w.overdue(), "29T00:05")
	})
}

func TestALineThatFiresMoreOftenThanItMayBeLateIsOverdueAtTheThirdTick(t *testing.T) {
	often := hourly
	often.Line = "* * * * *"
	inBubble(t, func(w world) {
		w.puts(often)
		w.told("made", w.overdue(), "01T00:03")
	})
}
