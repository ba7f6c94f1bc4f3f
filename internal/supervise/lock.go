package supervise

import (
	"cmp"
	"context"
	"os"
	"strconv"
	"strings"
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

	held *sidekeeper.Lock
	holding
}

func (l *Lock) take(ctx context.Context, r *Runner) (err error) {
	l.r = r
	if err := r.refuseGrace(ctx, l.KillGrace); err != nil {
		return err
	}
	options := l.Options
	options.OnSuspended, options.OnResumed = r.suspended("lock "+l.Name), r.resumed
	if isTerminal(r.Stderr) {
		options.OnQueued = l.queued
	}
	options.AcknowledgeOnRelease = true // when the command is dead
	if l.held, err = r.Client.Acquire(ctx, l.Name, options); err != nil {
		return err
	}
	l.holding = hold(r, l.held, "lock "+l.Name, l.KillGrace, l.Terminate)
	return nil
}

// queued tells whoever sits at the terminal for whom they wait.
func (l *Lock) queued(queued sidekeeper.Queued) {
	if queued.Position == 0 {
		l.r.say("waiting for lock %s: it was lost, and its delay is kept for %v", l.Name, queued.LockDelay.Round(100*time.Millisecond))
		return
	}
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
	return []string{"SIDEKEEPER_FENCING_TOKEN=" + token, "SIDEKEEPER_LOCK_NAME=" + l.Name, guardsWith(l.Name + ":" + token)}
}

// guardsWith are the locks that a command runs under, these more than this process.
func guardsWith(more ...string) string {
	return GuardsVariable + "=" + strings.TrimSpace(os.Getenv(GuardsVariable)+" "+strings.Join(more, " "))
}
