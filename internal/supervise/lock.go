package supervise

import (
	"cmp"
	"context"
	"errors"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	"github.com/sidekeeper/sidekeeper/internal/show"
)

// A Lock is the claim of a command that holds a lock.
type Lock struct {
	Name      string
	Options   sidekeeper.LockOptions // with what else than the callbacks
	KillGrace time.Duration          // less than this left: SIGTERM; 0 for a third of the validity
	Terminate bool                   // SIGTERM, too, when the lock is revoked

	r      *Runner
	held   *sidekeeper.Lock
	grace  time.Duration
	margin time.Duration // less than this left: SIGKILL; less than half of it: the guardian kills by itself
}

func (l *Lock) take(ctx context.Context, r *Runner) (err error) {
	l.r = r
	options := l.Options
	options.OnSuspended = func(remaining time.Duration) {
		l.r.say("no contact with the ensemble: lock %s is safe for %v", l.Name, remaining.Round(100*time.Millisecond))
	}
	options.OnResumed = func() { l.r.say("contact with the ensemble is back") }
	if isTerminal(r.Stderr) {
		options.OnQueued = l.queued
	}
	options.AcknowledgeOnRelease = true // when the command is dead
	if l.held, err = l.r.Client.Acquire(ctx, l.Name, options); err != nil {
		return err
	}
	if l.grace = l.KillGrace; l.grace == 0 { // the validity told last is taken for the usual one
		l.grace = l.held.ValidFor() / 3
	}
	l.margin = min(l.grace/5, killMargin)
	return nil
}

// queued tells whoever sits at the terminal for whom they wait.
func (l *Lock) queued(queued sidekeeper.Queued) {
	holders := make([]string, 0, len(queued.Holders))
	for _, holder := range queued.Holders {
		holders = append(holders, show.Printable(cmp.Or(holder.Owner, "a holder without a name")))
	}
	l.r.say("waiting for lock %s: %d ahead, held by %s", l.Name, queued.Position, cmp.Or(strings.Join(holders, ", "), "another caller"))
}

// GuardsVariable is the environment variable with the locks that a command runs under, as LOCK:TOKEN, separated by blanks.
const GuardsVariable = "SIDEKEEPER_GUARDS"

func (l *Lock) environment() []string {
	token := strconv.FormatInt(l.held.FencingToken(), 10)
	guards := strings.TrimSpace(os.Getenv(GuardsVariable) + " " + l.Name + ":" + token)
	return []string{"SIDEKEEPER_FENCING_TOKEN=" + token, "SIDEKEEPER_LOCK_NAME=" + l.Name, GuardsVariable + "=" + guards}
}

func (l *Lock) guarded() bool { return true }

func (l *Lock) left() (left time.Duration, valid bool) {
	left = l.held.ValidFor() - l.margin/2
	return left, l.held.Valid()
}

// watch ends the command before its lock ends, or when the grace of a revocation does.
func (l *Lock) watch(ctx context.Context, child *Child) {
	var guard sync.WaitGroup
	defer guard.Wait()
	guard.Go(func() { l.guard(ctx, child) })
	var deadline <-chan time.Time
	for {
		select {
		case revocation := <-l.held.Revocation():
			deadline = l.revoked(revocation, child)
		case <-deadline:
			child.Kill(l.margin / 4) // which leaves the rest of the margin for what has to be done without the guardian
			l.r.say("grace period expired")
		case <-ctx.Done():
			return
		}
	}
}

func (l *Lock) guard(ctx context.Context, child *Child) {
	if l.held.AwaitRisk(ctx, l.grace) != nil {
		return
	}
	if l.held.Valid() { // else the release will say why not
		l.r.say("the lock is at risk: safe for %v", l.held.ValidFor().Round(time.Millisecond))
	}
	child.Terminate()
	if l.held.AwaitRisk(ctx, l.margin) == nil {
		child.Kill(l.margin / 4)
	}
}

// revoked returns when to kill the command, if ever: the hold ends with the grace. A command that lets go in time when
// it is asked has lost nothing.
func (l *Lock) revoked(r sidekeeper.Revocation, child *Child) <-chan time.Time {
	l.r.say("revocation requested by %s: %s", show.Printable(r.RequestedBy), show.Printable(r.Reason))
	if l.Terminate {
		child.Signal(syscall.SIGTERM)
	}
	if r.Deadline.IsZero() {
		return nil
	}
	return time.After(time.Until(r.Deadline) - l.margin)
}

func (l *Lock) release(ctx context.Context) error { return l.held.Release(ctx) }

func (l *Lock) ended() error {
	return errors.New("the command was ended because lock " + l.Name + " was at risk")
}
