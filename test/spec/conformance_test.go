//go:build spec

package spec_test

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/test/traces"
)

var (
	python  = flag.String("python", "", "the `interpreter` that has what tests of the Python client take")
	clients = flag.String("clients", "Go,Python", "the clients that play the scenarios; TypeScript, whose tests must be built, and Java, too")
)

// devTick is the tick of the ensemble that `sidekeeper dev` has.
const devTick = time.Second

// What sidecars do while clients play the scenarios that all of them must pass, and what the ensemble commits that each sidecar has of its own,
// is what the models can do, too. The clients have all that they hold on their leases' streams.
func TestWhatSidecarsDoForTheClientsTheModelsDo(t *testing.T) { // beside no other test: scenarios have their times
	sidecar := build(t, "cmd/sidekeeper", "-tags=traced")
	players := map[string]struct {
		folder  string
		command []string
	}{
		"Go":         {"../goclient", []string{"go", "test", "-count=1", ".", "-run=^TestConformance$", "-orderly", "-sidecar=" + sidecar}},
		"Python":     {"../../clients/python", []string{interpreter(), "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/test_conformance.py"}},
		"TypeScript": {"../../clients/typescript", []string{"node", "--test", "dist/test/conformance.test.js"}},
		"Java":       {"../../clients/java", []string{"mvn", "--batch-mode", "--quiet", "test", "-Dtest=ConformanceTest"}},
	}
	for name := range strings.SplitSeq(*clients, ",") {
		client, known := players[name]
		if !known {
			t.Fatalf("-clients: %q is none of Go, Python, TypeScript and Java", name)
		}
		t.Run(name, func(t *testing.T) {
			if client.command[0] == "" {
				t.Fatal("missing: -python, which `make spec` gives")
			}
			t.Parallel()
			steps := t.TempDir()
			command := exec.CommandContext(t.Context(), client.command[0], client.command[1:]...)
			command.Dir = client.folder
			command.Env = append(os.Environ(), "SIDEKEEPER_TEST_TRACES="+steps, "SIDEKEEPER_PROGRAM="+sidecar)
			if said, err := command.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, said)
			}
			recorded, err := traces.Embedded(steps, "/sidekeeper/locks")
			if err != nil {
				t.Fatal(err)
			}
			refused, looked := judge(t, recorded, devTick)
			for _, each := range refused {
				t.Error(each)
			}
			t.Logf("%d traces of %d sidecars", looked, len(recorded))
			if looked < 100 {
				t.Error("too little is looked at")
			}
			isEnough(t, recorded)
		})
	}
}

// isEnough sees that what was recorded tells enough of what clients are told.
func isEnough(t *testing.T, recorded [][]traces.Line) {
	t.Helper()
	counted := map[string]int{}
	for _, lines := range recorded {
		for _, lock := range traces.Locks(lines) {
			counted["claims"] += lock.Claims
			for _, step := range lock.Steps {
				counted[step.Kind]++
			}
		}
	}
	t.Log(counted)
	for kind, least := range map[string]int{
		"granted": 75, "carried": 75, "lease_told": 30, "ended": 20, "status": 20, "stopped": 20, "released": 25, "deleted": 50, "lost": 18,
		"claims": 1,
	} {
		if counted[kind] < least {
			t.Errorf("%s %d times, less than %d", kind, counted[kind], least)
		}
	}
}

// interpreter is the absolute path of the Python that was given.
func interpreter() string {
	if *python == "" {
		return ""
	}
	path, _ := filepath.Abs(*python)
	return path
}
