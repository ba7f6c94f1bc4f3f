package supervise

import (
	"context"
	"strconv"
	"time"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
)

// Permits are the claim of a command that holds permits of a semaphore.
type Permits struct {
	Name      string
	Options   sidekeeper.PermitsOptions // with what else than the callbacks
	KillGrace time.Duration             // less than this left: SIGTERM; 0 for a third of the validity
	Terminate bool                      // SIGTERM, too, when the permits are revoked

	held *sidekeeper.Permits
	holding
}

func (p *Permits) take(ctx context.Context, r *Runner) (err error) {
	if err := r.refuseGrace(ctx, p.KillGrace); err != nil {
		return err
	}
	options, what := p.Options, "permits of "+p.Name
	options.OnSuspended, options.OnResumed = r.suspended(what), r.resumed
	if isTerminal(r.Stderr) {
		options.OnQueued = func(position int) { r.say("waiting for %s: %d ahead", what, position) }
	}
	options.AcknowledgeOnRelease = true // when the command is dead
	if p.held, err = r.Client.AcquirePermits(ctx, p.Name, options); err != nil {
		return err
	}
	p.holding = hold(r, p.held, what, p.KillGrace, p.Terminate)
	return nil
}

func (p *Permits) environment() []string {
	told := []string{"SIDEKEEPER_SEMAPHORE_NAME=" + p.Name}
	if p.Options.Numbered {
		told = append(told, "SIDEKEEPER_NUMBER="+strconv.Itoa(p.held.Number()))
	}
	return told
}
