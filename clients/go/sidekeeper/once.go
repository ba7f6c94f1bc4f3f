package sidekeeper

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	holdv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/hold/v1"
	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	oncev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/once/v1"
	schedulev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/schedule/v1"
)

// OnceOptions say how to do work once. The zero value waits for ever for the lock of the key, with a lease of its own. It repeats work that was
// lost or has failed, up to three attempts in all. The functions are called one at a time while the stream is read: they must not block, nor
// finish the attempt.
type OnceOptions struct {
	PerName     bool           // the work of different keys does not overlap: its lock is that of the name
	Keep        time.Duration  // how long the record stands after Finish: at least a second; 0, a week
	SkipLost    bool           // no other attempt follows one that was lost
	SkipFailed  bool           // no other attempt follows one that has failed
	MaxAttempts int            // 1 to 1,000; 0, three
	Lease       *Lease         // of the same Client, to hold the lock with; nil, a lease that lives as long as the attempt
	Wait        *time.Duration // how long to wait for the lock: 0 tries once, nil waits for ever, and AbsenceTimeout for a sidecar that is away
	Owner       string         // who the caller is, for people
	Metadata    map[string]string

	// AcknowledgeOnRelease is as in LockOptions.
	AcknowledgeOnRelease bool

	OnQueued     func(Queued)
	OnSuspended  func(remaining time.Duration)
	OnResumed    func()
	OnRevocation func(Revocation)
}

// An Outcome is how an attempt has ended.
type Outcome int32

// The outcomes of an attempt.
const (
	Succeeded Outcome = iota + 1 // the work is done
	Failed                       // it is not, and its caller knows that
)

// An Attempt is the caller's at work that is done once. Its caller must Finish it, or Release it: then it counts as lost.
type Attempt struct {
	carried
	token   int64
	ticket  Ticket
	number  int
	options OnceOptions

	ofSchedule bool // it is at a tick
}

// Begin waits for its turn and returns when the work of the key is certainly the caller's for some time to come, and its attempt is recorded.
// The end of ctx ends the waiting, and does not end an attempt that Begin has returned. Errors that a caller can act on: ErrAlreadyDone,
// ErrNotRepeated, ErrLockHeld, ErrWaitTimeout, ErrTooManyKeys, ErrEnsembleUnreachable. While the sidecar or the ensemble is away, it tries
// again, as Acquire does.
func (c *Client) Begin(ctx context.Context, name, key string, options OnceOptions) (*Attempt, error) {
	onLease := carriedOptions{options.Lease, options.Owner, options.AcknowledgeOnRelease, options.OnSuspended, options.OnResumed}
	return carry(ctx, c, "work "+name+" "+key, options.Wait, onLease, func(wait *time.Duration) (*Attempt, *request) {
		options.Wait = wait
		made := &Attempt{options: options, ticket: Ticket{Lock: name}}
		if !options.PerName {
			made.ticket.Lock += "/" + key
		}
		start := &leasev1.Start{Request: &leasev1.Start_Begin{Begin: options.request(name, key)}}
		return made, &request{start: start, handle: func(event *leasev1.Event) { made.handle(event.GetBegin()) }}
	})
}

func (o OnceOptions) request(name, key string) *oncev1.BeginRequest {
	request := &oncev1.BeginRequest{
		Name: name, Key: key, Per: oncev1.Per_PER_KEY, Attempts: bounded32(o.MaxAttempts), Owner: o.Owner, Metadata: o.Metadata,
		WaitTimeout: optionalDuration(o.Wait), OnLoss: repeats(o.SkipLost), OnFailure: repeats(o.SkipFailed),
	}
	if o.PerName {
		request.Per = oncev1.Per_PER_NAME
	}
	if o.Keep != 0 {
		request.Keep = durationpb.New(o.Keep)
	}
	return request
}

func repeats(skip bool) oncev1.Policy {
	if skip {
		return oncev1.Policy_POLICY_SKIP
	}
	return oncev1.Policy_POLICY_RETRY
}

func (a *Attempt) handle(event *oncev1.BeginResponse) {
	switch event := event.GetEvent().(type) {
	case *oncev1.BeginResponse_Queued:
		call(a.options.OnQueued, queuedFrom(event.Queued))
	case *oncev1.BeginResponse_Begun:
		if a.id == "" { // others read them by now
			a.id, a.token, a.number = event.Begun.GetHoldId(), event.Begun.GetFencingToken(), int(event.Begun.GetAttempt())
			a.ticket.FencingToken = a.token
		}
	case *oncev1.BeginResponse_RevocationRequested:
		leaveNewest(a.revocations, revocationFrom(event.RevocationRequested), a.options.OnRevocation)
	}
}

// Number is 1 for the first attempt of the key.
func (a *Attempt) Number() int { return a.number }

// FencingToken is larger than that of every earlier attempt of the key.
func (a *Attempt) FencingToken() int64 { return a.token }

// Ticket is what the caller hands on to others, who guard with it what they write for the attempt.
func (a *Attempt) Ticket() Ticket { return a.ticket }

// Guard is ctx with the attempt as a guard of what is written with it, as Lock.Guard is with a lock.
func (a *Attempt) Guard(ctx context.Context) context.Context {
	wire := &holdv1.Guard{Hold: &holdv1.Guard_HoldId{HoldId: a.id}}
	return withGuard(ctx, guard{client: a.client, wire: wire, tickets: []Ticket{a.ticket}})
}

// Finish says how the attempt has ended, and gives up its lock; for the caller it is over at once. The note is for people: at most 256 bytes.
// With nil, this outcome is recorded, even if the lock was lost or released before. With ErrSuperseded it is not, and never will be: the lock
// was lost, and another attempt has begun since. With ErrAlreadyDone another outcome is recorded. With any other error it may be recorded or
// not, and Finish may be called again. The sidecar knows an attempt for ten minutes after its end: later, Finish fails.
func (a *Attempt) Finish(ctx context.Context, outcome Outcome, note string) error {
	a.end(ErrReleased)
	err := a.finish(ctx, outcome, note)
	a.releaseOnce.Do(func() {
		a.releaseResult = err
		if err != nil { // Finish may not have reached the sidecar
			a.request.stop()
		}
		a.cut()
		<-a.followed
		a.acknowledge()
		a.own.closeUsed(err)
	})
	return err
}

// finish asks again when the reply was lost, until ctx ends: the sidecar may be away, and wait for the lock itself.
func (a *Attempt) finish(ctx context.Context, outcome Outcome, note string) error {
	for again := (pause{}); ; {
		err := a.finishOnce(ctx, oncev1.Outcome(outcome), note)
		if err == nil {
			return nil
		}
		err = fromStatus(err)
		if !isTransient(err) && !errors.Is(err, ErrOutcomeUnknown) || rest(ctx, again.grow()) != nil {
			return fmt.Errorf("%s: the outcome is not recorded: %w", a.what, err)
		}
	}
}

func (a *Attempt) finishOnce(ctx context.Context, outcome oncev1.Outcome, note string) (err error) {
	if a.ofSchedule {
		request := &schedulev1.FinishRequest{HoldId: a.id, Outcome: outcome, Note: note}
		_, err = schedulev1.NewScheduleServiceClient(a.client.connection).Finish(ctx, request, grpc.WaitForReady(true))
	} else {
		request := &oncev1.FinishRequest{HoldId: a.id, Outcome: outcome, Note: note}
		_, err = oncev1.NewOnceServiceClient(a.client.connection).Finish(ctx, request, grpc.WaitForReady(true))
	}
	return err
}

// Once has work done once for a key, and says whether it was done in this call. If it was done before, Once returns false and no error. The
// context of work is ctx that also ends when the lock is lost, with an error that wraps ErrLost as its cause; what work writes with it and this
// client is guarded by the attempt. If work returns an error or panics, the attempt has failed. Exception: if its lock was lost by then, the
// attempt is lost. Once returns the errors of Begin, of work and of Finish. It does not promise that work runs exactly once: if this process
// dies within work, another caller begins it again.
func (c *Client) Once(
	ctx context.Context, name, key string, options OnceOptions, work func(ctx context.Context, attempt *Attempt) error,
) (done bool, err error) {
	attempt, err := c.Begin(ctx, name, key, options)
	if errors.Is(err, ErrAlreadyDone) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	outcome, note := Failed, "it has panicked"
	defer func() {
		finishing, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTime)
		defer cancel()
		var finished error
		if outcome == Failed && attempt.isLost(err) {
			finished = attempt.Release(finishing)
		} else {
			finished = attempt.Finish(finishing, outcome, note)
		}
		done, err = done && finished == nil, errors.Join(err, finished)
	}()
	held, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	unlink := attempt.onEnd(func() { cancel(context.Cause(attempt.Context())) }) //nolint:contextcheck // it ends by itself
	defer unlink()
	if err := work(attempt.Guard(held), attempt); err != nil {
		note = noteOf(err.Error())
		return false, err
	}
	outcome, note = Succeeded, ""
	return true, nil
}

// isLost says whether work that has not succeeded may have failed for its lock: then a caller cannot tell how far it came.
func (a *Attempt) isLost(err error) bool {
	return errors.Is(a.Err(), ErrLost) || errors.Is(err, ErrLost) || errors.Is(err, ErrGuardLost)
}

// longestNote bounds a note, in bytes.
const longestNote = 256

// noteOf is a text as a note may have it.
func noteOf(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))
	return strings.ToValidUTF8(text[:min(len(text), longestNote)], "")
}
