package supervise

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// The root is what a guardian within a command is: it has a descriptor open that its descendants have not. These are in a session
// of their own, and start themselves anew and end, again and again.
const (
	root   = `exec 4>&-; setsid sh "$1" 3>&- 4>&5 5>&- & echo started; exec 5>&-; sleep 1000 3>&- & wait`
	leader = `sh "$0.flight" & echo started; sleep 1000`
)

// A descendant that was missed goes on when its guardian is dead, and the guardian's connection is closed with that.
func TestAProcessIsKilledAfterItsDescendants(t *testing.T) {
	t.Cleanup(func() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0) })
	adoptOrphans()
	for range 20 {
		killFamily(t)
	}
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
	command := exec.Command("sh", "-c", root, "root", script)
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
	if descriptor := stranger.signal(unix.SIGTERM); descriptor >= 0 {
		t.Error("what was found had another parent")
	}
	own := relative{command.Process.Pid, os.Getpid()}
	unix.Close(own.signal(unix.SIGKILL))
	_ = command.Wait()
	if status, _ := command.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != unix.SIGKILL {
		t.Errorf("it ended with %v", command.ProcessState)
	}
}
