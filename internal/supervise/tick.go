package supervise

import (
	"context"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
)

// A Tick is the claim of a command that runs at a tick of a schedule.
type Tick struct {
	Schedule string
	Options  sidekeeper.WorkOptions // with what else than the callbacks
	Waiting  context.Context        //nolint:containedctx // ends the waiting, and not the command
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

// A Tail passes on what is written, and keeps the end of it.
type Tail struct {
	To io.Writer

	mu  sync.Mutex
	end []byte
}

// Write implements io.Writer.
func (t *Tail) Write(data []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.end = append(t.end, data...)
	if more := len(t.end) - longestNote; more > 0 {
		t.end = append(t.end[:0], t.end[more:]...)
	}
	return t.To.Write(data)
}

// String is the end.
func (t *Tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.end)
}

// HasRun says whether the command was started.
func (t *Tick) HasRun() bool { return t.child != nil }
