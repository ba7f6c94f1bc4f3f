package main

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
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

// fill fills in the dialog that is open, and confirms it.
func (b *tab) fill(fields map[string]string) {
	b.t.Helper()
	b.do(chromedp.WaitVisible("#ask[open]", chromedp.ByQuery))
	for field, value := range fields {
		b.do(chromedp.SetValue(field, value, chromedp.ByQuery))
	}
	b.do(chromedp.Click("#ask-yes", chromedp.ByQuery))
}

// begins presses a button of the details.
func (b *tab) begins(title string) {
	b.t.Helper()
	found := `[...document.querySelectorAll("#detail .buttons button")].find((one) => one.textContent === ` + quoted(title) + `)`
	b.do(chromedp.Poll(found+` !== undefined`, nil), chromedp.Evaluate(found+`.click()`, nil))
}

func TestAPersonClaimsALockExtendsTheClaimAndReleasesIt(t *testing.T) {
	s := newStage(t)
	client := s.client()
	closed := chromedp.WaitNotPresent("#ask[open]", chromedp.ByQuery)
	once := sidekeeper.LockOptions{Wait: new(time.Duration)}
	ends := func() time.Duration {
		view, err := client.Get(t.Context(), "staging")
		must(t, err)
		return time.Until(view.Holders[0].Claim.Until)
	}
	b := s.begin()
	b.choose("locks")
	b.do(chromedp.Click("#begin", chromedp.ByQuery))
	b.inEachShape(func(shape string) { b.obeys("the dialog of a claim" + shape) })
	b.fill(map[string]string{`#ask-fields [name="lock"]`: "staging", `#ask-fields [name="minutes"]`: "5", "#ask-reason": "apply <b>4711</b>"})
	b.do(closed)
	b.shows("claimed until 20")
	b.shows("apply <b>4711</b>") // as text
	if _, err := client.Acquire(t.Context(), "staging", once); !errors.Is(err, sidekeeper.ErrLockHeld) {
		t.Errorf("a lock that is claimed: %v", err)
	}
	b.choose("overview")
	b.shows("staging is claimed for another 4 min")
	b.choose("locks")
	b.do(chromedp.Click(`.grid[role="grid"] .space .row:not(.none)`, chromedp.ByQuery))
	b.begins("Extend…")
	b.fill(map[string]string{`#ask-fields [name="minutes"]`: "90"})
	b.do(closed)
	same(t, "extended", ends() > time.Hour, true)
	b.begins("Release…")
	b.fill(map[string]string{`#ask-fields [name="id"]`: strings.Repeat("0", 32)})
	b.do(chromedp.Poll(`document.querySelector("#ask-error").textContent !== ""`, nil))
	same(t, "still held", ends() > time.Hour, true)
	b.do(chromedp.Click("#ask-no", chromedp.ByQuery))
	b.begins("Release…")
	b.fill(nil) // with the id that the page knows
	b.do(closed)
	b.begins("Claim…") // it can be claimed again
	b.do(chromedp.Click("#ask-no", chromedp.ByQuery))
	lock, err := client.Acquire(t.Context(), "staging", once)
	must(t, err)
	must(t, lock.Release(t.Context()))
	record, err := os.ReadFile(s.record)
	must(t, err)
	same(t, "on record", strings.Contains(string(record), "apply <b>4711</b>") || strings.Contains(string(record), `apply \u003cb\u003e4711`), true)
	same(t, "errors", strings.Join(b.errors, "\n"), "")
}
