package supervise

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	"github.com/sidekeeper/sidekeeper/internal/exit"
)

// A Member is the claim of a command that is a member of a group.
type Member struct {
	Group, Name string
	Options     sidekeeper.JoinOptions // with what else than the callbacks
	OnLoss      string                 // what becomes of the command when the membership is lost: term, rejoin or ignore
	KillGrace   time.Duration          // after SIGTERM the command gets SIGKILL

	r          *Runner
	membership *sidekeeper.Membership
}

// pauseToRejoin lies between two attempts to join again.
const pauseToRejoin = time.Second

func (m *Member) take(ctx context.Context, r *Runner) (err error) {
	m.r = r
	m.Options.OnSuspended = func(remaining time.Duration) {
		m.r.say("no contact with the ensemble: still a member of %s for %v", m.Group, remaining.Round(100*time.Millisecond))
	}
	m.Options.OnResumed = func() { m.r.say("contact with the ensemble is back") }
	m.membership, err = m.r.Client.Join(ctx, m.Group, m.Name, m.Options)
	return err
}

func (m *Member) environment() []string {
	return []string{
		"SIDEKEEPER_GROUP_NAME=" + m.Group, "SIDEKEEPER_MEMBER_NAME=" + m.Name,
		"SIDEKEEPER_INCARNATION=" + strconv.FormatInt(m.membership.Incarnation(), 10),
	}
}

func (m *Member) guarded() bool { return m.OnLoss == "term" }

func (m *Member) left() (left time.Duration, valid bool) {
	left = m.membership.ValidFor() + m.KillGrace
	return left, m.membership.Valid()
}

// watch joins again after a loss, or ends the command.
func (m *Member) watch(ctx context.Context, child *Child) {
	for {
		select {
		case <-m.membership.Done():
		case <-ctx.Done():
			return
		}
		m.r.say("%s", exit.Explain(m.membership.Err(), m.r.Address))
		switch {
		case m.rejoins():
			m.rejoin(ctx)
		case m.OnLoss == "ignore":
			return
		default:
			m.end(ctx, child)
			return
		}
	}
}

func (m *Member) end(ctx context.Context, child *Child) {
	child.Terminate()
	select {
	case <-time.After(m.KillGrace):
		child.Kill(KillTime)
	case <-ctx.Done():
	}
}

// rejoins says whether to join again: not if the member was replaced or removed.
func (m *Member) rejoins() bool {
	err := m.membership.Err()
	wanted := errors.Is(err, sidekeeper.ErrMemberReplaced) || errors.Is(err, sidekeeper.ErrMemberRemoved)
	return m.OnLoss == "rejoin" && !wanted
}

// rejoin tries until it works or ctx ends. It waits for what may be its own last incarnation.
func (m *Member) rejoin(ctx context.Context) {
	options := m.Options
	options.Wait = nil
	if options.OnConflict == sidekeeper.RejectMember {
		options.OnConflict = sidekeeper.WaitForMember
	}
	for ctx.Err() == nil {
		membership, err := m.r.Client.Join(ctx, m.Group, m.Name, options)
		if err == nil {
			m.membership = membership
			m.r.say("rejoined %s as incarnation %d", m.Group, membership.Incarnation())
			return
		}
		select {
		case <-time.After(pauseToRejoin):
		case <-ctx.Done():
		}
	}
}

// release does not fail for a membership that was lost: watch has dealt with that.
func (m *Member) release(ctx context.Context) error {
	if err := m.membership.Leave(ctx); !errors.Is(err, sidekeeper.ErrLost) {
		return err
	}
	return nil
}

func (m *Member) ended() error {
	return errors.New("the command was ended because it is no longer a member of " + m.Group)
}
