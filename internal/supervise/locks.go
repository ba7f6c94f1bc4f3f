package supervise

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
)

// Locks is the claim of a command that holds several locks at once.
type Locks struct {
	Wanted    []sidekeeper.WantedLock
	Options   sidekeeper.AllOptions // with what else than the callbacks
	KillGrace time.Duration         // less than this left: SIGTERM; 0 for a third of the validity
	Terminate bool                  // SIGTERM, too, when one of the locks is revoked

	held *sidekeeper.Locks
	holding
}

func (l *Locks) take(ctx context.Context, r *Runner) (err error) {
	l.r = r
	if err := r.refuseGrace(ctx, l.KillGrace); err != nil {
		return err
	}
	what := "locks " + l.names(", ")
	options := l.Options
	options.OnSuspended, options.OnResumed = r.suspended(what), r.resumed
	if isTerminal(r.Stderr) {
		options.OnQueued = l.queued
	}
	options.AcknowledgeOnRelease = true // when the command is dead
	if l.held, err = r.Client.AcquireAll(ctx, l.Wanted, options); err != nil {
		return err
	}
	l.holding = hold(r, l.held, what, l.KillGrace, l.Terminate)
	return nil
}

func (l *Locks) names(between string) string {
	names := make([]string, len(l.Wanted))
	for i, of := range l.Wanted {
		names[i] = of.Name
	}
	return strings.Join(names, between)
}

// queued tells whoever sits at the terminal which locks are still waited for.
func (l *Locks) queued(ahead map[string]int) {
	var waiting []string
	for name, position := range ahead {
		waiting = append(waiting, fmt.Sprintf("%s (%d ahead)", name, position))
	}
	slices.Sort(waiting)
	l.r.say("waiting for lock %s", strings.Join(waiting, ", "))
}

func (l *Locks) environment() []string {
	var tokens, guards []string
	for _, ticket := range l.held.Tickets() {
		token := strconv.FormatInt(ticket.FencingToken, 10)
		tokens, guards = append(tokens, token), append(guards, ticket.Lock+":"+token)
	}
	return []string{
		"SIDEKEEPER_FENCING_TOKEN=" + strings.Join(tokens, " "), "SIDEKEEPER_LOCK_NAME=" + l.names(" "), guardsWith(guards...),
	}
}
