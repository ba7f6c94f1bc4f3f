package supervise

import (
	"bytes"
	"context"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	"github.com/sidekeeper/sidekeeper/internal/exit"
)

// A Tick is the claim of a command that runs at a tick of a schedule.
type Tick struct {
	Schedule string
	Options  sidekeeper.WorkOptions // apart from the callbacks, which take sets
	Waiting  context.Context        //nolint:containedctx // ends the waiting, and not the command
	Running  context.Context        //nolint:containedctx // ends the command
	Output   *Tail                  // of the command

	Once

	tick *sidekeeper.Tick
}

func (t *Tick) take(ctx context.Context, r *Runner) (err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(t.Waiting, func() { cancel(context.Cause(t.Waiting)) })()
	what, options := "schedule "+t.Schedule, t.Options
	options.OnSuspended, options.OnResumed = r.suspended(what), r.resumed
	options.AcknowledgeOnRelease = true // when the command is dead
	if t.tick, err = r.Client.Work(ctx, t.Schedule, options); err != nil {
		return err
	}
	t.held, t.said = t.tick.Attempt, t.Output.String
	t.holding = hold(r, t.held, what, 0, false)
	return nil
}

func (t *Tick) environment() []string {
	token := strconv.FormatInt(t.held.FencingToken(), 10)
	return []string{
		"SIDEKEEPER_FENCING_TOKEN=" + token, "SIDEKEEPER_SCHEDULE=" + t.Schedule, "SIDEKEEPER_TICK=" + t.tick.At().UTC().Format(time.RFC3339),
		"SIDEKEEPER_TICK_ATTEMPT=" + strconv.Itoa(t.held.Number()), guardsWith(t.Schedule + ":" + token),
	}
}

// finishTime is for how long the outcome of a command is told that has ended: the sidecar or the ensemble may be away.
const finishTime = 10 * time.Minute

// release tells the outcome for much longer than ctx takes. Exception: if the command was to end, ctx counts. A command that has died of a
// signal which ends programs, after the waiting has ended, is lost and not failed: what stops a machine signals all its processes.
func (t *Tick) release(ctx context.Context) error {
	if t.child == nil || t.child.endedEarly() {
		return t.Once.release(ctx)
	}
	if t.Waiting.Err() != nil && slices.Contains(ending, os.Signal(syscall.Signal(t.child.ExitCode()-exit.Signal))) {
		return t.holding.release(ctx)
	}
	finishing, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishTime)
	defer cancel()
	defer context.AfterFunc(t.Running, func() {
		<-ctx.Done()
		cancel()
	})()
	return t.Once.release(finishing)
}

// longestNote bounds a note, in bytes.
const longestNote = 256

// noteOf is a note and the end of what a command has said, as a note may be.
func noteOf(note, said string) string {
	said = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(said, "?"), unicode.IsControl), " | ")
	if note != "" && said != "" {
		note += ": "
	}
	if most := longestNote - len(note); len(said) > most {
		const cut = "…"
		said = cut + strings.ToValidUTF8(said[len(said)-most+len(cut):], "")
	}
	return note + said
}

// longestPart bounds what waits for the end of its line, in bytes.
const longestPart = 16 << 10

// A Tail passes on what is written, line by line, and keeps the end of it.
type Tail struct {
	To io.Writer // each Write is a line

	line []byte // that has not ended

	mu  sync.Mutex
	end []byte
}

// Write implements io.Writer.
func (t *Tail) Write(data []byte) (int, error) {
	t.keep(data)
	t.line = append(t.line, data...)
	for {
		length := bytes.IndexByte(t.line, '\n') + 1
		if length == 0 && len(t.line) >= longestPart {
			length = longestPart
		}
		if length == 0 {
			return len(data), nil
		}
		if _, err := t.To.Write(t.line[:length]); err != nil {
			return 0, err
		}
		t.line = t.line[length:]
	}
}

// Flush passes on what has no end of a line. The command has ended.
func (t *Tail) Flush() {
	if len(t.line) > 0 {
		_, _ = t.Write([]byte("\n"))
	}
}

// keep has no reader to wait for.
func (t *Tail) keep(data []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.end = append(t.end, data...)
	if more := len(t.end) - longestNote; more > 0 {
		t.end = append(t.end[:0], t.end[more:]...)
	}
}

// String is the end.
func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.end)
}

// HasRun says whether the command was started.
func (t *Tick) HasRun() bool { return t.child != nil }
