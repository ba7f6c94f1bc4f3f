package sidekeeper

import (
	"context"
	"errors"
	"io"
	"time"

	barrierv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/barrier/v1"
	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
)

func (c *Client) barriers() barrierv1.BarrierServiceClient {
	return barrierv1.NewBarrierServiceClient(c.connection)
}

// SetBarrier sets a barrier, at which AwaitBarrier waits until it is removed. Setting it again is harmless.
func (c *Client) SetBarrier(ctx context.Context, name string) error {
	_, err := c.barriers().Set(ctx, &barrierv1.SetRequest{Name: name})
	return fromStatus(err)
}

// RemoveBarrier removes a barrier: the callers that wait at it go on. Removing one that is not set is harmless.
func (c *Client) RemoveBarrier(ctx context.Context, name string) error {
	_, err := c.barriers().Remove(ctx, &barrierv1.RemoveRequest{Name: name})
	return fromStatus(err)
}

// AwaitBarrier returns nil when the barrier is not set, or was not at a moment since the call. onWaiting, if it is not nil, is called when it
// is known that the barrier is set. While the sidecar or the ensemble is away, AwaitBarrier waits anew, until ctx ends.
func (c *Client) AwaitBarrier(ctx context.Context, name string, onWaiting func()) error {
	var again pause
	for {
		err := c.awaitBarrier(ctx, name, onWaiting)
		if err == nil || ctx.Err() != nil || c.noRetries || !isTransient(err) {
			return err
		}
		c.tellAbsence(err)
		if rest(ctx, again.grow()) != nil {
			return err
		}
	}
}

func (c *Client) awaitBarrier(ctx context.Context, name string, onWaiting func()) error {
	heard := false
	stream, err := c.barriers().Wait(ctx, &barrierv1.WaitRequest{Name: name, Keepalive: keepaliveEvery})
	for err == nil {
		var told *barrierv1.WaitResponse
		if told, err = stream.Recv(); err == nil {
			heard = true
			if told.GetKeepalive() == nil && onWaiting != nil {
				onWaiting()
			}
		}
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return cut("barrier "+name, fromStatus(err), heard)
}

// BarrierOptions say how to enter a double barrier. The zero value waits for ever for the others, with a lease of its own. The functions are
// called one at a time while the stream is read: they must not block, nor leave.
type BarrierOptions struct {
	Lease    *Lease         // of the same Client, to stand at the barrier with; nil, a lease that lives as long as the entry does
	Wait     *time.Duration // how long to wait for the others, more than 0; nil waits for ever, and AbsenceTimeout for a sidecar that is away
	Owner    string         // who the caller is, for people
	Metadata map[string]string

	OnWaiting   func(present int) // how many stand at the barrier, this one among them
	OnSuspended func(remaining time.Duration)
	OnResumed   func()
}

// A BarrierEntry is the caller's inside a double barrier, until it leaves. The caller must Leave, or Release it, even after it was lost.
type BarrierEntry struct {
	carried
	round   int64
	options BarrierOptions
}

// EnterBarrier waits until as many callers as size stand at the double barrier, and enters it with them. The end of ctx ends the waiting, and
// does not end an entry that EnterBarrier has returned. Errors that a caller can act on: ErrWaitTimeout, ErrEnsembleUnreachable. While the
// sidecar or the ensemble is away, it tries again, as Acquire does.
func (c *Client) EnterBarrier(ctx context.Context, name string, size int, options BarrierOptions) (*BarrierEntry, error) {
	onLease := carriedOptions{lease: options.Lease, owner: options.Owner, onSuspended: options.OnSuspended, onResumed: options.OnResumed}
	return carry(ctx, c, "entry of barrier "+name, options.Wait, onLease, func(wait *time.Duration) (*BarrierEntry, *request) {
		options.Wait = wait
		made := &BarrierEntry{options: options}
		start := &leasev1.Start{Request: &leasev1.Start_Enter{Enter: &barrierv1.EnterRequest{
			Name: name, Size: bounded32(size), Owner: options.Owner, Metadata: options.Metadata, WaitTimeout: optionalDuration(wait),
		}}}
		return made, &request{start: start, handle: func(event *leasev1.Event) { made.handle(event.GetEnter()) }}
	})
}

func (e *BarrierEntry) handle(event *barrierv1.EnterResponse) {
	switch event := event.GetEvent().(type) {
	case *barrierv1.EnterResponse_Waiting:
		call(e.options.OnWaiting, int(event.Waiting.GetPresent()))
	case *barrierv1.EnterResponse_Entered:
		if e.id == "" { // others read them by now
			e.id, e.round = event.Entered.GetHoldId(), event.Entered.GetRound()
		}
	}
}

// Round is the same for all who are inside together, and larger than that of those before.
func (e *BarrierEntry) Round() int64 { return e.round }

// Leave ends the entry, and returns nil when all who entered with it have left or have lost their leases. It waits for a sidecar that is away
// as long as the entry's lease lives. Its error wraps ErrLost if the entry was lost before, or before the sidecar has taken it back. With any
// other error, which is ErrReleaseUnconfirmed, it is over for the caller all the same, but others may be inside: also when ctx ends first.
// Leaving again returns the same.
// Release leaves without waiting for the others; only one of the two does anything.
func (e *BarrierEntry) Leave(ctx context.Context) error {
	e.releaseOnce.Do(func() {
		e.end(ErrReleased)
		err := e.Err()
		if err == nil {
			err = e.leave(ctx)
		}
		e.releaseResult = err
		e.cut()
		<-e.followed
		e.acknowledge()
		e.own.closeUsed(err)
	})
	return e.releaseResult
}

// leave asks the sidecar for as long as the entry stands in the ensemble: one that is frozen does not say when that is over, but the end of
// the lease does.
func (e *BarrierEntry) leave(ctx context.Context) error {
	asking, stop := context.WithCancel(ctx)
	defer stop()
	lease, lost := e.request.lease, make(chan error, 2)
	unlink := lease.onEnd(func() {
		if !e.request.isGivenUp() {
			lost <- &loss{e.claim, lease.why()}
			stop()
		}
	})
	defer unlink()
	err := e.askToLeave(asking)
	if err != nil && len(lost) > 0 {
		return <-lost
	}
	return e.givenUp(err)
}

// askToLeave asks again when the sidecar was away. One that was started anew knows the entry only some time later.
func (e *BarrierEntry) askToLeave(ctx context.Context) error {
	for again := (pause{}); ; {
		_, err := e.client.barriers().Leave(ctx, &barrierv1.LeaveRequest{HoldId: e.id})
		err = fromStatus(err)
		select {
		case <-e.request.ended:
			return err
		default:
		}
		mayHeal := errors.Is(err, ErrHoldNotFound) || isTransient(err) && !e.client.noRetries
		if !mayHeal || rest(ctx, again.grow()) != nil {
			return err
		}
	}
}
