package supervise

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sidekeeper/sidekeeper/test/support/full"
)

// TestMain runs a shell in place of the tests if its name is the first argument, as what a guardian is: the parent of all that its
// children leave behind.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "/bin/sh" {
		adoptOrphans()
		panic(syscall.Exec(os.Args[1], os.Args[1:], os.Environ()))
	}
	os.Exit(m.Run())
}

// The first thread does not end with its goroutine, as trace wants. Only here is it certain that the main goroutine has it, and keeps it.
func init() { runtime.LockOSThread() } //nolint:gochecknoinits // as said

// The root is what a guardian within a command is: it has a descriptor open that its descendants have not. These are in a session
// of their own, and start themselves anew and end, again and again.
const (
	root   = `exec 4>&-; setsid sh "$1" 3>&- 4>&5 5>&- & echo started; exec 5>&-; sleep 1000 3>&- & wait`
	leader = `sh "$0.flight" & echo started; sleep 1000`
)

// A descendant that was missed goes on when its guardian is dead, and the guardian's connection is closed with that.
func TestAProcessIsKilledAfterItsDescendants(t *testing.T) {
	adopt(t)
	for range 20 {
		killFamily(t)
	}
}

// adopt makes this process the parent of orphans while the test runs, and leaves none of them.
func adopt(t *testing.T) {
	t.Helper()
	adoptOrphans()
	t.Cleanup(func() {
		endOffspring()
		_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
	})
}

func killFamily(t *testing.T) {
	script := filepath.Join(t.TempDir(), "leader")
	for file, text := range map[string]string{script: leader, script + ".flight": `sh "$0" &`} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ofRoot, atRoot := pipe(t)
	ofOthers, atOthers := pipe(t)
	output, said := pipe(t)
	command := exec.Command(os.Args[0], "/bin/sh", "-c", root, "root", script)
	command.Stdout, command.ExtraFiles = said, []*os.File{atRoot, nil, atOthers}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	for _, file := range []*os.File{atRoot, atOthers, said} {
		file.Close()
	}
	if _, err := io.ReadFull(output, make([]byte, len("started\nstarted\n"))); err != nil {
		t.Fatal(err)
	}
	killed := make(chan struct{})
	go func() {
		defer close(killed)
		endOffspring()
	}()
	_, _ = ofRoot.Read(make([]byte, 1))
	others := []unix.PollFd{{Fd: int32(ofOthers.Fd())}}
	if _, err := unix.Poll(others, 0); others[0].Revents&unix.POLLHUP == 0 {
		t.Errorf("its descendants still work when it is dead: %v", err)
	}
	<-killed
}

// branches are two: in the deeper one is what is held.
const branches = `sh -c 'sleep 1000 & echo $$ $!; wait' & read done; sh -c 'sh -c "sleep 1000 & echo \$\$ \$!; wait" & wait' & wait`

// What is held back when it ends stands for what sleeps where no signal wakes it.
func TestWhatTakesLongToDieHoldsUpItsAncestorsAlone(t *testing.T) {
	leader, output, input := start(t, branches)
	adopt(t)
	var parent, child, heldsParent, held int
	scan(t, output, &parent, &child)
	input.Close()
	scan(t, output, &heldsParent, &held)
	over := make(chan struct{})
	defer close(over)
	trace(t, held, unix.PTRACE_O_TRACEEXIT, func() { <-over })
	for dead, began := false, time.Now(); !dead && time.Since(began) < patience; _, dead = look(parent) {
		killOffspring()
	}
	for process, want := range map[int]bool{leader: false, parent: true, child: true, heldsParent: false, held: false} {
		if _, dead := look(process); dead != want {
			t.Errorf("process %d: dead %t", process, dead)
		}
	}
}

// What has left the family, as what is started by others than its parents does, is still in the group. A process that is traced tells
// of each stop, unless it is killed before it comes to that.
func TestTheWholeGroupIsStoppedBeforeAnyOfItIsKilled(t *testing.T) {
	for range 20 {
		if stoppedFirst(t) {
			return
		}
	}
	t.Error("it was not stopped")
}

func stoppedFirst(t *testing.T) (stopped bool) {
	leader, output, input := start(t, `sleep 1000 & echo $!; read done`)
	var stranger int
	scan(t, output, &stranger)
	ended := make(chan struct{})
	trace(t, stranger, 0, func() {
		defer close(ended)
		for status := syscall.WaitStatus(0); !status.Signaled(); stopped = stopped || status.StopSignal() == unix.SIGSTOP {
			if _, err := syscall.Wait4(stranger, &status, unix.WALL, nil); err != nil {
				t.Error(err)
				return
			}
		}
	})
	input.Close()
	for parent := leader; parent == leader; parent, _ = look(stranger) {
	}
	(&guardian{group: leader}).killAll()
	<-ended
	return stopped
}

// start starts a shell with a group of its own, which is ended with the test.
func start(t *testing.T, script string) (leader int, output io.Reader, input io.Closer) {
	t.Helper()
	output, said := pipe(t)
	command := exec.Command("sh", "-c", script)
	command.Stdout, command.SysProcAttr = said, &syscall.SysProcAttr{Setpgid: true}
	input, err := command.StdinPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	said.Close()
	return command.Process.Pid, output, input
}

func scan(t *testing.T, from io.Reader, numbers ...any) {
	t.Helper()
	if _, err := fmt.Fscanln(from, numbers...); err != nil {
		t.Fatal(err)
	}
}

// trace has this process be told of another one's stops for as long as a function runs.
func trace(t *testing.T, process int, options uintptr, during func()) {
	t.Helper()
	traced := make(chan syscall.Errno)
	go func() {
		runtime.LockOSThread() // whose end is that of the tracing
		_, _, err := unix.RawSyscall6(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(process), 0, options, 0, 0)
		if traced <- err; err == 0 {
			during()
		}
	}()
	if err := <-traced; err != 0 {
		_ = syscall.Kill(process, unix.SIGKILL)
		full.Lacks(t, "no process can be traced here:", err)
	}
}

// patience is how long a test waits for what must happen.
const patience = 10 * time.Second

func pipe(t *testing.T) (reader, writer *os.File) {
	t.Helper()
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { reader.Close() })
	return reader, writer
}

func TestAProcessThatHasTakenTheNumberOfAnotherIsLeftAlone(t *testing.T) {
	command := exec.Command("sleep", "1000")
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	stranger := relative{command.Process.Pid, os.Getpid() + 1}
	stranger.signal(unix.SIGTERM)
	own := relative{command.Process.Pid, os.Getpid()}
	own.signal(unix.SIGKILL)
	_ = command.Wait()
	if status, _ := command.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != unix.SIGKILL {
		t.Errorf("it ended with %v", command.ProcessState)
	}
}
