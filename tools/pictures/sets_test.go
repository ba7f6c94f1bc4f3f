package main

import (
	"context"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
)

// define makes a set of items.
func (s *stage) define(set, count string) {
	s.t.Helper()
	must(s.t, exec.Command(program, "assign", "define", set, "--count", count, "--address", s.callers).Run())
}

// share makes a member, which holds its items' locks until it is ended.
func (s *stage) share(set, member string) (end func()) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.t.Context())
	client, ended := s.client(), make(chan error, 1)
	go func() {
		ended <- client.Share(ctx, set, func(ctx context.Context, _ *sidekeeper.Item) error {
			<-ctx.Done()
			return nil
		}, sidekeeper.ShareOptions{Member: member, Owner: "pod " + member})
	}()
	return func() {
		cancel()
		<-ended
	}
}

// fact waits until a fact of the details begins with these words.
func (b *tab) fact(title, words string) {
	b.t.Helper()
	b.do(chromedp.Poll(`[...document.querySelectorAll("#detail dt")].some((one) => one.textContent === `+quoted(title)+
		` && one.nextElementSibling.textContent.startsWith(`+quoted(words)+`))`, nil))
}

// row waits until a table of the details has a row with these words, in this order.
func (b *tab) row(table string, words ...string) {
	b.t.Helper()
	b.do(chromedp.Poll(`[...document.querySelectorAll("#detail .grid")].filter((one) => one.getAttribute("aria-label").startsWith(`+quoted(table)+
		`)).some((one) => [...one.querySelectorAll(".space .row")].some((row) => [...row.children].map((cell) => cell.textContent).join(" | ").includes(`+
		quoted(strings.Join(words, " | "))+`)))`, nil))
}

func TestAnOperatorSeesWhoHasTheItemsOfASetAndWhatMoves(t *testing.T) {
	s := newStage(t)
	s.define("orders", "4")
	held := s.hold(s.client(), "orders/3", hostile) // without the set
	b := s.begin()
	b.choose("sets")
	b.do(chromedp.Poll(`document.querySelector('.grid[role="grid"] .space .row')?.innerText.split(/\s+/).join(" ") === "orders 4 0 4 – –"`, nil))
	b.do(chromedp.Click(`.grid[role="grid"] .space .row:not(.none)`, chromedp.ByQuery))
	b.fact("plan", "none yet")
	b.fact("without a member", "4: 0, 1, 2, 3; seen so since ")
	b.row("Items", "3", "–", hostile+" (no member)", "unplanned") // as text
	b.row("Moves", "none was seen")

	endOne := s.share("orders", "one")
	b.fact("plan", "written ")
	b.fact("shares", "largest 4 items (one), smallest 4 items (one)")
	b.fact("without a member", "none")
	b.fact("plan and holder differ", "1: 3; seen so since ")
	b.row("Items", "3", "one", hostile+" (no member)", "differs")
	b.row("Items", "0", "one", "one", "held")
	b.row("Members", "one", "3 of 4", "≤ 2000", "pod one")
	b.row("Moves", "3", "planned", "–", "one")
	b.do(chromedp.Poll(`/^orders 4 1 0 – \d/.test(document.querySelector('.grid[role="grid"] .space .row').innerText.split(/\s+/).join(" "))`, nil))
	b.inEachShape(func(shape string) { b.obeys("a set" + shape) })

	must(t, held.Release(t.Context()))
	b.row("Moves", "3", "taken", hostile+" (no member)", "one")
	b.fact("plan and holder differ", "none")

	endTwo := s.share("orders", "two")
	b.fact("shares", "largest 2 items (one), smallest 2 items (two)")
	b.row("Moves", "planned", "one", "two")
	b.row("Moves", "taken", "one", "two")
	b.fact("planned, not taken", "none")
	same(t, "what is markup of a caller", evaluate[int](b, `document.querySelectorAll("main script, main img").length`), 0)
	same(t, "where an item leads", evaluate[string](b, `document.querySelector("#detail a").getAttribute("href")`), "#/locks/orders%2F0")

	must(t, s.ensemble.Signal(syscall.SIGSTOP))
	b.do(chromedp.Poll(`document.querySelector("#detail .stale") !== null`, nil))
	must(t, s.ensemble.Signal(syscall.SIGCONT))
	b.do(chromedp.Poll(`document.querySelector("#detail .stale") === null`, nil))
	endTwo()
	endOne()
	b.fact("without a member", "4: 0, 1, 2, 3; seen so since ")
	b.fact("shares", "no member takes items")
	same(t, "errors", strings.Join(b.errors, "\n"), "")
}

// The console of a caller without rights of an operator shows sets, too: it only reads them.
func TestACallerWithoutRightsOfAnOperatorSeesSets(t *testing.T) {
	s := newStage(t)
	s.define("orders", "4")
	s.console = s.start(regexp.MustCompile(`(http://.*)`), "console", "--address", s.callers, "--admin", s.admin)
	b := s.begin()
	b.choose("sets")
	b.do(chromedp.Click(`.grid[role="grid"] .space .row:not(.none)`, chromedp.ByQuery))
	b.fact("without a member", "4: ")
	same(t, "buttons that act", evaluate[int](b, `document.querySelectorAll("#detail .buttons button").length`), 0)
}
