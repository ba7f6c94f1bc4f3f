package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sidekeeper/sidekeeper/service"
)

// serveState serves a state to `top`, again and again.
func serveState(t *testing.T, state *service.State) (address string) {
	t.Helper()
	text, err := json.Marshal(state)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		again := time.NewTicker(50 * time.Millisecond)
		defer again.Stop()
		for {
			fmt.Fprintf(w, "data: %s\n\n", text)
			http.NewResponseController(w).Flush()
			select {
			case <-again.C:
			case <-request.Context().Done():
				return
			}
		}
	}))
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// A watcher sits at a terminal.
type watcher struct {
	t        *testing.T
	terminal *os.File
	written  chan string
	seen     string // since the last look
}

func atTerminal(t *testing.T, terminal *os.File) *watcher {
	t.Helper()
	w := &watcher{t: t, terminal: terminal, written: make(chan string, 100)}
	go func() {
		defer close(w.written)
		for buffer := make([]byte, 1<<16); ; {
			count, err := terminal.Read(buffer)
			if err != nil {
				return
			}
			w.written <- string(buffer[:count])
		}
	}()
	return w
}

// sees waits for something on the screen, from now on.
func (w *watcher) sees(text string) {
	w.t.Helper()
	late := time.After(patience)
	for w.seen = ""; !strings.Contains(w.seen, text); {
		select {
		case more, ok := <-w.written:
			if w.seen += more; !ok {
				w.t.Fatalf("no %q in %q", text, w.seen)
			}
		case <-late:
			w.t.Fatalf("no %q in %q", text, w.seen)
		}
	}
}

func (w *watcher) presses(keys string) { w.terminal.WriteString(keys) }

func TestTopScrollsAndLeavesItsTerminalAsItWas(t *testing.T) {
	t.Parallel()
	state := &service.State{Counts: service.Counts{Leases: 40}}
	for number := range 40 {
		state.Leases = append(state.Leases, service.LeaseState{Owner: fmt.Sprintf("owner-%02d", number), TTL: 15, ValidFor: 12})
	}
	address := serveState(t, state)
	for name, end := range map[string]func(*watcher, *os.Process){
		"q":       func(w *watcher, _ *os.Process) { w.presses("q") },
		"Ctrl-C":  func(w *watcher, _ *os.Process) { w.presses("\x03") },
		"SIGTERM": func(_ *watcher, top *os.Process) { top.Signal(syscall.SIGTERM) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			person, programs := openTerminal(t)
			if err := unix.IoctlSetWinsize(int(person.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 30, Col: 100}); err != nil {
				t.Fatal(err)
			}
			before := terminalState(t, programs)
			top := exec.Command(os.Args[0], "top", "--admin", address)
			top.Env = append(os.Environ(), role+"=sidekeeper")
			top.Stdin, top.Stdout, top.Stderr = programs, programs, programs
			top.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
			if err := top.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { top.Process.Kill() })
			w := atTerminal(t, person)
			w.sees("and 32 more\x1b")
			for _, step := range []struct{ keys, sees string }{
				{"j", "32 more, 1 of them above"},
				{"\x1b[B", "32 more, 2 of them above"},
				{"\x1b[6~", "32 more, 10 of them above"},
				{strings.Repeat("\x1b[6~", 9), "owner-39"},
				{"k", "32 more, 31 of them above"},
				{"\x1b[A\x1b[5~", "32 more, 22 of them above"},
				{strings.Repeat("\x1bOA", 30), "owner-00"},
				{"x\x1b[1;5C", "and 32 more\x1b"},
				{"s", "sorted by name"},
				{"ss/r-17", "filter: r-17_"},
				{"\x1b", "and 32 more\x1b"},
			} {
				w.presses(step.keys)
				w.sees(step.sees)
			}
			end(w, top.Process)
			w.sees("\x1b[?25h\x1b[?1049l")
			if err := top.Wait(); err != nil {
				t.Error(err)
			}
			if after := terminalState(t, programs); !reflect.DeepEqual(after, before) {
				t.Errorf("the terminal was %+v and is %+v", before, after)
			}
		})
	}
}

func terminalState(t *testing.T, terminal *os.File) *unix.Termios {
	t.Helper()
	state, err := unix.IoctlGetTermios(int(terminal.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	return state
}
