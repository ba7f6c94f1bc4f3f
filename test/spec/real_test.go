//go:build spec

package spec_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/sidekeeper/sidekeeper/test/chaos/txnlog"
	"github.com/sidekeeper/sidekeeper/test/traces"
)

var rounds = flag.Int("rounds", 1, "how many rounds of faults on a real ensemble to hold against the models: half a minute each")

// What sidecars say that they do on a real ensemble, in rounds of faults, and what its servers have logged, is what the models can do, too.
func TestWhatSidecarsDoOnARealEnsembleTheModelsDo(t *testing.T) {
	sidecar, chaos := build(t, "cmd/sidekeeper", "-tags=traced"), build(t, "test/chaos")
	for round := range *rounds {
		recorded := disturb(t, sidecar, chaos, round)
		refused, looked := judge(t, [][]traces.Line{recorded}, fastTick)
		for _, each := range refused {
			t.Errorf("round %d: %s", round, each)
		}
		t.Logf("round %d: %d traces of %d steps", round, looked, len(recorded))
		if looked < 1+sessionsEach {
			t.Error("too little is looked at")
		}
	}
}

func build(t *testing.T, program string, options ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), filepath.Base(program))
	command := exec.CommandContext(t.Context(), "go", append(append([]string{"build", "-o", path}, options...), "../../"+program)...)
	if said, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	return path
}

// disturb plays one round in which a follower is cut from its leader again and again, and returns what was done about locks.
func disturb(t *testing.T, sidecar, chaos string, round int) []traces.Line {
	t.Helper()
	steps, out := t.TempDir(), t.TempDir()
	command := exec.CommandContext(t.Context(), chaos, "-sidecar", sidecar, "-rounds=1", fmt.Sprint("-seed=", round+1), "-profile=fast",
		"-nemesis=N1", "-workload=W1|W8|W10", "-keep", "-out", out)
	command.Env = append(os.Environ(), "SIDEKEEPER_TEST_TRACES="+steps)
	said, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	servers, err := filepath.Glob(filepath.Join(out, "rounds", "*", "server-*", "data"))
	if err != nil || len(servers) != 3 { // more if the machine had too much to do, so that the round was played once more
		t.Fatalf("%d servers, %v\n%s", len(servers), err, said)
	}
	log, err := txnlog.Read(0, servers...)
	if err != nil {
		t.Fatal(err)
	}
	sidecars, err := traces.Read(steps)
	if err != nil {
		t.Fatal(err)
	}
	return traces.Real(log, sidecars, "/sidekeeper/locks")
}
