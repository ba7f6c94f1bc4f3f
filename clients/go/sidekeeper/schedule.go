package sidekeeper

import (
	"context"
	"time"

	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	schedulev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/schedule/v1"
)

// WorkOptions say how to work for a schedule. The zero value waits for ever for a tick, with a lease of its own. The functions are called one at
// a time while the stream is read: they must not block, nor finish the attempt.
type WorkOptions struct {
	Lease    *Lease         // of the same Client, to hold the lock with; nil, a lease that lives as long as the attempt
	Wait     *time.Duration // how long to wait for a tick: 0 tries once, nil waits for ever, and AbsenceTimeout for a sidecar that is away
	Owner    string         // who the caller is, for people
	Metadata map[string]string

	// AcknowledgeOnRelease is as in LockOptions.
	AcknowledgeOnRelease bool

	OnQueued     func(Queued)
	OnSuspended  func(remaining time.Duration)
	OnResumed    func()
	OnRevocation func(Revocation)
}

// A Tick is the caller's attempt at a tick of a schedule, or at a run. Its caller must Finish it, or Release it: then it counts as lost.
type Tick struct {
	*Attempt
	at  time.Time
	run string
}

// At is when the tick was due, in UTC. Of a run, it is when that was asked for.
func (t *Tick) At() time.Time { return t.at }

// RunID is the id of a run; empty for a tick.
func (t *Tick) RunID() string { return t.run }

// Work waits for the next tick of a schedule, or a run, and returns when it is certainly the caller's for some time to come, and its attempt is
// recorded. Finish it, and call Work again for the one after. The end of ctx ends the waiting, and does not end a tick that Work has returned.
// Errors that a caller can act on: ErrScheduleNotFound, ErrClocksDisagree, ErrWaitTimeout, ErrEnsembleUnreachable. While the sidecar or the
// ensemble is away, it tries again, as Acquire does.
func (c *Client) Work(ctx context.Context, schedule string, options WorkOptions) (*Tick, error) {
	onLease := carriedOptions{options.Lease, options.Owner, options.AcknowledgeOnRelease, options.OnSuspended, options.OnResumed}
	return carry(ctx, c, "schedule "+schedule, options.Wait, onLease, func(wait *time.Duration) (*Tick, *request) {
		made := &Tick{Attempt: &Attempt{ticket: Ticket{Lock: schedule}, ofSchedule: true}}
		work := &schedulev1.WorkRequest{Name: schedule, WaitTimeout: optionalDuration(wait), Owner: options.Owner, Metadata: options.Metadata}
		start := &leasev1.Start{Request: &leasev1.Start_Work{Work: work}}
		return made, &request{start: start, handle: func(event *leasev1.Event) { made.handle(event.GetWork(), options) }}
	})
}

func (t *Tick) handle(event *schedulev1.WorkResponse, options WorkOptions) {
	switch event := event.GetEvent().(type) {
	case *schedulev1.WorkResponse_Queued:
		call(options.OnQueued, queuedFrom(event.Queued))
	case *schedulev1.WorkResponse_Fire:
		if fire := event.Fire; t.id == "" { // others read them by now
			t.id, t.token, t.number = fire.GetHoldId(), fire.GetFencingToken(), int(fire.GetAttempt())
			t.at, t.run, t.ticket.FencingToken = fire.GetTick().AsTime(), fire.GetRunId(), t.token
		}
	case *schedulev1.WorkResponse_RevocationRequested:
		leaveNewest(t.revocations, revocationFrom(event.RevocationRequested), options.OnRevocation)
	}
}
