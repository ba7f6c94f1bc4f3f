package mutants_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/mutants"
)

// What is known to be wrong must not get through a few rounds of faults on a real ensemble either: go-zookeeper's own lock, and a
// sidecar that takes an answer for a proof.
func TestRoundsOfFaultsShowWhatIsKnownToBeWrong(t *testing.T) {
	if !*all {
		t.Skip("takes minutes: only with -all, as in `make chaos`")
	}
	folder := t.TempDir()
	conductor, sidecar, wrong := filepath.Join(folder, "chaos"), filepath.Join(folder, "sidekeeper"), filepath.Join(folder, "wrong")
	trusting, err := mutants.Find("V1")
	if err != nil {
		t.Fatal(err)
	}
	overlay, err := trusting.Overlay(folder)
	if err != nil {
		t.Fatal(err)
	}
	build(t, "-o", conductor, "./internal/chaos")
	build(t, "-o", sidecar, "./cmd/sidekeeper")
	build(t, "-o", wrong, "-overlay="+overlay, "./cmd/sidekeeper")
	for name, arguments := range map[string][]string{
		"go-zookeeper's own lock": {"-client", "zklock", "-sidecar", sidecar},
		trusting.Bug:              {"-sidecar", wrong},
	} {
		t.Run(name, func(t *testing.T) { showsViolations(t, conductor, arguments...) })
	}
}

func build(t *testing.T, arguments ...string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", append([]string{"build"}, arguments...)...)
	command.Dir = filepath.Join("..", "..")
	if said, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
}

// showsViolations plays rounds in which a server is cut off from the others, and long holders are attached to it.
func showsViolations(t *testing.T, conductor string, arguments ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	arguments = append(arguments, "-nemesis", "^N1$", "-workload", "^W[13]$", "-profile", "fast", "-rounds", "6", "-out", t.TempDir())
	command := exec.CommandContext(ctx, conductor, arguments...)
	command.Cancel = func() error { return command.Process.Signal(os.Interrupt) }
	command.WaitDelay = time.Minute
	said, err := command.CombinedOutput()
	var ended *exec.ExitError
	if !errors.As(err, &ended) || ended.ExitCode() != 1 {
		t.Fatalf("it ended with %v\n%s", err, said)
	}
	for line := range strings.Lines(string(said)) {
		if strings.Contains(line, "VIOLATION") {
			t.Log(strings.TrimSpace(line))
		}
	}
}
