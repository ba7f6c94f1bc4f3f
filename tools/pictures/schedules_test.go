package main

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
)

// press presses a button of the details, and what the dialog then asks.
func (b *tab) press(title string) {
	b.t.Helper()
	b.do(chromedp.Poll(`[...document.querySelectorAll("#detail .buttons button")].some((one) => one.textContent === `+quoted(title)+`)`, nil),
		chromedp.Evaluate(`[...document.querySelectorAll("#detail .buttons button")].find((one) => one.textContent === `+quoted(title)+`).click()`, nil),
		chromedp.WaitVisible("#ask[open]", chromedp.ByQuery), chromedp.Click("#ask-yes", chromedp.ByQuery))
}

func TestAnOperatorPausesResumesAndRunsASchedule(t *testing.T) {
	s := newStage(t)
	s.schedule("put", "reports", "30 2 * * *", "--time-zone", "Europe/Berlin")
	b := s.begin()
	b.choose("schedules")
	b.shows("waiting")
	b.do(chromedp.Click(`.grid[role="grid"] .space .row:not(.none)`, chromedp.ByQuery))
	b.shows("no outcome yet")
	b.press("Pause…")
	b.do(chromedp.WaitNotPresent("#ask[open]", chromedp.ByQuery))
	b.shows("paused")
	b.press("Run now…")
	b.do(chromedp.WaitNotPresent("#ask[open]", chromedp.ByQuery))
	work, err := s.client().Work(t.Context(), "reports", sidekeeper.WorkOptions{Owner: "night-1"})
	must(t, err)
	b.shows("night-1")
	must(t, work.Finish(t.Context(), sidekeeper.Failed, "exit 1: no room <b>on the disk</b>"))
	b.shows("exit 1: no room <b>on the disk</b>") // as text
	b.shows("failed")
	b.inEachShape(func(shape string) { b.obeys("a schedule" + shape) })
	b.press("Resume…")
	b.do(chromedp.WaitNotPresent("#ask[open]", chromedp.ByQuery))
	b.do(chromedp.Poll(`!document.querySelector("#detail dl").innerText.includes("paused")`, nil))
	record, err := os.ReadFile(s.record)
	must(t, err)
	for _, want := range []string{`"put"`, `"run"`, `"console-`} {
		same(t, want+" is on record", strings.Contains(string(record), want), true)
	}
	same(t, "errors", strings.Join(b.errors, "\n"), "")
	must(t, s.ensemble.Signal(syscall.SIGSTOP))
	b.do(chromedp.Poll(`document.querySelector("#detail .stale") !== null`, nil))
	b.shows("as of ")
	must(t, s.ensemble.Signal(syscall.SIGCONT))
}
