package mutants

import (
	"cmp"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/test/support/full"
)

// A wrong is something that is known to be wrong, and the rounds that must show it.
type wrong struct {
	mutant    string // empty: the program is right, and used in a wrong way
	arguments []string
	nemesis   string
	workload  string
	complaint string // a regular expression
	root      bool   // it takes root
}

// wrongs are go-zookeeper's own lock, a sidecar that takes an answer for a proof, sidecars that pass a lock on under a frozen
// caller, and one that forgets who waited when it is replaced. The first two are shown where a server is cut off from the others, and long
// holders are attached to it. The last ones are sidecars that wait for a log's reader, a disk or a name server, or that ask again too soon.
var wrongs = []wrong{
	{arguments: []string{"-client", "zklock"}, nemesis: "N1", workload: "W[13]", complaint: "were both sure of"},
	{mutant: "V1", nemesis: "N1", workload: "W[13]", complaint: "were both sure of"},
	{mutant: "E1", nemesis: "N19", workload: "W[139]", complaint: "how the first lost it: LEASE_CLOSED"},
	{mutant: "E2", nemesis: "N20", workload: "W[139]", complaint: "how the first lost it: LOCK_(BROKEN|REVOKED)"},
	{mutant: "Y9", nemesis: "N22", workload: "W[13]", complaint: "took another place"},
	{mutant: "B8", nemesis: "N25", workload: "W[139]", complaint: "heard only after .* that it was its turn"},
	{mutant: "B2", nemesis: "N26", workload: "W[139]", complaint: "witnessed/.* heard of it only after", root: true},
	{mutant: "B4", nemesis: "N28", workload: "W[13]", complaint: "though no caller was (setting|removing) it"},
	{mutant: "B8", nemesis: "N29", workload: "W[139]", complaint: "heard only after .* that it was its turn", root: true},
	{mutant: "B9", nemesis: "N30", workload: "W[13]", complaint: "waited at .*/unset/", root: true},
}

// What is known to be wrong must not get through a few rounds of faults on a real ensemble either. It takes minutes.
func TestRoundsOfFaultsShowWhatIsKnownToBeWrong(t *testing.T) {
	full.Needs(t, "an ensemble")
	folder := t.TempDir()
	conductor, sidecar := filepath.Join(folder, "chaos"), filepath.Join(folder, "sidekeeper")
	build(t, "-o", conductor, "./test/chaos")
	build(t, "-o", sidecar, "./cmd/sidekeeper")
	for _, w := range wrongs {
		t.Run(cmp.Or(w.mutant, "go-zookeeper's own lock")+" under "+w.nemesis, func(t *testing.T) {
			if w.root && os.Geteuid() != 0 {
				full.Lacks(t, "it takes root")
			}
			program := sidecar
			if w.mutant != "" {
				program = w.build(t)
			}
			w.isShown(t, conductor, program)
		})
	}
}

// build builds the mutant of the sidecar.
func (w wrong) build(t *testing.T) string {
	t.Helper()
	m, err := Find(w.mutant)
	if err != nil {
		t.Fatal(err)
	}
	overlay, err := m.Overlay(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "sidekeeper")
	build(t, "-o", program, "-overlay="+overlay, "./cmd/sidekeeper")
	return program
}

func build(t *testing.T, arguments ...string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", append([]string{"build"}, arguments...)...)
	command.Dir = filepath.Join("..", "..")
	if said, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
}

// isShown plays rounds, one of which must show what is wrong.
func (w wrong) isShown(t *testing.T, conductor, sidecar string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	arguments := append([]string{
		"-sidecar", sidecar, "-nemesis", w.nemesis, "-workload", w.workload, "-profile", "fast", "-rounds", "6", "-out", t.TempDir(),
	}, w.arguments...)
	command := exec.CommandContext(ctx, conductor, arguments...)
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = time.Minute
	said, err := command.CombinedOutput()
	var ended *exec.ExitError
	if !errors.As(err, &ended) || ended.ExitCode() != 1 {
		t.Fatalf("it ended with %v\n%s", err, said)
	}
	shown, complaint := 0, regexp.MustCompile("VIOLATION .*"+w.complaint)
	for line := range strings.Lines(string(said)) {
		if complaint.MatchString(line) {
			t.Log(strings.TrimSpace(line))
			shown++
		}
	}
	if shown == 0 {
		t.Errorf("nothing says %q\n%s", w.complaint, said)
	}
}
