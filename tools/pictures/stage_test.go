package main

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
)

const program = "../../bin/sidekeeper"

// A stage is a sidecar with an ensemble in memory, and the console of its operator.
type stage struct {
	t                         *testing.T
	callers, operators, admin string // addresses
	record                    string // the audit log's file
	console                   string // the address that the console has printed
	ensemble                  *os.Process
	started                   *os.Process // the newest program
}

// newStage starts all of it, as its users do.
func newStage(t *testing.T) *stage {
	t.Helper()
	folder := t.TempDir()
	s := &stage{
		t: t, callers: "unix://" + folder + "/callers", operators: "unix://" + folder + "/operators", record: folder + "/audit",
		admin: "unix://" + folder + "/admin",
	}
	ensemble := s.start(regexp.MustCompile(`ensemble: +([\d.:]+),`), "dev", "--listen", "127.0.0.1:0", "--log-level", "error")
	s.ensemble = s.started
	s.start(regexp.MustCompile(`listening on (.*)`), "serve", "--zookeeper", ensemble, "--tick-time", "1s", "--session-timeout", "15s",
		"--listen", s.callers, "--operator-listen", s.operators, "--audit-log", s.record, "--log-level", "error", "--drain-timeout", "0s", "--admin-listen", s.admin)
	s.console = s.start(regexp.MustCompile(`(http://.*)`), "console", "--operator-address", s.operators, "--admin", s.admin)
	return s
}

// start runs a command for as long as the test, and returns what it prints where the pattern says.
func (s *stage) start(pattern *regexp.Regexp, args ...string) string {
	s.t.Helper()
	command := exec.Command(program, args...)
	command.Stderr = os.Stderr
	out, err := command.StdoutPipe()
	must(s.t, err)
	must(s.t, command.Start())
	s.started = command.Process
	s.t.Cleanup(func() {
		_ = command.Process.Signal(syscall.SIGCONT)
		_ = command.Process.Signal(syscall.SIGTERM)
		late := time.AfterFunc(5*time.Second, func() { _ = command.Process.Kill() })
		defer late.Stop()
		_ = command.Wait()
	})
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if found := pattern.FindStringSubmatch(lines.Text()); found != nil {
			return found[1]
		}
	}
	s.t.Fatalf("%s does not say %s", strings.Join(args, " "), pattern)
	return ""
}

// client is one of the sidecar's.
func (s *stage) client() *sidekeeper.Client {
	s.t.Helper()
	client, err := sidekeeper.Dial(s.callers)
	must(s.t, err)
	s.t.Cleanup(func() { _ = client.Close() })
	return client
}

// hold takes a lock for as long as the test.
func (s *stage) hold(client *sidekeeper.Client, name, owner string) *sidekeeper.Lock {
	s.t.Helper()
	lock, err := client.Acquire(s.t.Context(), name, sidekeeper.LockOptions{Owner: owner})
	must(s.t, err)
	return lock
}

// put puts an item into a queue.
func (s *stage) put(queue, item string) {
	s.t.Helper()
	must(s.t, exec.Command(program, "queue", "put", queue, item, "--address", s.callers).Run())
}

// schedule calls a command about schedules.
func (s *stage) schedule(args ...string) {
	s.t.Helper()
	must(s.t, exec.Command(program, append(append([]string{"schedule"}, args...), "--address", s.callers)...).Run())
}

// wait waits for a lock for as long as the test.
func (s *stage) wait(client *sidekeeper.Client, name, owner string) {
	go func() { _, _ = client.Acquire(s.t.Context(), name, sidekeeper.LockOptions{Owner: owner}) }()
}

// origin is where the console is, without the token.
func (s *stage) origin() string {
	address, _, _ := strings.Cut(s.console, "/#")
	return address
}

// A tab is one of a browser of its own, which notes what it asks and what goes wrong.
type tab struct {
	t      *testing.T
	ctx    context.Context
	asked  []string
	errors []string
}

func newTab(t *testing.T, more ...chromedp.ExecAllocatorOption) *tab {
	t.Helper()
	profile := filepath.Join(t.TempDir(), "profile")
	t.Cleanup(func() { remove(t, profile) })
	options := append(browser(), chromedp.UserDataDir(profile))
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	ctx, stop := chromedp.NewExecAllocator(ctx, append(options, more...)...)
	t.Cleanup(stop)
	ctx, end := chromedp.NewContext(ctx)
	t.Cleanup(end)
	made := &tab{t: t, ctx: ctx}
	chromedp.ListenTarget(ctx, func(event any) {
		switch event := event.(type) {
		case *network.EventRequestWillBeSent:
			made.asked = append(made.asked, event.Request.URL)
		case *runtime.EventExceptionThrown:
			made.errors = append(made.errors, event.ExceptionDetails.Error())
		}
	})
	must(t, chromedp.Run(ctx, network.Enable(), runtime.Enable())) // it begins the browser, which lasts as long as this context
	return made
}

// remove removes the profile of a browser that was ended. Its helper processes end a little later than it does, and write until then.
func remove(t *testing.T, profile string) {
	t.Helper()
	var err error
	for range 100 {
		if err = os.RemoveAll(profile); err == nil {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Error(err)
}

func (b *tab) do(actions ...chromedp.Action) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, 40*time.Second)
	defer cancel()
	must(b.t, chromedp.Run(ctx, actions...))
}

// shows waits until the page's text has these words.
func (b *tab) shows(words string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, 20*time.Second)
	defer cancel()
	err := chromedp.Run(ctx, chromedp.Poll(`document.body.innerText.includes(`+quoted(words)+`)`, nil, chromedp.WithPollingInterval(50*time.Millisecond)))
	if err != nil {
		b.t.Fatalf("the page does not show %q: %v\n%s", words, err, b.text())
	}
}

func (b *tab) text() (text string) {
	_ = chromedp.Run(b.ctx, chromedp.Evaluate(`document.body.innerText`, &text))
	return text
}

// evaluate is the value of an expression in the page.
func evaluate[T any](b *tab, expression string) (value T) {
	b.t.Helper()
	b.do(chromedp.Evaluate(expression, &value, func(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }))
	return value
}

// quoted is a string of Go as one of JavaScript.
func quoted(words string) string {
	text, _ := json.Marshal(words) // of a string it never fails
	return string(text)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func same[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}
