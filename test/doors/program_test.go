package doors

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/test/support/expect"
	"github.com/sidekeeper/sidekeeper/test/support/full"
	"github.com/sidekeeper/sidekeeper/test/support/process"
	"github.com/sidekeeper/sidekeeper/test/support/toolchain"
)

var (
	figures = flag.Bool("figures", false, "have each attack last for five seconds, and print what it costs")
	night   = flag.Bool("night", false, "play against all doors")
)

// patient is how long anything may take that must happen.
const patient = time.Minute

// nursery is where all programs are started; folder is of what is built.
var (
	nursery *process.Nursery
	folder  string
)

func TestMain(m *testing.M) {
	full.AllNeed("the program")
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	var err error
	if folder, err = os.MkdirTemp("", "doors-"); err != nil {
		panic(err)
	}
	defer os.RemoveAll(folder)
	nursery = process.NewNursery()
	defer nursery.Close()
	return m.Run()
}

// sidekeeper is the program as it is delivered, unless these tests look for races.
var sidekeeper = sync.OnceValues(func() (string, error) {
	path, arguments := filepath.Join(folder, "sidekeeper"), []string{"github.com/sidekeeper/sidekeeper/cmd/sidekeeper"}
	if raced {
		arguments = append([]string{"-race"}, arguments...)
	}
	return path, toolchain.Build(context.Background(), path, arguments...)
})

// A program is a sidekeeper that runs until the test ends.
type program struct {
	*process.Process

	group    *group // nil where none can be made
	out, log *expect.Logbook
}

// launch starts a sidekeeper with so many bytes of memory.
func launch(t *testing.T, limit int, arguments ...string) *program {
	t.Helper()
	path, err := sidekeeper()
	expect.Must(t, err)
	p := &program{out: &expect.Logbook{}, log: &expect.Logbook{}}
	if !raced {
		p.group = newGroup(t, limit)
	}
	command := exec.Command(path, arguments...)
	if p.group != nil {
		command = exec.Command("sh", append([]string{"-c", `echo $$ >"$0" && exec "$@"`, p.group.entrance(), path}, arguments...)...)
	}
	command.Stdout, command.Stderr, command.WaitDelay = p.out, p.log, time.Second
	command.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0")
	p.Process, err = nursery.Start(command, nothing{})
	expect.Must(t, err)
	t.Cleanup(func() {
		p.Kill()
		if text := p.log.Text(); strings.Contains(text, "DATA RACE") || strings.Contains(text, "panic:") {
			t.Errorf("%v: %s", arguments, text)
		} else if t.Failed() {
			t.Logf("the log of %s ends: %s", arguments[0], text[max(0, len(text)-1<<10):])
		}
	})
	return p
}

// nothing needs no closing.
type nothing struct{}

func (nothing) Close() error { return nil }

// listening are the addresses in the log, by the flag that names them.
func (p *program) listening() map[string]string {
	found := map[string]string{}
	for line := range bytes.Lines([]byte(p.log.Text())) {
		var said struct{ Msg, For, Address string }
		if json.Unmarshal(line, &said) == nil && said.Msg == "listening" {
			found[said.For] = said.Address // of several, the last
		}
	}
	return found
}

// await returns when a fact is one, and false if the program has ended before that.
func (p *program) await(t *testing.T, what string, is func() bool) bool {
	t.Helper()
	overdue := time.After(patient)
	for !is() {
		select {
		case <-p.Exited():
			return is()
		case <-overdue:
			t.Fatalf("%s: not within %v; %s", what, patient, p.log.Text())
		case <-time.After(5 * time.Millisecond):
		}
	}
	return true
}

// saying waits for a line of the output and returns what follows its beginning.
func (p *program) saying(t *testing.T, beginning string, nth int) (rest string) {
	t.Helper()
	if !p.await(t, beginning, func() bool { return strings.Count(p.out.Text(), beginning) > nth }) {
		t.Fatalf("the program has ended: %s", p.log.Text())
	}
	rest, _, _ = strings.Cut(strings.Split(p.out.Text(), beginning)[nth+1], "\n")
	return rest
}

// peak is the most memory that the process had, in words with what the kernel counted for its group: that of files, too.
func (p *program) peak() (told string, taken int) {
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.ID())) // none elsewhere
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	_, _ = fmt.Sscan(rest, &taken)
	taken <<= 10
	if p.group == nil {
		return fmt.Sprint(taken>>20, " MiB"), taken
	}
	return fmt.Sprintf("%d MiB (group: %d)", taken>>20, p.group.peak()>>20), taken
}
