package service

import (
	"cmp"
	"context"
	"errors"

	membershipv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/membership/v1"
	"github.com/sidekeeper/sidekeeper/recipes"
)

// A joining is one Join stream: it gets a lease, waits for the name if it must, and keeps the member. What it has taken it
// gives up after its status, however it ends.
type joining struct {
	footing
	enrolment

	recipe recipes.Group
	box    *outbox[*membershipv1.JoinResponse]

	entering   *errand[*recipes.Membership] // the newest attempt
	membership *recipes.Membership
	member     *member // once joined
}

// run is the stream from end to end. It returns the status it ends with; what it has taken is given up after that.
func (j *joining) run(ctx context.Context) error {
	waiting, cancel := j.boundWait(ctx)
	defer cancel()
	err := j.stand(waiting)
	if err != nil {
		return err
	}
	afterStatus(ctx, func() { j.giveUp(ctx) })
	defer func() { j.settle(ctx, err) }() // also after a panic
	err = errInterrupted
	err = j.enter(waiting)
	if err != nil {
		return err
	}
	err = errInterrupted
	err = j.keep(ctx)
	return err
}

// boundWait gives the waiting an end of its own, without touching the stream's.
func (j *joining) boundWait(ctx context.Context) (context.Context, context.CancelFunc) {
	if j.wait == nil {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, *j.wait, errWaitTimeout)
}

// stand takes the lease. One that is just leaving the group under this name can be waited for.
func (j *joining) stand(ctx context.Context) error {
	for {
		err := j.takeLease(ctx, j.leaseID, j.about)
		if !errors.Is(err, errAlreadyContending) {
			return err
		}
		leaving := j.lease.leaving(j.thing)
		if j.rejects() || leaving == nil {
			return &fault{kind: recipes.ErrMemberExists, text: "it stands on the same lease"}
		}
		if err := j.pause(ctx, leaving); err != nil {
			return err
		}
	}
}

// enter makes the member, as soon as the name is free.
func (j *joining) enter(ctx context.Context) error {
	for {
		err := j.tryOnce(ctx)
		if errors.Is(err, recipes.ErrMemberExists) && !j.rejects() {
			_, err = await(ctx, &j.footing, j.awaitName)
			if errors.Is(err, recipes.ErrUnreachable) {
				err = j.pause(ctx, after(countdown))
			}
			if err == nil {
				continue
			}
		}
		if err != nil {
			return j.meaning(orTooMuch(err))
		}
		_, err = await(ctx, &j.footing, func(ctx context.Context) (struct{}, error) {
			return struct{}{}, j.lease.session.Prove(ctx)
		})
		return j.meaning(err)
	}
}

// tryOnce joins. That cannot be cancelled: if the stream ends first, giveUp waits for the member to take it out again.
func (j *joining) tryOnce(ctx context.Context) (err error) {
	about := j.aboutWith(j.about)
	j.entering = run(func() (*recipes.Membership, error) { return j.recipe.Join(ctx, j.lease.session, j.called, about) })
	if err := j.pause(ctx, j.entering.done); err != nil {
		return err
	}
	j.membership, err = j.entering.wait()
	return err
}

// awaitName returns when the name may be free.
func (j *joining) awaitName(ctx context.Context) (struct{}, error) {
	ensemble := j.services.ensemble
	if j.conflict == membershipv1.OnConflict_ON_CONFLICT_WAIT {
		return struct{}{}, j.recipe.AwaitFree(ctx, ensemble, j.called)
	}
	_, err := j.recipe.Evict(ctx, ensemble, j.called, recipes.Eviction{
		Replace: true, By: j.caller.identity, Reason: j.aboutWith(j.about).Owner, ForceAfter: j.services.patience(nil),
	})
	return struct{}{}, err
}

// settle ends on our side what the stream had, before its status is sent.
func (j *joining) settle(ctx context.Context, why error) {
	if ctx.Err() != nil {
		why = nil // given up by the caller, or by its silence
	}
	if j.member != nil {
		if mayNotHear(ctx, j.caller, why) {
			why = cmp.Or(why, errLeaseLost)
		}
		j.services.endMember(j.member, why)
		j.stopTelling(ctx, why)
		if j.isAwaited(why) {
			j.counting = nil
		}
		j.membership.Disregard()
	}
	j.lease.yield(j.thing)
	j.endLease(why)
}

// isAwaited says whether others wait for a member's end, which locks nothing: somebody else who takes its name, or all callers of a
// sidecar that stops.
func (j *joining) isAwaited(why error) bool {
	return errors.Is(why, recipes.ErrReplaced) || errors.Is(why, recipes.ErrRemoved) || errors.Is(why, errHoldStopped)
}

// giveUp takes the member out of the group, after the status, and when nobody counts on it any more. The lease can join
// under the name again when that is done, and not before: the name alone would not tell the new member from the old.
func (j *joining) giveUp(ctx context.Context) {
	defer j.box.wait()
	defer j.lease.drop(j.thing)
	j.leaveLease(ctx)
	if j.entering == nil {
		return
	}
	if membership, err := j.entering.wait(); err == nil {
		j.free(func() { membership.Leave(ctx) })
	}
}
