package endtoend

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/test/support/ensemble"
)

// A restored is an ensemble whose servers' data are put back.
type restored struct {
	*testing.T
	*ensemble.Ensemble
}

func (r restored) data(s *ensemble.Server) string {
	return filepath.Join(filepath.Dir(s.Log()), "version-2")
}

// between stops all servers, does something with each one's data, and starts them again.
func (r restored) between(do func(s *ensemble.Server)) {
	r.Helper()
	for _, server := range r.Servers() {
		server.Stop()
	}
	for _, server := range r.Servers() {
		do(server)
	}
	for _, server := range r.Servers() {
		must(r.T, server.Restart())
	}
	must(r.T, r.AwaitAll(r.Context()))
}

// token is that of a hold, through a sidecar of its own.
func (r restored) token() int64 {
	r.Helper()
	s := startSidecar(r.T, quick(r.Ensemble))
	defer s.kill()
	return s.acquire(r.T, "restored").granted(r.T).token
}

// What docs/runbook.md says of an ensemble that is restored. A sidecar that runs all the while finds it unasked, and grants no token again; one
// that has been started since cannot know.
func TestTokensOfARestoredEnsembleGrowOnceItsEpochIsSet(t *testing.T) {
	e, err := ensemble.Start(t.Context(), ensemble.Options{TickTime: quickTick, MaxSessionTimeout: 30 * time.Second})
	must(t, err)
	t.Cleanup(e.Close)
	r, backup := restored{t, e}, t.TempDir()
	copyOf := func(s *ensemble.Server) string { return filepath.Join(backup, strconv.Itoa(s.ID())) }
	r.between(func(s *ensemble.Server) { must(t, os.CopyFS(copyOf(s), os.DirFS(r.data(s)))) })
	r.between(func(*ensemble.Server) {})
	running, remembered := startSidecar(t, quick(e)), int64(0)
	for range 100 {
		hold := running.acquire(t, "restored")
		remembered = hold.granted(t).token
		hold.release(t)
	}

	restore := func(s *ensemble.Server) {
		must(t, os.RemoveAll(r.data(s)))
		must(t, os.CopyFS(r.data(s), os.DirFS(copyOf(s))))
	}
	r.between(restore)
	for began := now(); running.gauge(t, "sidekeeper_ensemble_restores_total") == 0; await(t, "a moment", patient, after(50*time.Millisecond)) {
		if now().since(began) > patient {
			t.Fatal("the sidecar that runs does not find it")
		}
	}
	if end := told(running.refused(t, "restored", waiting(time.Second))); end != "Unavailable ENSEMBLE_UNREACHABLE" {
		t.Errorf("asked of the sidecar that runs: %s", end)
	}
	if token := r.token(); token >= remembered {
		t.Errorf("restored, it grants %d after %d: this test shows nothing", token, remembered)
	}
	r.between(func(s *ensemble.Server) {
		restore(s)
		epoch := strconv.FormatInt(remembered>>32, 10)
		must(t, os.WriteFile(filepath.Join(r.data(s), "acceptedEpoch"), []byte(epoch), 0o600))
	})
	running.awaitReady(t)
	for _, token := range []int64{r.token(), running.acquire(t, "restored").granted(t).token} {
		if token <= remembered {
			t.Errorf("with the epoch of %d it grants %d", remembered, token)
		}
	}
}
