package endtoend

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A command under a lock goes on while its sidecar is killed and started again; and when its runner is killed after that, the lock is
// kept for as long as the command lives: it hangs on the connection by which the runner has come back.
func TestACommandUnderALockOutlivesItsSidecar(t *testing.T) {
	e := ensembleOf(t, quickTick)
	with := quick(e)
	with.timeout = 6 * time.Second
	begin, other := resuming(t, with), startSidecar(t, with)
	killed := begin()
	killed.awaitReady(t)
	name := fmt.Sprint("command/", now())
	program, err := sidekeeper()
	must(t, err)
	command := exec.Command("sh", "-c", `exec "$0" lock run "$1" -- sh -c "echo running; exec sleep 1000" 2>&1`, program, name)
	command.Env = append(os.Environ(), "SIDEKEEPER_ADDRESS="+killed.address())
	runner := start(t, filepath.Join(t.TempDir(), "log"), command)
	runner.awaitLine(t, "running", patient)
	rival := other.acquire(t, name)
	rival.queued(t)
	killed.kill()
	begin()
	runner.awaitLine(t, "sidekeeper: contact with the ensemble is back", patient)
	await(t, "more than a session's timeout", patient, after(with.timeout+3*time.Second))
	guardian := childOf(t, command.Process.Pid)
	must(t, unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)) // whose children stay stopped when their parent has died
	defer unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
	must(t, syscall.Kill(guardian, syscall.SIGSTOP))
	runner.signal(syscall.SIGKILL)
	await(t, "a second", patient, after(time.Second))
	if _, granted, _ := rival.events.find(isGranted); granted {
		t.Error("the lock was another's while the command lived")
	}
	must(t, syscall.Kill(guardian, syscall.SIGCONT))
	rival.granted(t)
	_, err = syscall.Wait4(guardian, nil, 0, nil)
	must(t, err)
}

// childOf is the only child of a process.
func childOf(t *testing.T, parent int) int {
	t.Helper()
	processes, err := filepath.Glob("/proc/[0-9]*/stat")
	must(t, err)
	for _, process := range processes {
		line, _ := os.ReadFile(process) // it may be gone
		var number, above int
		var name, state string
		if _, err := fmt.Sscan(string(line), &number, &name, &state, &above); err == nil && above == parent {
			return number
		}
	}
	t.Fatal("the process has no child")
	return 0
}
