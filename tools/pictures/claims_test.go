package main

import (
	"os/exec"
	"testing"

	"github.com/chromedp/chromedp"
)

func TestTheDetailsOfALockShowWhyItIsClaimedAndUntilWhen(t *testing.T) {
	s := newStage(t)
	claim := exec.Command(program, "lock", "claim", "staging", "--for", "2h", "--reason", "apply <b>4711</b>", "--owner", "ana", "--address", s.callers)
	must(t, claim.Run())
	b := s.begin()
	b.choose("locks")
	b.shows("staging")
	b.do(chromedp.Click(`.grid[role="grid"] .space .row:not(.none)`, chromedp.ByQuery))
	b.shows("claimed until 20")
	b.shows("apply <b>4711</b>") // as text
	b.shows("ana")
}
