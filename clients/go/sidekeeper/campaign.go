package sidekeeper

import (
	"context"
	"time"

	electionv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/election/v1"
	holdv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/hold/v1"
	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
)

// CampaignOptions say how to campaign. Only Candidate is needed. The functions are called one at a time while the stream is read: they must
// not block, nor resign.
type CampaignOptions struct {
	Candidate string         // the candidate's name: 1 to 128 bytes, another one for each candidate of an election
	Value     string         // what the leader shows, such as its address: at most 1 KiB
	Lease     *Lease         // of the same Client, to campaign with; nil, a lease that lives as long as the campaign
	Wait      *time.Duration // how long to wait to be elected: 0 tries once, nil waits for ever, and AbsenceTimeout for a sidecar that is away
	Metadata  map[string]string

	// AcknowledgeOnRelease is as in LockOptions.
	AcknowledgeOnRelease bool

	OnCandidate      func(position int, leader *Leader) // how many are ahead, and who leads, as it was first seen; nil if that is not known
	OnSuspended      func(remaining time.Duration)
	OnResumed        func()
	OnYieldRequested func(Revocation)
}

// A Leadership is the time for which the caller leads: a term. Its holder must Resign, also after it was lost.
type Leadership struct {
	carried
	term    Ticket
	options CampaignOptions
}

// Campaign waits for its turn to lead, and returns when the caller certainly leads for some time to come. The end of ctx ends the campaign,
// and does not end a term that Campaign has returned. Errors that a caller can act on: ErrLockHeld, ErrWaitTimeout, ErrLockKindMismatch,
// ErrEnsembleUnreachable. While the sidecar or the ensemble is away, it tries again, as Acquire does.
func (c *Client) Campaign(ctx context.Context, election string, options CampaignOptions) (*Leadership, error) {
	onLease := carriedOptions{options.Lease, options.Candidate, options.AcknowledgeOnRelease, options.OnSuspended, options.OnResumed}
	return carry(ctx, c, "leadership of "+election, options.Wait, onLease, func(wait *time.Duration) (*Leadership, *request) {
		options.Wait = wait
		made := &Leadership{options: options}
		start := &leasev1.Start{Request: &leasev1.Start_Campaign{Campaign: options.request(election)}}
		return made, &request{start: start, handle: func(event *leasev1.Event) { made.handle(event.GetCampaign()) }}
	})
}

func (o CampaignOptions) request(election string) *electionv1.CampaignRequest {
	return &electionv1.CampaignRequest{
		Name: election, Candidate: o.Candidate, Value: o.Value, WaitTimeout: optionalDuration(o.Wait), Metadata: o.Metadata,
	}
}

func (l *Leadership) handle(event *electionv1.CampaignResponse) {
	switch event := event.GetEvent().(type) {
	case *electionv1.CampaignResponse_Candidate:
		if l.options.OnCandidate != nil {
			l.options.OnCandidate(int(event.Candidate.GetPosition()), leaderFrom(event.Candidate.GetLeader()))
		}
	case *electionv1.CampaignResponse_Elected:
		if l.id == "" { // others read them by now
			l.id, l.term = event.Elected.GetHoldId(), ticketFrom(event.Elected.GetTicket())
		}
	case *electionv1.CampaignResponse_YieldRequested:
		asked := revocationFrom(event.YieldRequested)
		asked.To = event.YieldRequested.GetTo()
		leaveNewest(l.revocations, asked, l.options.OnYieldRequested)
	}
}

// Term is the ticket of the term, which others guard with what they write for the leader. Its fencing token is larger than that of every
// earlier term.
func (l *Leadership) Term() Ticket { return l.term }

// YieldRequested gets the newest request to resign that has not been read. It is never closed: wait for Done with it.
func (l *Leadership) YieldRequested() <-chan Revocation { return l.revocations }

// Guard is ctx with the term as a guard of what its client writes with it, as Lock.Guard.
func (l *Leadership) Guard(ctx context.Context) context.Context {
	hold := &holdv1.Guard{Hold: &holdv1.Guard_HoldId{HoldId: l.id}}
	return withGuard(ctx, guard{client: l.client, wire: hold, tickets: []Ticket{l.term}})
}

// Proclaim changes the value that the leader shows. ErrGuardLost if it does not lead any more.
func (l *Leadership) Proclaim(ctx context.Context, value string) error {
	_, err := l.client.elections().Proclaim(ctx, &electionv1.ProclaimRequest{
		Ticket: &holdv1.Ticket{Lock: l.term.Lock, FencingToken: l.term.FencingToken}, Value: value,
	})
	return fromStatus(err)
}

// Resign ends the term; for the caller it is over at once. It is Release.
func (l *Leadership) Resign(ctx context.Context) error { return l.Release(ctx) }

// WithLeadership campaigns, runs f while the caller leads and resigns afterwards, also when f panics. The context of f is ctx with the term as
// a guard, which also ends when leadership is lost, with an error that wraps ErrLost as its cause. It returns the error of Campaign, or those
// of f and of Resign together. To lead again after a loss, call it again.
func (c *Client) WithLeadership(
	ctx context.Context, election string, options CampaignOptions, f func(ctx context.Context, leadership *Leadership) error,
) error {
	l, err := c.Campaign(ctx, election, options)
	if err != nil {
		return err
	}
	return l.run(l.Guard(ctx), func(ctx context.Context) error { return f(ctx, l) })
}
