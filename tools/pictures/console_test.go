package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
)

// open shows the locks in the console of the stage, and returns when it is live.
func (s *stage) open() *tab {
	s.t.Helper()
	b := s.begin()
	b.choose("locks")
	return b
}

// begin shows what the console begins with.
func (s *stage) begin() *tab {
	s.t.Helper()
	b := newTab(s.t, chromedp.WindowSize(1200, 900))
	b.do(chromedp.Navigate(s.console), chromedp.WaitVisible(`body[data-live="yes"]`, chromedp.ByQuery))
	return b
}

// choose shows one tab of the console.
func (b *tab) choose(id string) {
	b.t.Helper()
	b.do(chromedp.Click("#tab-"+id, chromedp.ByQuery), chromedp.WaitVisible("#tab-"+id+`[aria-selected="true"]`, chromedp.ByQuery))
}

func TestAnOperatorBreaksAHoldWithAReasonThatIsOnRecord(t *testing.T) {
	s := newStage(t)
	client := s.client()
	held := s.hold(client, "orders", hostile)
	s.wait(client, "orders", "standby")
	b := s.open()
	b.shows("orders")
	b.shows(hostile) // as text
	b.do(chromedp.Click(`.grid[role="grid"] .space .row:not(.none)`, chromedp.ByQuery))
	b.shows("standby")
	same(t, "what is markup of a caller", evaluate[int](b, `document.querySelectorAll("main script, main img").length`), 0)
	same(t, "title", evaluate[string](b, `document.title`), "orders – Locks – Sidekeeper console")

	b.do(chromedp.Evaluate(`document.querySelector("#detail .danger").click()`, nil), chromedp.WaitVisible("#ask[open]", chromedp.ByQuery),
		chromedp.Click("#ask-yes", chromedp.ByQuery))
	same(t, "whether it is open without a reason", evaluate[bool](b, `document.getElementById("ask").open`), true)
	b.do(chromedp.SendKeys("#ask-reason", "the host is on fire"+kb.Enter, chromedp.ByQuery), chromedp.WaitNotPresent("#ask[open]", chromedp.ByQuery))
	select {
	case <-held.Done():
	case <-time.After(20 * time.Second):
		t.Fatal("the hold goes on")
	}
	b.do(chromedp.Poll(`[...document.querySelectorAll("#detail .grid")][0].innerText.includes("standby")`, nil))
	record, err := os.ReadFile(s.record)
	must(t, err)
	for _, want := range []string{`"break"`, `"the host is on fire"`, fmt.Sprintf("uid:%d", os.Getuid())} {
		same(t, want+" is on record", strings.Contains(string(record), want), true)
	}
	for _, url := range b.asked {
		same(t, "asks "+url, strings.HasPrefix(url, s.origin()+"/"), true)
		same(t, "the token in "+url, strings.Contains(url, "token"), false)
	}
	same(t, "errors", strings.Join(b.errors, "\n"), "")
}

func TestNoOwnerPassesForWhatTheSidecarKnowsOfIt(t *testing.T) {
	s := newStage(t)
	s.hold(s.client(), "orders", "billing (uid:0)")
	b := s.open()
	b.shows(fmt.Sprintf(`"billing (uid:0)" (uid:%d)`, os.Getuid()))
	s.callers = "unix://" + t.TempDir() + "/callers"
	b.do(chromedp.Navigate("http://" + s.start(adminLine, "dev", "--listen", s.callers, "--admin-listen=127.0.0.1:0")))
	s.hold(s.client(), "orders", "billing (0123abcd)")
	b.shows(`"billing (0123abcd)" (`) // and the lease
}

func TestWhoIsNoOperatorIsRefusedByTheSidecarAndToldWhy(t *testing.T) {
	s := newStage(t)
	held := s.hold(s.client(), "orders", "billing")
	s.console = s.start(regexp.MustCompile(`(http://.*)`), "console", "--address", s.callers, "--admin", s.admin)
	b := s.open()
	b.shows("orders")
	b.do(chromedp.Click(`.grid[role="grid"] .space .row:not(.none)`, chromedp.ByQuery), chromedp.WaitVisible("#detail .danger", chromedp.ByQuery),
		chromedp.Evaluate(`document.querySelector("#detail .danger").click()`, nil), chromedp.WaitVisible("#ask[open]", chromedp.ByQuery),
		chromedp.SendKeys("#ask-reason", "I may not"+kb.Enter, chromedp.ByQuery))
	b.shows("OPERATOR_ONLY")
	select {
	case <-held.Done():
		t.Error("the hold has ended")
	default:
	}
}

func TestAllKindsAreShownAndFollowed(t *testing.T) {
	s := newStage(t)
	client := s.client()
	ctx := t.Context()
	lease, err := client.OpenLease(ctx, sidekeeper.LeaseOptions{Owner: "worker-7"})
	must(t, err)
	_, err = client.Join(ctx, "web", "web-1", sidekeeper.JoinOptions{Lease: lease})
	must(t, err)
	must(t, client.CreateSemaphore(ctx, "pool", 3))
	must(t, client.SetBarrier(ctx, "migration"))
	s.put("mail", "to: me")
	s.schedule("put", "reports", "30 2 * * *", "--time-zone", "Europe/Berlin")
	s.define("shards", "6")
	_, err = client.Sequence("invoices").Create(ctx, 1)
	must(t, err)
	_, err = client.Config().Put(ctx, "shop/limit", []byte("250\n\u202e"))
	must(t, err)
	s.hold(client, "a", "alice")
	s.hold(client, "b", "bob")
	s.wait(client, "b", "alice")
	s.wait(client, "a", "bob")
	b := s.open()
	for _, one := range []struct{ tab, list, detail string }{
		{"locks", "a", "alice"},
		{"groups", "web", "web-1"},
		{"semaphores", "pool", "of 0 of 3 permits"},
		{"queues", "mail", ""},
		{"barriers", "migration", ""},
		{"schedules", "Europe/Berlin", "no outcome yet"},
		{"sets", "shards", "no member takes items"},
		{"sequences", "invoices", "incarnation"},
		{"config", "shop/limit", `\u{202e}`},
		{"leases", "worker-7", ""},
		{"waits", "CIRCLE: bob", "Waiters"},
	} {
		b.choose(one.tab)
		b.shows(one.list)
		b.do(chromedp.Click(`.grid[role="grid"] .space .row:not(.none)`, chromedp.ByQuery))
		b.shows(one.detail)
	}
	b.shows("Waits: 2 in a circle")
	b.choose("overview")
	b.shows("of 1000, 0 of them suspended")
	b.shows("ensemble, heartbeat")
	b.choose("locks")
	b.shows("2")
	later := s.hold(client, "later", "carol")
	b.shows("later")
	must(t, later.Release(ctx))
	b.do(chromedp.Poll(`!document.body.innerText.includes("later")`, nil))
	same(t, "errors", strings.Join(b.errors, "\n"), "")
}

// What is not known is not shown as nothing, nor what is old as new.
func TestInAnOutageThePageSaysWhatItDoesNotKnow(t *testing.T) {
	s := newStage(t)
	s.hold(s.client(), "orders", "billing")
	seen, late := s.open(), newTab(t, chromedp.WindowSize(1200, 900))
	seen.shows("orders")
	seen.do(chromedp.Click(`.grid[role="grid"] .space .row:not(.none)`, chromedp.ByQuery))
	seen.shows("live")
	must(t, s.ensemble.Signal(syscall.SIGSTOP))
	late.do(chromedp.Navigate(s.console))
	late.shows("No contact with the ensemble.")
	same(t, "when it has begun", regexp.MustCompile(`since \d\d:\d\d, for \d`).MatchString(late.text()), true)
	late.shows("thing is wrong")
	for _, tab := range []string{"locks", "waits"} {
		late.choose(tab)
		late.do(chromedp.Poll(`/This is not known|as of /.test(document.getElementById("panel").innerText)`, nil))
		same(t, "that nothing is held or waited for", regexp.MustCompile(`No lock is held|No caller waits`).MatchString(late.text()) &&
			!strings.Contains(late.text(), "as of "), false)
	}
	late.shows("no contact with the ensemble since ")
	late.shows("Waits: not known")
	seen.shows("as of ")
	seen.shows("may be out of date")
	for _, part := range []string{"list", "detail"} {
		same(t, part+" is marked as old", evaluate[bool](seen, `document.querySelector("#`+part+` .stale") !== null`), true)
	}
	seen.shows("orders")
	seen.inEachShape(func(shape string) { seen.obeys("an outage" + shape) })
	must(t, s.ensemble.Signal(syscall.SIGCONT))
	seen.do(chromedp.Poll(`document.querySelectorAll(".stale").length === 0`, nil))
	late.choose("locks")
	late.do(chromedp.Poll(`/billing|No lock is held/.test(document.body.innerText)`, nil)) // its hold may be lost by now
}

func TestWhatIsShownHasAnAddress(t *testing.T) {
	s := newStage(t)
	client := s.client()
	for _, name := range []string{"a/b_c", "orders"} {
		s.hold(client, name, "owner of "+name)
	}
	s.wait(client, "orders", "standby")
	b := s.open()
	b.do(chromedp.Poll(`document.querySelector('.grid[role="grid"] .space .row')?.innerText.includes("orders")`, nil)) // it is waited for
	b.do(chromedp.SendKeys("#search", "b_c", chromedp.ByQuery))
	b.shows("1 of 2")
	b.do(chromedp.Click(`.grid[role="grid"] .space .row:not(.none)`, chromedp.ByQuery))
	b.shows("owner of a/b_c")
	address := func() string { return evaluate[string](b, `location.hash`) }
	same(t, "the address", address(), "#/locks/a%2Fb_c?search=b_c")
	b.do(chromedp.Reload())
	b.shows("owner of a/b_c")
	b.shows("1 of 2")
	b.choose("overview")
	b.shows("ensemble, heartbeat")
	same(t, "the title", evaluate[string](b, `document.title`), "Overview – Sidekeeper console")
	b.do(chromedp.Evaluate(`history.back()`, nil))
	b.shows("owner of a/b_c")
	b.do(chromedp.Evaluate(`history.back()`, nil))
	b.do(chromedp.Poll(`document.getElementById("detail").hidden`, nil))
	same(t, "the address before", address(), "#/locks?search=b_c")
	b.do(chromedp.SendKeys("#search", "zzz", chromedp.ByQuery))
	b.shows("None of 2 matches “b_czzz”.")
	b.do(chromedp.Evaluate(`location.hash = "#/groups/%zz"`, nil))
	b.shows("%zz")
	same(t, "errors", strings.Join(b.errors, "\n"), "")
}

func TestTheConsoleIsUsedByKeyboardAlone(t *testing.T) {
	s := newStage(t)
	client := s.client()
	for _, name := range []string{"apples", "bread", "cheese"} {
		s.hold(client, name, "owner of "+name)
	}
	b := s.begin()
	b.do(input.DispatchKeyEvent(input.KeyDown).WithKey("/").WithText("/"),
		chromedp.Poll(`document.activeElement.id === "search"`, nil), chromedp.Evaluate(`document.activeElement.blur()`, nil))
	b.shows("cheese")
	b.do(input.DispatchKeyEvent(input.KeyDown).WithKey("/").WithText("/"), chromedp.KeyEvent("e"), chromedp.KeyEvent("e"))
	b.shows("1 of 3")
	b.do(chromedp.KeyEvent(kb.Backspace), chromedp.KeyEvent(kb.Backspace), chromedp.Sleep(100*time.Millisecond))
	b.do(chromedp.Focus(`.row[tabindex="0"]`, chromedp.ByQuery), chromedp.KeyEvent(kb.ArrowUp), chromedp.KeyEvent(kb.Enter))
	b.shows("owner of bread")
	b.do(chromedp.Poll(`document.activeElement.textContent === "bread"`, nil)) // its heading
	b.do(chromedp.KeyEvent(kb.Escape))
	same(t, "whether the details are gone", evaluate[bool](b, `document.getElementById("detail").hidden`), true)
	same(t, "focus after them", evaluate[bool](b, `document.activeElement.textContent.startsWith("bread")`), true)
	b.do(chromedp.Focus("#tab-locks", chromedp.ByQuery), chromedp.KeyEvent(kb.ArrowRight))
	same(t, "the tab", evaluate[string](b, `document.activeElement.id`), "tab-waits")
}

func TestThePageKeepsTheRulesOfAccessibility(t *testing.T) {
	s := newStage(t)
	client := s.client()
	s.hold(client, "orders", "billing")
	s.wait(client, "orders", "standby")
	_, err := client.Config().Put(t.Context(), "shop/limit", []byte("250"))
	must(t, err)
	b := s.open()
	b.inEachShape(func(shape string) {
		for _, shown := range []string{"locks", "config"} {
			b.choose(shown)
			b.do(chromedp.WaitVisible(`.grid[role="grid"] .space .row:not(.none)`, chromedp.ByQuery),
				chromedp.Click(`.grid[role="grid"] .space .row`, chromedp.ByQuery),
				chromedp.WaitVisible("#detail h3, #detail dd", chromedp.ByQuery))
			b.obeys(shown + shape)
		}
		b.choose("overview")
		b.shows("Waited for")
		b.obeys("overview" + shape)
		b.choose("locks")
		b.do(chromedp.Click(`.grid[role="grid"] .space .row:not(.none)`, chromedp.ByQuery), chromedp.WaitVisible("#detail .danger", chromedp.ByQuery), chromedp.Evaluate(`document.querySelector("#detail .danger").click()`, nil))
		b.obeys("the dialog" + shape)
		b.do(chromedp.Click("#ask-no", chromedp.ByQuery))
	})
}

// inEachShape looks at the page in either colours and widths, in none of which anything is cut off.
func (b *tab) inEachShape(look func(shape string)) {
	b.t.Helper()
	axe, err := os.ReadFile("node_modules/axe-core/axe.min.js")
	must(b.t, err)
	b.do(chromedp.Evaluate(string(axe), nil))
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{360, 1200} {
			b.do(emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}),
				chromedp.EmulateViewport(width, 800))
			look(fmt.Sprint(" ", scheme, " ", width))
			same(b.t, fmt.Sprint("what is cut off at ", width), evaluate[int](b, `document.documentElement.scrollWidth - innerWidth`), 0)
		}
	}
}

// obeys fails for each of axe's rules that the page breaks.
func (b *tab) obeys(when string) {
	b.t.Helper()
	broken := evaluate[[]string](b, `axe.run().then(({violations}) => violations.flatMap((v) => v.nodes.map((n) => v.id + ": " + v.help + ": " + n.html)))`)
	for _, one := range broken {
		b.t.Errorf("%s: %s", when, one)
	}
}

func TestOtherPagesAndWhoeverHasNoTokenGetNothing(t *testing.T) {
	s := newStage(t)
	s.hold(s.client(), "orders", "billing")
	_, token, _ := strings.Cut(s.console, "token=")
	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<!doctype html>elsewhere") }))
	defer elsewhere.Close()

	b := newTab(t, chromedp.Flag("host-resolver-rules", "MAP rebound.test 127.0.0.1"))
	b.do(chromedp.Navigate(s.origin() + "/"))
	b.shows("it has a token")
	same(t, "shown without a token", strings.Contains(b.text(), "orders"), false)

	const ask = `(async (url, token, mode) => {
		try {
			const answer = await fetch(url + "/api/sidekeeper.lock.v1.LockService/List", {method: "POST", mode, body: "{}",
				headers: mode === "no-cors" ? {} : {"Content-Type": "application/json", Authorization: "Bearer " + token}});
			return answer.status + " " + await answer.text();
		} catch (error) { return "nothing"; }
	})`
	asks := func(from, token, mode string) string {
		b.do(chromedp.Navigate(from))
		return evaluate[string](b, fmt.Sprintf("%s(%s, %s, %s)", ask, quoted(s.origin()), quoted(token), quoted(mode)))
	}
	same(t, "another origin with the token", asks(elsewhere.URL, token, "cors"), "nothing")
	if got := asks(elsewhere.URL, "", "no-cors"); got != "nothing" && got != "0 " {
		t.Errorf("another origin that asks blindly gets %q", got)
	}
	same(t, "the own origin without the token", strings.HasPrefix(asks(s.origin()+"/", "", "cors"), "401 "), true)
	same(t, "the own origin with it", strings.Contains(asks(s.origin()+"/", token, "cors"), "orders"), true)

	rebound := strings.Replace(s.origin(), "127.0.0.1", "rebound.test", 1)
	b.do(chromedp.Navigate(rebound + "/"))
	same(t, "a name that points here", strings.Contains(b.text(), "use localhost"), true)
}

// explanation has the page see what else there is to see of who waits for whom, of whatever sidecar.
const explanation = `
const real = window.fetch;
window.fetch = async (url, options) => String(url).endsWith("/Explain") ? Response.json({incomplete: true, locks: [
	{name: "orders", holders: [{contender: {owner: "here", token: "1", age: "70s"}, lease: "0000000a", waitsFor: ["stock", "\u202e"], suspended: true}],
		waiters: [{contender: {owner: "there", token: "2", age: "5s"}}, {contender: {foreign: true, token: "3", age: "4s"}}],
		waitersOmitted: 7, usualHold: {holds: 3, median: "3s", longest: "4200s"}},
	{name: "stock"},
]}) : real(url, options);
`

func TestTheDetailsOfALockShowAllThatIsKnownOfWhoWaits(t *testing.T) {
	s := newStage(t)
	s.hold(s.client(), "orders", "here")
	b := newTab(t, chromedp.WindowSize(1600, 900))
	b.do(chromedp.ActionFunc(func(ctx context.Context) error {
		_, err := page.AddScriptToEvaluateOnNewDocument("{" + explanation + "}").Do(ctx)
		return err
	}), chromedp.Navigate(s.console))
	b.choose("locks")
	b.shows("orders")
	b.do(chromedp.Click(`.grid[role="grid"] .space .row:not(.none)`, chromedp.ByQuery))
	b.shows("There is more than is shown.")
	b.shows("orders is usually held for 3.0 s, at most 1 h 10 min")
	b.shows("7 more wait for orders")
	same(t, "who is there", evaluate[string](b, `[...document.querySelectorAll("#detail section .space .row")]
		.map((row) => [...row.children].map((cell) => cell.textContent).join("|").replace(/\|\d[^|]*s\|/, "|AGE|")).join(" / ")`),
		`orders|holds|here|AGE|stock, \u{202e}|suspended / orders|waits|there|AGE||at another sidecar / orders|waits|–|AGE||another client`)
	same(t, "errors", strings.Join(b.errors, "\n"), "")
}

func TestTheDetailsOfALockShowACircleForAsLongAsItLasts(t *testing.T) {
	s := newStage(t)
	client, ctx := s.client(), t.Context()
	leases := map[string]*sidekeeper.Lease{}
	for owner, first := range map[string]string{"alice": "apples", "bob": "bread"} {
		lease, err := client.OpenLease(ctx, sidekeeper.LeaseOptions{Owner: owner})
		must(t, err)
		_, err = client.Acquire(ctx, first, sidekeeper.LockOptions{Lease: lease, Owner: owner})
		must(t, err)
		leases[owner] = lease
	}
	for owner, second := range map[string]string{"alice": "bread", "bob": "apples"} {
		go func() { _, _ = client.Acquire(ctx, second, sidekeeper.LockOptions{Lease: leases[owner], Owner: owner}) }()
	}
	b := s.open()
	b.shows("apples")
	b.do(chromedp.Click(`.grid[role="grid"] .space .row:not(.none)`, chromedp.ByQuery))
	b.shows("None of them goes on")
	text := b.text()
	if !regexp.MustCompile(`CIRCLE: (alice \(lease [0-9a-f]{8}\) waits for bread|bob \(lease [0-9a-f]{8}\) waits for apples), (alice|bob) \(`).MatchString(text) {
		t.Errorf("the page does not show who is in the circle:\n%s", text)
	}
	same(t, "who is marked", evaluate[string](b, `[...document.querySelectorAll("#detail section .space .row")]
		.map((row) => [...row.children].slice(0, 3).map((cell) => cell.textContent).join("|").replace(/ \(.*/, "")).sort().join(" / ")`),
		"apples|holds, CIRCLE|alice / apples|waits, CIRCLE|bob / bread|holds, CIRCLE|bob / bread|waits, CIRCLE|alice")
	b.inEachShape(func(shape string) { b.obeys("a circle" + shape) })
	must(t, leases["alice"].Close(ctx))
	b.do(chromedp.Poll(`!document.body.innerText.includes("CIRCLE")`, nil))
	b.shows("apples is usually held for")
	same(t, "errors", strings.Join(b.errors, "\n"), "")
}

// crowd has the page see ten thousand locks, and one that a thousand wait for and that changes twice a second, of whatever sidecar.
const crowd = `
const real = window.fetch;
const locks = [...Array(10000).keys()].map((i) => ({name: "lock-" + String(i).padStart(5, "0"), contenders: 1}));
locks.push({name: "crowd", contenders: 1001});
const one = (owner) => ({owner, identity: "uid:1000", age: "12.5s", token: "4711"});
let turn = 0;
const view = (name) => ({name, holders: [one("first")], waiters: name === "crowd" ? [...Array(1000).keys()].map((i) => ({...one("waiter-" + (i + turn)), token: String(i + turn)})) : []});
const framed = (message) => {
	const text = new TextEncoder().encode(JSON.stringify(message));
	const frame = new Uint8Array(5 + text.length);
	new DataView(frame.buffer).setUint32(1, text.length);
	frame.set(text, 5);
	return frame;
};
window.fetch = async (url, options) => {
	if (String(url).endsWith("/who")) {
		await new Promise((next) => setTimeout(next, 500));
		return Response.json(Object.fromEntries(locks.map(({name}) => [name, ["first", "uid:1000"]])));
	}
	const method = /LockService\/(\w+)/.exec(url)?.[1];
	if (!method) return real(url, options);
	if (method === "Watch") {
		return new Response(new ReadableStream({async start(to) {
			for (;;) { to.enqueue(framed({view: view("crowd")})); turn++; await new Promise((next) => setTimeout(next, 500)); }
		}}));
	}
	const asked = JSON.parse(options.body);
	if (method === "Get") return Response.json({view: view(asked.name)});
	const at = Number(asked.pageToken || 0);
	return Response.json({locks: locks.slice(at, at + 1000), nextPageToken: at + 1000 < locks.length ? String(at + 1000) : ""});
};
window.slow = [];
new PerformanceObserver((list) => { for (const one of list.getEntries()) window.slow.push(Math.round(one.duration)); }).observe({type: "longtask"});
`

func TestTenThousandLocksAndAThousandWaitersDoNotFreezeThePage(t *testing.T) {
	s := newStage(t)
	b := newTab(t, chromedp.WindowSize(1200, 900))
	b.do(chromedp.ActionFunc(func(ctx context.Context) error {
		_, err := page.AddScriptToEvaluateOnNewDocument("{" + crowd + "}").Do(ctx)
		return err
	}))
	begun := time.Now()
	b.do(chromedp.Navigate(s.console))
	b.choose("locks")
	b.shows("10,001")
	t.Logf("10,001 locks are shown after %v", time.Since(begun).Round(time.Millisecond))
	for range 20 {
		b.do(chromedp.Evaluate(`document.querySelector(".rows").scrollTop += 8000`, nil), chromedp.Sleep(50*time.Millisecond))
	}
	b.do(chromedp.Focus(`.row[tabindex="0"]`, chromedp.ByQuery), chromedp.KeyEvent(kb.End))
	b.shows("lock-09999")
	b.do(chromedp.SendKeys("#search", "lock-0123", chromedp.ByQuery))
	b.shows("10 of 10,001")
	b.do(chromedp.Evaluate(`document.getElementById("search").value = ""`, nil), chromedp.SendKeys("#search", "crowd", chromedp.ByQuery))
	b.shows("1 of 10,001")
	b.do(chromedp.Click(`.grid[role="grid"] .space .row:not(.none)`, chromedp.ByQuery))
	b.shows("their turn: 1000")
	b.do(chromedp.Evaluate(`document.querySelectorAll("#detail .rows")[1].scrollTop = 20000`, nil))
	b.shows("waiter-50")
	b.do(chromedp.Evaluate(`window.pressed = document.querySelector(".grid[role=grid] .space .row"); 0`, nil))
	b.do(chromedp.Sleep(3 * time.Second)) // while it is listed again and the view is watched
	if rows := evaluate[int](b, `document.querySelectorAll(".row").length`); rows > 150 {
		t.Errorf("%d rows in the page", rows)
	}
	same(t, "whether a row that is about to be pressed stays", evaluate[bool](b, `window.pressed.isConnected`), true)
	slow := evaluate[[]int](b, `window.slow`)
	t.Logf("tasks of more than 50 ms: %v", slow)
	for _, one := range slow {
		if one > longestTask {
			t.Errorf("the page stood still for %d ms", one)
		}
	}
	same(t, "errors", strings.Join(b.errors, "\n"), "")
}

// longestTask is how many milliseconds the page may stand still. On a quiet machine it is a fraction of that.
const longestTask = 500
