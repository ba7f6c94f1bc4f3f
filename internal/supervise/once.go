package supervise

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	"github.com/sidekeeper/sidekeeper/internal/exit"
	"github.com/sidekeeper/sidekeeper/internal/show"
)

// Once is the claim of a command that is to succeed once for a key.
type Once struct {
	Name, Key string
	Options   sidekeeper.OnceOptions // with what else than the callbacks
	KillGrace time.Duration          // less than this left: SIGTERM; 0 for a third of the validity
	Terminate bool                   // SIGTERM, too, when the lock is revoked

	held  *sidekeeper.Attempt
	said  func() string // the end of what the command has said, for the note; may be nil
	child *Child        // once it has ended
	holding
}

// take says in a line that the work was done before. That is no failure.
func (o *Once) take(ctx context.Context, r *Runner) (err error) {
	if err := r.refuseGrace(ctx, o.KillGrace); err != nil {
		return err
	}
	lock := &Lock{Name: o.Name, holding: holding{r: r}}
	options := o.Options
	options.OnSuspended, options.OnResumed = r.suspended("lock "+o.Name), r.resumed
	if isTerminal(r.Stderr) {
		options.OnQueued = lock.queued
	}
	options.AcknowledgeOnRelease = true // when the command is dead
	o.held, err = r.Client.Begin(ctx, o.Name, o.Key, options)
	if told := (*sidekeeper.Error)(nil); errors.Is(err, sidekeeper.ErrAlreadyDone) && errors.As(err, &told) {
		by := told.Metadata["owner"]
		if by != "" {
			by = " by " + show.Printable(by)
		}
		r.say("%s %s was done at %s%s", o.Name, o.Key, told.Metadata["at"], by)
		return exit.With(0, nil)
	}
	if err != nil {
		return err
	}
	o.holding = hold(r, o.held, "lock "+o.Name, o.KillGrace, o.Terminate)
	return nil
}

func (o *Once) environment() []string {
	token := strconv.FormatInt(o.held.FencingToken(), 10)
	return []string{
		"SIDEKEEPER_FENCING_TOKEN=" + token, "SIDEKEEPER_LOCK_NAME=" + o.Name, "SIDEKEEPER_ONCE_KEY=" + o.Key,
		"SIDEKEEPER_ONCE_ATTEMPT=" + strconv.Itoa(o.held.Number()), guardsWith(o.Name + ":" + token),
	}
}

// release finishes the attempt, unless the command did not end by itself: then it is lost.
func (o *Once) release(ctx context.Context) error {
	outcome, note := sidekeeper.Succeeded, ""
	switch {
	case o.child == nil:
		outcome, note = sidekeeper.Failed, "the command could not be started"
	case o.child.endedEarly():
		return o.holding.release(ctx)
	case o.child.ExitCode() != 0:
		outcome, note = sidekeeper.Failed, fmt.Sprint("exit code ", o.child.ExitCode())
	}
	if o.said != nil {
		note = noteOf(note, o.said())
	}
	err := o.held.Finish(ctx, outcome, note)
	if err != nil && outcome == sidekeeper.Succeeded {
		return &unrecorded{err}
	}
	return err
}

func (o *Once) ran(child *Child) { o.child = child }

// unrecorded is why it is not recorded that a command has succeeded.
type unrecorded struct{ error }

func (u *unrecorded) Unwrap() error { return u.error }
