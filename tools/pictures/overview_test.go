package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
)

// circle has two callers wait for each other, and returns the lease of one of them.
func (s *stage) circle(client *sidekeeper.Client, callers, locks [2]string) *sidekeeper.Lease {
	s.t.Helper()
	leases := [2]*sidekeeper.Lease{}
	for i, owner := range callers {
		lease, err := client.OpenLease(s.t.Context(), sidekeeper.LeaseOptions{Owner: owner})
		must(s.t, err)
		_, err = client.Acquire(s.t.Context(), locks[i], sidekeeper.LockOptions{Lease: lease, Owner: owner})
		must(s.t, err)
		leases[i] = lease
	}
	for i, owner := range callers {
		go func() {
			_, _ = client.Acquire(s.t.Context(), locks[1-i], sidekeeper.LockOptions{Lease: leases[i], Owner: owner})
		}()
	}
	return leases[0]
}

// drawn says in which charts there is a path of this class.
func drawn(b *tab, class string) string {
	b.t.Helper()
	return evaluate[string](b, `[...document.querySelectorAll("#overview .`+class+`")].map((one) => one.getAttribute("d") !== "").join(" ")`)
}

func TestTheConsoleBeginsWithWhatIsWrongAndSinceWhen(t *testing.T) {
	s := newStage(t)
	client := s.client()
	b := s.begin()
	b.shows("Nothing is wrong")
	b.shows("No caller waits for a lock.")
	same(t, "the title", evaluate[string](b, `document.title`), "Overview – Sidekeeper console")
	s.hold(client, "orders", "web-1")
	for i := range 3 {
		s.wait(client, "orders", fmt.Sprintf("standby-%d", i))
	}
	b.do(chromedp.Poll(`document.querySelector("#overview tbody tr")?.innerText.startsWith("orders\t3\t")`, nil))
	b.shows("Nothing is wrong") // to wait is no fault
	lease := s.circle(client, [2]string{"alice", "bob"}, [2]string{"apples", "bread"})
	b.shows("1 thing is wrong")
	b.shows("Waits: 2 in a circle")
	first := evaluate[string](b, `document.querySelector("#overview .wrong li").innerText`)
	wanted := regexp.MustCompile(`(?s)^CIRCLE: .*(alice waits for bread|bob waits for apples), .*None of them goes on.*since \d\d:\d\d, for \d`)
	if !wanted.MatchString(first) {
		t.Errorf("what is wrong: %s", first)
	}
	const numbers = `[...document.querySelectorAll("#overview .card .number")].map((one) =>
		one.textContent.replace(/^\d+\.?\d* s$/, "SOME s")).join(" ")`
	same(t, "the numbers", evaluate[string](b, numbers), "5 SOME s 0")
	same(t, "the bars of the last hour", drawn(b, "bar"), "true true false")
	b.choose("waits")
	b.do(chromedp.Poll(`[...document.querySelectorAll(".grid .space .row")].map((row) =>
		row.lastChild.textContent.startsWith("CIRCLE")).join(" ") === "true true false false false"`, nil))
	b.do(chromedp.Evaluate(`history.back()`, nil))
	b.do(chromedp.Click(`#overview .wrong a`, chromedp.ByQuery))
	b.shows("Who waits for whom")
	must(t, lease.Close(t.Context()))
	b.do(chromedp.Evaluate(`history.back()`, nil))
	b.shows("Nothing is wrong")
	same(t, "errors", strings.Join(b.errors, "\n"), "")
}

func TestWhatWasLostIsCountedWithItsTimeAndReason(t *testing.T) {
	s := newStage(t)
	held := s.hold(s.client(), "orders", "billing")
	b := s.begin()
	b.shows("1 lock seen")
	out, err := exec.Command(program, "lock", "break", "orders", "--token", fmt.Sprint(held.FencingToken()), "--reason", "to see it lost",
		"--operator-address", s.operators).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	b.shows("1 thing to look at")
	b.shows("was lost within the last hour")
	b.shows("the last one ")
	same(t, "a bar", drawn(b, "bar.bad"), "true")
}

// While it is away the page says since when, and afterwards its charts do.
func TestAnOutageStaysInTheChartsOfTheLastHour(t *testing.T) {
	s := newStage(t)
	s.hold(s.client(), "orders", "billing")
	b := s.begin()
	b.shows("1 lock seen")
	must(t, s.ensemble.Signal(syscall.SIGSTOP))
	b.shows("No contact with the ensemble.")
	b.shows("1 lock seen, as of ")
	same(t, "that no caller waits", strings.Contains(b.text(), "No caller waits"), false)
	b.do(chromedp.Evaluate(`location.hash = "#/locks/orders"`, nil)) // all that it asks would wait for the ensemble
	b.do(chromedp.Poll(`/ensemble since \d\d:\d\d, for (\d\d|[4-9])/.test(document.getElementById("contact").textContent)`, nil))
	b.do(chromedp.Evaluate(`window.before = document.getElementById("contact").textContent`, nil),
		chromedp.Poll(`document.getElementById("contact").textContent !== window.before`, nil, chromedp.WithPollingTimeout(7*time.Second)))
	same(t, "that no caller waits for it", strings.Contains(b.text(), "No caller waits"), false)
	b.do(chromedp.Evaluate(`location.hash = "#/overview"`, nil))
	same(t, "what is marked as old", evaluate[int](b, `document.querySelectorAll("#overview .card.stale").length`), 2)
	b.inEachShape(func(shape string) { b.obeys("an outage" + shape) })
	must(t, s.ensemble.Signal(syscall.SIGCONT))
	b.do(chromedp.Poll(`document.querySelectorAll("#overview .stale").length === 0`, nil))
	b.shows("ensemble answers")
	b.shows("no contact: 1 min")
	same(t, "red spans", drawn(b, "away"), "true true true")
	s.console = s.start(regexp.MustCompile(`(http://.*)`), "console", "--operator-address", s.operators)
	other := s.begin()
	other.shows("not known, as is the rest of this sidecar")
	other.shows("Nothing is known: cannot reach a sidecar's admin listener")
}

// That callers waited once, and that none did at the last look, says nothing of now.
func TestThatNoCallerWaitsIsSaidOnlyOfALookJustNow(t *testing.T) {
	s := newStage(t)
	console, client := s.started, s.client()
	held := s.hold(client, "orders", "billing")
	s.wait(client, "orders", "standby")
	b := s.begin()
	b.do(chromedp.Poll(`document.querySelector("#overview tbody tr")?.innerText.startsWith("orders\t1\t")`, nil))
	must(t, held.Release(t.Context()))
	const numbers = `[...document.querySelectorAll("#overview .card .number")].map((one) => one.textContent).join(" ")`
	notKnown := func(when string) {
		t.Helper()
		b.shows("It is not known who waits now.")
		same(t, "that no caller waits, "+when, strings.Contains(b.text(), "No caller"), false)
		same(t, "the numbers, "+when, evaluate[string](b, numbers)[:len("– –")], "– –")
		same(t, "what is marked as old, "+when, evaluate[int](b, `document.querySelectorAll("#overview .stale").length`), 3)
	}
	b.shows("No caller waits for a lock.")
	same(t, "the numbers", evaluate[string](b, numbers), "0 none 0")
	b.choose("waits")
	b.shows("No caller waits for a lock.")
	must(t, s.ensemble.Signal(syscall.SIGSTOP))
	b.shows("This is not known: ")
	same(t, "that no caller waits", strings.Contains(b.text(), "No caller"), false)
	b.choose("overview")
	notKnown("in an outage")
	must(t, s.ensemble.Signal(syscall.SIGCONT))
	b.shows("No caller waits for a lock.")
	must(t, console.Kill())
	b.shows("the console has ended")
	notKnown("without a console")
	b.shows("Nothing is known: the console has ended")
}

// crowded puts the longest words that there are below the charts, and says how many captions are cut off.
const crowded = `[...document.querySelectorAll("figcaption")].filter((one) => {
	const [, most, , lost] = one.children;
	[most.firstChild.data, most.lastChild.textContent, lost.textContent] = ["at most 23 h 59 min", ", at 23:59", "no contact: 60 min"];
	return one.scrollWidth > one.clientWidth || most.getClientRects().length !== 1 || most.clientHeight > 20 || lost.clientHeight > 20;
}).length`

func TestTheWordsBelowChartsStayOnTheirLines(t *testing.T) {
	b := newStage(t).begin()
	b.shows("No caller waits for a lock.")
	for width := int64(360); width <= 1280; width += 20 {
		b.do(chromedp.EmulateViewport(width, 800))
		same(t, fmt.Sprint("captions that are cut off at ", width), evaluate[int](b, crowded), 0)
	}
}

func TestLocksLeasesAndMembersLeadToEachOther(t *testing.T) {
	s := newStage(t)
	client := s.client()
	lease, err := client.OpenLease(t.Context(), sidekeeper.LeaseOptions{Owner: "web-1.shop"})
	must(t, err)
	_, err = client.Join(t.Context(), "web", "web-1", sidekeeper.JoinOptions{Lease: lease})
	must(t, err)
	_, err = client.Acquire(t.Context(), "orders", sidekeeper.LockOptions{Lease: lease, Owner: "web-1.shop"})
	must(t, err)
	s.wait(client, "orders", "standby")
	b := s.open()
	b.shows("orders")
	b.do(chromedp.Click(`.grid[role="grid"] .space .row:not(.none)`, chromedp.ByQuery))
	follows := func(link, title string) {
		t.Helper()
		b.do(chromedp.WaitVisible(link, chromedp.ByQuery), chromedp.Evaluate(fmt.Sprintf(`document.querySelector(%s).click()`, quoted(link)), nil),
			chromedp.Poll(fmt.Sprintf(`new RegExp(%s).test(document.title)`, quoted(title)), nil))
	}
	follows(`#detail a[href^="#/leases/"]`, `^[0-9a-f]{8} – Leases`)
	b.shows("Waits for: 0")
	number := strings.TrimPrefix(evaluate[string](b, `location.hash`), "#/leases/")
	follows(`#detail a[href="#/groups/web"]`, "^web – Groups")
	follows(fmt.Sprintf(`#detail a[href="#/leases/%s"]`, number), "^"+number)
	b.do(chromedp.Reload())
	b.shows("Has: 2")
	follows(`#detail a[href="#/locks/orders"]`, "^orders – Locks")
	follows(`#detail section .row:nth-child(2) a[href^="#/leases/"]`, "– Leases") // of the one that waits
	b.shows("Waits for: 1")
	b.do(chromedp.Evaluate(`location.hash = "#/leases/00000000"`, nil))
	b.shows("No lease of this number is known.")
	same(t, "errors", strings.Join(b.errors, "\n"), "")
}

func TestOneSearchesByNameOwnerIdentityAndLease(t *testing.T) {
	s := newStage(t)
	client := s.client()
	s.hold(client, "orders", "Billing")
	s.hold(client, "invoices", "reporter")
	s.wait(client, "invoices", "standby")
	b := s.open()
	for _, one := range []struct{ tab, words, count string }{
		{"locks", "order", "1 of 2"},
		{"locks", "bill", "1 of 2"},
		{"locks", "standby", "1 of 2"},
		{"locks", fmt.Sprint("uid:", os.Getuid()), "2 of 2"},
		{"leases", "report", "1 of 3"},
		{"leases", "invoi", "2 of 3"},
		{"waits", "reporter", "1 of 1"},
		{"waits", "nobody", "0 of 1"},
	} {
		b.do(chromedp.Evaluate(fmt.Sprintf(`location.hash = "#/%s?search=%s"`, one.tab, one.words), nil))
		b.shows(one.count)
	}
	b.choose("leases")
	b.shows("3 of this sidecar")
	number := evaluate[string](b, `document.querySelector(".grid .space .row").firstChild.textContent`)
	for tab, count := range map[string]string{"leases": "1 of 3", "locks": "1 of 2"} {
		b.do(chromedp.Evaluate(fmt.Sprintf(`location.hash = "#/%s?search=%s"`, tab, number), nil))
		b.shows(count)
	}
}

func TestManyLocksAreSearchedByOwnerIfOneAsks(t *testing.T) {
	s := newStage(t)
	b := newTab(t, chromedp.WindowSize(1200, 900))
	b.do(chromedp.ActionFunc(func(ctx context.Context) error {
		_, err := page.AddScriptToEvaluateOnNewDocument("{" + crowd + "}").Do(ctx)
		return err
	}), chromedp.Navigate(s.console))
	b.choose("locks")
	b.shows("10,001")
	b.do(chromedp.SendKeys("#search", "uid:1000", chromedp.ByQuery))
	b.shows("0 of 10,001")
	b.do(chromedp.Click("#deeper", chromedp.ByQuery))
	b.shows("still to look into")
	b.shows("10,001 of 10,001")
	same(t, "errors", strings.Join(b.errors, "\n"), "")
}
