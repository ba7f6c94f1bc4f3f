//go:build spec

package spec_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/test/mutants"
	"github.com/sidekeeper/sidekeeper/test/traces"
)

var (
	schedules = flag.Int("schedules", 10, "how many random schedules of each stage to hold against the models")
	report    = flag.String("report", "", "a file that says which of them were admitted, of this very code: these are not played again")
	mutant    = flag.String("mutants", "V1", "the mutants that traces alone must catch, in a fifth as many schedules")
)

// schedulesOf are the random schedules from the first on.
type schedulesOf struct{ first, count int }

// batch is how many schedules are played, judged and noted as admitted at once.
const batch = 10

// sessionsEach is how many sessions of a schedule are looked at: those of which there is most to say.
const sessionsEach = 8

// What the code has done in random schedules on a simulated ensemble, and what the ensemble has done, is what the models can do, too.
func TestWhatTheCodeDoesTheModelsDo(t *testing.T) {
	t.Parallel()
	admitted, looked := readReport(t), 0
	for first := 1; first <= *schedules; first += batch {
		some := schedulesOf{first, min(batch, *schedules-first+1)}
		if count, known := admitted[some]; known {
			looked += count
			continue
		}
		refused, count := judge(t, play(t, "", some), realTick)
		for _, each := range refused {
			t.Errorf("of schedules from %d: %s", first, each)
		}
		if looked += count; len(refused) == 0 {
			noteAdmitted(t, some, count)
		}
	}
	t.Logf("%d traces of %d schedules on each stage", looked, *schedules)
	if looked < *schedules*len(stages)*sessionsEach {
		t.Error("too little is looked at")
	}
}

func TestTracesAloneCatchMutants(t *testing.T) {
	for id := range strings.SplitSeq(*mutant, ",") {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			m, err := mutants.Find(id)
			if err != nil {
				t.Fatal(err)
			}
			overlay, err := m.Overlay(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			refused, looked := judge(t, play(t, overlay, schedulesOf{1, max(2, *schedules/5)}), realTick)
			if len(refused) == 0 {
				t.Fatalf("none of %d traces shows it: %s", looked, m.Bug)
			}
			t.Logf("%d of %d traces show it: %s\n%s", len(refused), looked, m.Bug, refused[0])
		})
	}
}

// stages are where random schedules are played: recipes on sessions, and services on those.
var stages = []struct{ folder, play string }{
	{"../simulation", "TestNobodyHoldsBesideAnotherWhateverFails"},
	{"../../service", "TestAStreamEndsBeforeTheNextGrantWhateverFails"},
	{"../../service", "TestALeasesStreamTellsOfAnEndBeforeTheNextGrantWhateverFails"},
}

// play plays random schedules on each stage, of a tree in which some files are replaced, and returns what was recorded.
func play(t *testing.T, overlay string, of schedulesOf) (recorded [][]traces.Line) {
	t.Helper()
	for _, stage := range stages {
		folder := t.TempDir()
		command := exec.CommandContext(t.Context(), "go", "test", "-count=1", "-vet=off", "-overlay="+overlay, stage.folder,
			"-run=^"+stage.play+"$", "-cpu=1", "-traces="+folder, fmt.Sprint("-seed=", of.first), fmt.Sprint("-seeds=", of.count))
		said, failed := command.CombinedOutput()
		played, err := traces.Read(folder)
		if err != nil || len(played) != of.count || failed != nil && overlay == "" {
			t.Fatalf("%d schedules, %v, %v\n%s", len(played), err, failed, said)
		}
		recorded = append(recorded, played...)
	}
	return recorded
}

// judge has TLC hold all that was recorded against the models, and returns what they refuse, and of how many.
func judge(t *testing.T, recorded [][]traces.Line, tick time.Duration) (refused []string, looked int) {
	t.Helper()
	var locks []traces.LockTrace
	sessions := map[time.Duration][]traces.SessionTrace{}
	for _, lines := range recorded {
		locks = append(locks, traces.Locks(lines)...)
		all := traces.Sessions(lines)
		for _, each := range all[:min(len(all), sessionsEach)] {
			sessions[each.Timeout] = append(sessions[each.Timeout], each)
			looked++
		}
	}
	writers, readers := 2, 0
	for _, each := range locks {
		writers, readers = max(writers, each.Writers), max(readers, each.Readers)
	}
	if readers < 2 {
		t.Error("no readers share a lock")
	}
	for number, at := range lockModel(writers, readers).refuse(t, locks) {
		refused = append(refused, refusal("LockTrace", number, at, locks[number].Steps))
	}
	for timeout, some := range sessions {
		for number, at := range sessionModel(timeout, tick).refuse(t, some) {
			refused = append(refused, refusal("SessionTrace", number, at, some[number].Steps))
		}
	}
	return refused, looked + len(locks)
}

// refusal tells of a trace that a model does not admit, with the steps before the first that cannot be taken, and that one.
func refusal[S any](model string, number, at int, steps []S) string {
	var last []string
	for _, step := range steps[max(0, at-12):min(at, len(steps))] {
		last = append(last, fmt.Sprintf("%+v", step))
	}
	return fmt.Sprintf("trace %d is refused by %s at step %d; the last ones are\n  %s", number, model, at, strings.Join(last, "\n  "))
}

// A traceModel is a module that is held against traces, and the one that it stands on.
type traceModel[T traces.Trace] struct {
	module, base string
	bounds       bounds
}

// lockModel is Lock.tla, of which a trace is as long as it likes.
func lockModel(writers, readers int) traceModel[traces.LockTrace] {
	var all []string
	for i := range writers {
		all = append(all, strconv.Itoa(i+1))
	}
	for i := range readers {
		all = append(all, strconv.Itoa(traces.Readers+i+1))
	}
	return traceModel[traces.LockTrace]{"LockTrace", "Lock", bounds{
		"Callers": "{" + strings.Join(all, ", ") + "}", "Readers": "{" + strings.Join(all[writers:], ", ") + "}",
		"Carried": "{}", "MaxLog": "1000000", "MaxFailures": "1000000", "Mistake": `"none"`, // who is carried, the trace says
	}}
}

// The ticks of ensembles: as they come, and where time is short.
const (
	realTick = 2 * time.Second
	fastTick = 200 * time.Millisecond
)

// sessionModel is Session.tla in microseconds.
func sessionModel(timeout, tick time.Duration) traceModel[traces.SessionTrace] {
	micro := func(d time.Duration) string { return strconv.FormatInt(d.Microseconds(), 10) }
	return traceModel[traces.SessionTrace]{"SessionTrace", "Session", session.with(bounds{
		"T": micro(timeout), "Drift": micro(timeout / 100), "Half": micro(tick / 2),
		// What was answered at the very end of the slack counts in the code, where answers take time, and not in the model, where they take none.
		"Delta":   micro(100*time.Millisecond - time.Microsecond),
		"MaxTime": "0", "MaxBeats": "0", "MaxAttachments": "1000000", "Formula": `"code"`,
	})}
}

var (
	admitted = regexp.MustCompile(`<<"admitted", (\d+)>>`)
	reached  = regexp.MustCompile(`<<"reached", (\d+), (\d+)>>`)
)

// mostRefused is of how many traces that are refused it is found out at which step.
const mostRefused = 40

// refuse returns which of the traces the model does not admit, by their number, and the first step of each that cannot be taken.
func (m traceModel[T]) refuse(t *testing.T, all []T) map[int]int {
	t.Helper()
	passed := map[int]bool{}
	for _, found := range admitted.FindAllStringSubmatch(m.check(t, traces.Module(all), false), -1) {
		passed[number(found[1])] = true
	}
	refused, numbers, again := map[int]int{}, []int{}, []T{}
	for i, each := range all {
		if !passed[i+1] && len(again) < mostRefused {
			numbers, again = append(numbers, i), append(again, each)
		}
	}
	if len(again) == 0 {
		return refused
	}
	for _, found := range reached.FindAllStringSubmatch(m.check(t, traces.Module(again), true), -1) {
		i := numbers[number(found[1])-1]
		refused[i] = max(refused[i], number(found[2]))
	}
	return refused
}

func number(digits string) int {
	n, err := strconv.Atoi(digits)
	if err != nil {
		panic(err)
	}
	return n
}

// check has TLC go through traces, and returns what it says.
func (m traceModel[T]) check(t *testing.T, module string, loud bool) string {
	t.Helper()
	folder := t.TempDir()
	var configuration strings.Builder
	fmt.Fprintf(&configuration, "SPECIFICATION TraceSpec\nINVARIANT Tells\nCONSTANTS\n  Loud = %s\n", strings.ToUpper(strconv.FormatBool(loud)))
	for name, value := range m.bounds {
		fmt.Fprintf(&configuration, "  %s = %s\n", name, value)
	}
	files := map[string]string{m.module + ".cfg": configuration.String(), "Traces.tla": module}
	for _, name := range []string{m.module, m.base} {
		text, err := os.ReadFile(name + ".tla")
		if err != nil {
			t.Fatal(err)
		}
		files[name+".tla"] = string(text)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	said := checkIn(t, folder, m.module, checkerJar(t))
	if !strings.Contains(said, "Finished in") || strings.Contains(said, "Error:") {
		t.Fatalf("%s cannot be held against traces:\n%s", m.module, said)
	}
	return said
}
