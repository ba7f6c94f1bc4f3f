package supervise

import (
	"cmp"
	"context"
	"strconv"
	"time"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	"github.com/sidekeeper/sidekeeper/internal/show"
)

// A Leadership is the claim of a command that runs while it leads an election.
type Leadership struct {
	Name      string
	Options   sidekeeper.CampaignOptions // with what else than the callbacks
	KillGrace time.Duration              // less than this left: SIGTERM; 0 for a third of the validity
	Terminate bool                       // SIGTERM, too, when the leader is asked to yield

	term sidekeeper.Ticket
	holding
}

func (l *Leadership) take(ctx context.Context, r *Runner) error {
	if err := r.refuseGrace(ctx, l.KillGrace); err != nil {
		return err
	}
	options, what := l.Options, "leadership of "+l.Name
	options.OnSuspended, options.OnResumed = r.suspended(what), r.resumed
	if isTerminal(r.Stderr) {
		options.OnCandidate = func(position int, leader *sidekeeper.Leader) {
			name := "another candidate"
			if leader != nil {
				name = cmp.Or(show.Printable(leader.Candidate), name)
			}
			r.say("waiting for %s: %d ahead, led by %s", what, position, name)
		}
	}
	options.AcknowledgeOnRelease = true // when the command is dead
	led, err := r.Client.Campaign(ctx, l.Name, options)
	if err != nil {
		return err
	}
	l.term, l.holding = led.Term(), hold(r, led, what, l.KillGrace, l.Terminate)
	return nil
}

func (l *Leadership) environment() []string {
	token := strconv.FormatInt(l.term.FencingToken, 10)
	return []string{"SIDEKEEPER_FENCING_TOKEN=" + token, "SIDEKEEPER_ELECTION_NAME=" + l.Name, guardsWith(l.Name + ":" + token)}
}
