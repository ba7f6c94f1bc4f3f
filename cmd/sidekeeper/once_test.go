package main

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/sidekeepertest"
)

// A worker runs commands once at a sidecar.
type worker struct {
	t       *testing.T
	sidecar *sidekeepertest.Sidecar
}

// begins runs a command of this test binary once for a key.
func (w worker) begins(key string, command ...string) *program {
	w.t.Helper()
	return start(w.t, w.sidecar.Address(), append([]string{"lock", "run", "nightly", "--once", key, "--owner", "me"}, command...)...)
}

// record is the row of a key without the time.
func (w worker) record(key string) string {
	w.t.Helper()
	stdout, _, _ := output(w.t, "--address", w.sidecar.Address(), "once", "show", "nightly", key)
	_, row, _ := strings.Cut(stdout, "\n")
	fields := strings.Fields(row)
	if len(fields) < 8 {
		return stdout
	}
	return strings.Join(append(fields[:4], fields[7:]...), " ")
}

func TestACommandSucceedsOnceForAKey(t *testing.T) {
	t.Parallel()
	w := worker{t, sidekeepertest.Start(t, sidekeepertest.Options{})}
	w.begins("k", "--", os.Args[0], "environment").want(t, 3) // which is a failure
	if got := w.record("k"); got != "k failed 1 me exit code 3" {
		t.Errorf("record of a failure: %s", got)
	}
	second := w.begins("k", "--", "sh", "-c", `echo "$SIDEKEEPER_ONCE_KEY $SIDEKEEPER_ONCE_ATTEMPT $SIDEKEEPER_LOCK_NAME"`)
	second.wantLine(t, "k 2 nightly")
	second.want(t, 0)
	third := w.begins("k", "--", "sh", "-c", "echo again")
	third.want(t, 0, "sidekeeper: nightly k was done at 20", " by me\n")
	if line := receive(t, third.lines); line != "" {
		t.Errorf("it ran again: %s", line)
	}
	if got := w.record("k"); got != "k succeeded 2 me -" {
		t.Errorf("record of a success: %s", got)
	}
	w.begins("k/2", "--", "true").want(t, 64, `key is "k/2": one segment, without /`)
}

func TestACommandThatIsKilledIsLost(t *testing.T) {
	t.Parallel()
	w := worker{t, sidekeepertest.Start(t, sidekeepertest.Options{})}
	w.begins("k", "--", os.Args[0], "environment").want(t, 3)
	killed := w.begins("k", "--", os.Args[0], "obey")
	killed.wantLine(t, "ready")
	killed.signal(syscall.SIGKILL)
	receive(t, killed.code)
	w.begins("k", "--on-loss", "skip", "--", "true").want(t, 75, "attempt 2 LOST at ", "NOT_REPEATED")
	w.begins("k", "--", "false").want(t, 1)
	w.begins("k", "--", "true").want(t, 75, "attempt 3 FAILED at ")
	if _, _, code := output(t, "--operator-address", w.sidecar.Address(), "once", "forget", "nightly", "k"); code != 0 {
		t.Errorf("forget ends with %d", code)
	}
	w.begins("k", "--", "true").want(t, 0)
}

func TestACommandThatIsEndedForItsLockIsLost(t *testing.T) {
	t.Parallel()
	w := worker{t, sidekeepertest.Start(t, sidekeepertest.Options{})}
	first := w.begins("k", "--on-revoke", "ignore", "--", "sh", "-c", `echo ready; trap "" TERM; read -r line </dev/null; sleep 600 & wait`)
	first.wantLine(t, "ready")
	if err := w.sidecar.ExpireLock(t.Context(), "nightly"); err != nil {
		t.Fatal(err)
	}
	first.want(t, 70)
	if got := w.record("k"); got != "k lost 1 me -" {
		t.Errorf("record of what was lost: %s", got)
	}
}

// lost expects that the newest attempt of a key is, and that it is not repeated where losses are not.
func (w worker) lost(key string) {
	w.t.Helper()
	if got := w.record(key); got != key+" lost 1 me -" {
		w.t.Errorf("record of what was lost: %s", got)
	}
	w.begins(key, "--on-loss", "skip", "--", "true").want(w.t, 75, "NOT_REPEATED")
}

func TestACommandThatDiesOfASignalThatItIsSentIsLost(t *testing.T) {
	t.Parallel()
	w := worker{t, sidekeepertest.Start(t, sidekeepertest.Options{})}
	interrupted := w.begins("interrupted", "--", os.Args[0], "obey")
	interrupted.wantLine(t, "ready")
	interrupted.signal(syscall.SIGINT)
	interrupted.want(t, 128+2)
	w.lost("interrupted")

	revoked := w.begins("revoked", "--", os.Args[0], "obey")
	revoked.wantLine(t, "ready")
	address := w.sidecar.Address()
	if _, stderr, code := output(t, "--address", address, "--operator-address", address, "lock", "revoke", "nightly", "--reason", "x"); code != 0 {
		t.Errorf("revoke ends with %d: %s", code, stderr)
	}
	revoked.want(t, 128+15)
	w.lost("revoked")

	handled := w.begins("handled", "--", os.Args[0], "polite")
	handled.wantLine(t, "ready")
	handled.signal(syscall.SIGTERM)
	handled.want(t, 5)
	if got := w.record("handled"); got != "handled failed 1 me exit code 5" {
		t.Errorf("record of a command that ends by itself: %s", got)
	}
	own := w.begins("own", "--", "sh", "-c", "exit 70")
	own.want(t, 70)
	if got := w.record("own"); got != "own failed 1 me exit code 70" {
		t.Errorf("record of a command that exits as a guardian does: %s", got)
	}
}

func TestACommandThatItsGuardianKillsIsLost(t *testing.T) {
	t.Parallel()
	w := worker{t, sidekeepertest.Start(t, sidekeepertest.Options{})}
	frozen := w.begins("k", "--", os.Args[0], "family", "stay")
	processes := frozen.numbers(1)
	frozen.signal(syscall.SIGSTOP)
	for deadline := time.Now().Add(patience); len(living(processes)) > 0 && time.Now().Before(deadline); {
		<-time.After(5 * time.Millisecond)
	}
	frozen.signal(syscall.SIGCONT)
	frozen.want(t, 70)
	w.lost("k")
}
