package endtoend

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sidekeeper/sidekeeper/test/support/ensemble"
	"github.com/sidekeeper/sidekeeper/test/support/full"
)

var (
	rounds   = flag.Int("rounds", 1, "how often to run each fault that ends leases: each time with another follower")
	kills    = flag.Int("kills", 100, "how many callers and sidecars to kill at random moments")
	crowd    = flag.Int("members", 40, "how many members a group has while things are killed")
	watchers = flag.Int("watchers", 12, "how many watch them")
	seed     = flag.Uint64("seed", 0, "what the random moments come from; 0 draws one")
)

func TestMain(m *testing.M) {
	if order := os.Getenv(callerVariable); order != "" {
		os.Exit(runCaller(order))
	}
	full.AllNeed("an ensemble")
	os.Exit(runTests(m))
}

func runTests(m *testing.M) int {
	code := m.Run()
	closeShared()
	os.RemoveAll(programs)
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	return code
}

// shared is the ensemble that runs: tests with the same tick share it, and there is never more than one.
var shared struct {
	tick time.Duration
	*ensemble.Ensemble
}

func closeShared() {
	if shared.Ensemble != nil {
		shared.Close()
		shared.Ensemble = nil
	}
}

// quickTick makes everything that the ensemble's times follow from short; defaultTick is ZooKeeper's own, with which a
// server that is cut off goes on answering for ten seconds.
const (
	quickTick   = 200 * time.Millisecond
	defaultTick = 2 * time.Second
)

// ensembleOf returns an ensemble of three, all of them serving, as it is left when the test ends.
func ensembleOf(t *testing.T, tick time.Duration) *ensemble.Ensemble {
	t.Helper()
	if shared.Ensemble == nil || shared.tick != tick {
		closeShared()
		began := time.Now()
		started, err := ensemble.Start(t.Context(), ensemble.Options{
			TickTime: tick, MaxSessionTimeout: 30 * time.Second, ContainerCheck: 500 * time.Millisecond,
		})
		must(t, err)
		shared.Ensemble, shared.tick = started, tick
		t.Logf("an ensemble with a tick of %v took %v to start", tick, time.Since(began))
	}
	e := shared.Ensemble
	t.Cleanup(func() {
		repair(t, e)
		if folder := os.Getenv("KEEP_TEST_LOGS"); folder != "" && t.Failed() {
			keepLogs(t, e, folder)
		}
	})
	return e
}

// keepLogs copies what the servers of the ensemble have logged.
func keepLogs(t *testing.T, e *ensemble.Ensemble, folder string) {
	t.Helper()
	for _, server := range e.Servers() {
		log, err := os.ReadFile(server.Log())
		must(t, err)
		must(t, os.WriteFile(fmt.Sprintf("%s/%s-server-%d.log", folder, t.Name(), server.ID()), log, 0o600))
	}
}

// repair undoes what a test did to the ensemble.
func repair(t *testing.T, e *ensemble.Ensemble) {
	t.Helper()
	e.Heal()
	for _, server := range e.Servers() {
		server.Continue()
		if server.ProcessID() == 0 {
			must(t, server.Restart())
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
	defer cancel()
	must(t, e.AwaitAll(ctx))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
