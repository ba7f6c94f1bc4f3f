package supervise

import (
	"context"
	"fmt"
	"os/signal"
	"time"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
)

// An Entry is the claim of a command that runs inside a double barrier.
type Entry struct {
	Name      string
	Size      int
	Options   sidekeeper.BarrierOptions // with what else than the callbacks
	KillGrace time.Duration             // less than this left: SIGTERM; 0 for a third of the validity

	entry *sidekeeper.BarrierEntry
	holding
}

func (e *Entry) take(ctx context.Context, r *Runner) (err error) {
	if err := r.refuseGrace(ctx, e.KillGrace); err != nil {
		return err
	}
	options, what := e.Options, "barrier "+e.Name
	options.OnSuspended, options.OnResumed = r.suspended(what), r.resumed
	if isTerminal(r.Stderr) {
		options.OnWaiting = func(present int) { r.say("waiting at %s: %d of %d are there", what, present, e.Size) }
	}
	if e.entry, err = r.Client.EnterBarrier(ctx, e.Name, e.Size, options); err != nil {
		return err
	}
	e.holding = hold(r, e.entry, what, e.KillGrace, false)
	return nil
}

func (e *Entry) environment() []string {
	return []string{"SIDEKEEPER_BARRIER_NAME=" + e.Name, fmt.Sprint("SIDEKEEPER_BARRIER_ROUND=", e.entry.Round())}
}

// release waits for the others, for as long as that takes, unless the command was ended because of the entry.
func (e *Entry) release(ctx context.Context) error {
	if e.entry.ValidFor() <= e.grace {
		return e.entry.Release(ctx)
	}
	waiting, stop := signal.NotifyContext(context.WithoutCancel(ctx), ending...)
	defer stop()
	return e.entry.Leave(waiting)
}
