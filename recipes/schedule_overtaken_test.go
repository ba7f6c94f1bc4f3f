package recipes_test

import (
	"testing"

	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/support/standin"
)

// A tick begins while another caller changes what it has read before.
func TestAChangeThatAnotherOneHasOvertakenLosesNothing(t *testing.T) {
	inBubble(t, func(w world) {
		w.puts(hourly)
		at("01T01:00:00")
		worker, slow, overtaken := w.worker(), w.NewReader(), false
		slow.Before(func(of standin.Operation) error {
			if of.Name == "Commit" && of.Path != report.Clock && !overtaken {
				overtaken = true
				w.told("begins meanwhile", worker.begins(), "01T01:00 1")
			}
			return nil
		})
		other := hourly
		other.SkipLost = true
		_, err := report.Put(w.living, slow, func(*recipes.Rule) (recipes.Rule, error) { return other, nil })
		w.told("put", wordOf(err), "ok")
		w.told("what began", w.schedule(), "next 01T02:00, runs 01T01:00 1")
		w.told("the tick, to another", wordOf(report.Ask(w.living, slow, "now")), "ok")
		worker.ends(recipes.Succeeded)
		w.told("only the run", w.worker().begins(), "run now 1")
	})
}
