package recipes_test

import (
	"fmt"
	"testing"

	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/support/standin"
)

// notes are what the last change of a shift has noted, in words.
func (s *shift) notes() (text string) {
	for i := range s.noted {
		fire := &s.noted[i]
		text += fmt.Sprintf("%s %s %d ", fire.Outcome, fire.Tick.Format(clockForm), max(fire.Attempt, fire.Missed))
	}
	return text
}

func TestEachChangeSaysWhatItHasNoted(t *testing.T) {
	inBubble(t, func(w world) {
		w.puts(hourly)
		at("01T03:00:00")
		first := w.worker()
		first.begins()
		w.told("missed", first.notes(), "MISSED 01T01:00 2 ")
		first.begins()
		w.told("told again", first.notes(), "")
		first.session.Expire()
		second := w.worker()
		second.begins()
		w.told("lost", second.notes(), "LOST 01T03:00 1 ")
		second.finishes(recipes.Succeeded)
		w.told("finished", second.notes(), "SUCCEEDED 01T03:00 2 ")
		second.finishes(recipes.Succeeded)
		w.told("finished again", second.notes(), "")
		second.quit()
		at("01T05:10:00")
		state, err := report.Reset(w.living, w.NewReader())
		if err != nil || len(state.Noted) != 1 || state.Noted[0].Missed != 2 {
			t.Errorf("Reset notes %v: %v", state.Noted, err)
		}
	})
}

// If the reply is lost to a write that was carried out, the same change finds its work done.
func TestAChangeWhoseReplyIsLostNotesOnce(t *testing.T) {
	inBubble(t, func(w world) {
		w.puts(hourly)
		at("01T02:00:00")
		worker := w.worker()
		reader, lost := w.NewReader(), 0
		reader.After(func(of standin.Operation) error {
			if of.Name != "Commit" || of.Path == report.Clock || lost > 0 {
				return nil
			}
			lost++
			return recipes.ErrOutcomeUnknown
		})
		worker.store = reader
		worker.begins()
		w.told("begun", worker.notes(), "MISSED 01T01:00 1 ")
		w.told("replies lost", fmt.Sprint(lost), "1")
	})
}
