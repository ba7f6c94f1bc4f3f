package documents

import (
	"context"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/sidekeeper/sidekeeper/test/support/process"
)

// shell reads commands from descriptor 3, each with a NUL behind it, and runs them one after the other, as an
// interactive shell does: their status is kept for the next, and Ctrl-C ends the command and not the shell. When
// descriptor 4 ends, since the test has, however that was, all that the shell has started is killed.
const shell = `(read -r -u 4; kill -KILL -- -$$) 3<&- >/dev/null 2>&1 &
exec 4<&-
trap : INT
status=0
while IFS= read -r -d '' -u 3 command; do
  (exit "$status")
  eval "$command" </dev/null 3<&-
  status=$?
  printf '\036%d\n' "$status"
done`

// A terminal is a shell in which a document's commands are typed.
type terminal struct {
	*process.Process
	commands io.WriteCloser
	life     io.Closer
	output   *output
	busy     bool // a command was typed and is not known to have ended
}

func (s *scene) open(t *testing.T) *terminal {
	t.Helper()
	commands, typed, err := os.Pipe()
	must(t, err)
	lives, life, err := os.Pipe()
	must(t, err)
	out := newOutput()
	command := exec.Command("bash", "-c", shell)
	command.Dir, command.Env = s.folder, s.environment(t)
	command.ExtraFiles = []*os.File{commands, lives}
	command.Stdout, command.Stderr = out, out
	started, err := s.nursery.Start(command, io.NopCloser(nil))
	must(t, err)
	commands.Close()
	lives.Close()
	return &terminal{Process: started, commands: typed, life: life, output: out}
}

func (w *terminal) enter(command string) {
	w.output.clear()
	w.busy = true
	_, _ = io.WriteString(w.commands, command+"\x00") // a shell that has ended shows nothing, which is noticed
}

// close ends what runs as Ctrl-C does, and then the shell.
func (w *terminal) close(ctx context.Context) bool {
	inTime := true
	if w.busy {
		w.Send(syscall.SIGINT)
		inTime = w.output.await(ctx, func(_ string, ended bool, _ string) bool { return ended })
	}
	w.commands.Close()
	if inTime {
		<-w.Exited()
	}
	w.Kill()
	w.life.Close()
	return inTime
}

// An output is what a terminal shows of its last command.
type output struct {
	mutex   sync.Mutex
	text    strings.Builder
	from    int           // what is behind it was not yet compared
	changed chan struct{} // closed and made anew with each change
}

func newOutput() *output { return &output{changed: make(chan struct{})} }

func (o *output) Write(text []byte) (int, error) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.text.Write(text)
	close(o.changed)
	o.changed = make(chan struct{})
	return len(text), nil
}

func (o *output) clear() {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.text.Reset()
	o.from = 0
}

// consume tells that so much more was compared.
func (o *output) consume(length int) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.from += length
}

// uncompared is what was not yet compared.
func (o *output) uncompared() string {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	return o.text.String()[o.from:]
}

// look returns what was not yet compared, whether the command has ended, and with which status.
func (o *output) look() (text string, ended bool, status string, changed <-chan struct{}) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	text, status, ended = strings.Cut(o.text.String()[o.from:], "\x1e")
	return text, ended && strings.HasSuffix(status, "\n"), strings.TrimSpace(status), o.changed
}

// await waits until what is shown is enough, and says whether it was before the context ended.
func (o *output) await(ctx context.Context, enough func(text string, ended bool, status string) bool) bool {
	for {
		text, ended, status, changed := o.look()
		if enough(text, ended, status) {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}
