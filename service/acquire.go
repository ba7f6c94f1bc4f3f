package service

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	"github.com/sidekeeper/sidekeeper/recipes"
)

// An acquisition is one Acquire stream: it gets a lease, takes a place, waits for its turn and keeps the hold.
// What it has taken it gives up after its status, however it ends.
type acquisition struct {
	footing

	order order
	lock  recipes.Lock
	box   *outbox[*lockv1.AcquireResponse]
	begun time.Time

	joining *errand[*recipes.Place]
	place   *recipes.Place
	hold    *hold // once granted
	taken   bool  // somebody else has removed the place
}

// run is the stream from end to end. It returns the status it ends with; what it has taken is given up after that. Whoever is
// one too many for the lock's queue is told so before a session is opened for it.
func (a *acquisition) run(ctx context.Context) error {
	if err := a.services.crowd.enter(a.order.name); err != nil {
		return err
	}
	leaveCrowd := sync.OnceFunc(func() { a.services.crowd.leave(a.order.name) })
	defer leaveCrowd()
	waiting, cancel := a.boundWait(ctx)
	defer cancel()
	err := a.takeLease(waiting, a.order.leaseID, a.order.about)
	if err != nil {
		return err
	}
	afterStatus(ctx, func() { a.giveUp(ctx) })
	defer func() { a.settle(ctx, err) }() // also after a panic
	err = errInterrupted
	granted, err := a.waitForTurn(waiting)
	leaveCrowd()
	if err != nil {
		return err
	}
	err = errInterrupted
	err = a.keep(ctx, granted)
	return err
}

var errInterrupted = errors.New("interrupted by a panic")

// boundWait gives the waiting an end of its own, without touching the stream's.
func (a *acquisition) boundWait(ctx context.Context) (context.Context, context.CancelFunc) {
	if a.order.patience == nil || a.order.triesOnce() {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, *a.order.patience, errWaitTimeout)
}

// waitForTurn takes a place and returns when it is granted.
func (a *acquisition) waitForTurn(ctx context.Context) (granted *recipes.Hold, err error) {
	ctx, span := tracerOf(ctx).Start(ctx, "wait for the lock")
	defer span.End()
	a.services.options.Events.WaitBegun()
	defer func() { a.services.options.Events.WaitEnded(granted != nil, time.Since(a.begun)) }()
	if err := a.join(ctx); err != nil {
		return nil, a.meaning(err)
	}
	news := queueNews{box: a.box}
	for {
		granted, err := a.look(ctx, &news)
		if granted != nil {
			return granted, nil
		}
		if errors.Is(err, recipes.ErrUnreachable) { // the place is kept for as long as the lease lives
			err = a.pause(ctx, after(countdown))
		}
		if err != nil {
			return nil, a.meaning(err)
		}
	}
}

// join takes a place. A join cannot be cancelled: if the stream ends first, giveUp waits for the place to leave it.
func (a *acquisition) join(ctx context.Context) (err error) {
	about := a.aboutWith(a.order.about)
	a.joining = run(func() (*recipes.Place, error) { return a.lock.Join(ctx, a.lease.session, a.order.mode, about) })
	if err := a.pause(ctx, a.joining.done); err != nil {
		return err
	}
	a.place, err = a.joining.wait()
	return err
}

// look asks whose turn it is. If it is not this place's, it tells the caller so and returns when it is worth to look again.
func (a *acquisition) look(ctx context.Context, news *queueNews) (*recipes.Hold, error) {
	turn, err := await(ctx, &a.footing, a.stand)
	switch {
	case err != nil:
		return nil, err
	case turn.Revocation.Break:
		return nil, errLockBroken
	case turn.First:
		return turn.granted, nil
	case a.order.triesOnce():
		return nil, errLockHeld
	}
	for {
		due := news.due(turn.Turn)
		err := a.pause(ctx, turn.Changed, turn.Marked, due)
		if err != nil || !isClosed(due) {
			return nil, err
		}
		glance := turn.Turn // of a place right behind the holder, Look has told everything
		if turn.Position > 1 {
			if glance, err = await(ctx, &a.footing, a.place.Glance); err != nil {
				return nil, err
			}
		}
		news.tell(glance)
	}
}

// A standing is how the place stands in the queue, with the hold that it has become if it is its turn.
type standing struct {
	recipes.Turn
	granted *recipes.Hold
}

// stand looks and, if it is the place's turn, has it granted in one go.
func (a *acquisition) stand(ctx context.Context) (standing, error) {
	turn, err := a.place.Look(ctx)
	if err != nil || !turn.First || turn.Revocation.Break {
		return standing{Turn: turn}, err
	}
	granted, err := a.place.Grant(ctx)
	return standing{turn, granted}, err
}

// settle ends on our side what the stream had, before its status is sent: from here on Check answers that it is over.
func (a *acquisition) settle(ctx context.Context, why error) {
	if ctx.Err() != nil {
		why = nil // given up by the caller, or by its silence
	}
	if a.hold != nil {
		if mayNotHear(ctx, a.caller, why) {
			why = cmp.Or(why, errLeaseLost) // it asked for nothing, and Check must not say that it did
		}
		a.services.endHold(a.hold, why)
		a.stopTelling(ctx, why)
		if a.taken {
			a.counting = nil
		}
		a.place.Disregard()
	}
	a.lease.drop(a.thing)
	a.endLease(why)
}

// giveUp lets go of the place, after the status, and when nobody counts on the hold any more.
func (a *acquisition) giveUp(ctx context.Context) {
	defer a.box.wait()
	a.leaveLease(ctx)
	if a.joining != nil {
		a.leave(ctx)
	}
	if a.hold != nil {
		a.services.forgoHold(a.hold)
	}
}

// leave gives the place up, if there is one.
func (a *acquisition) leave(ctx context.Context) {
	if place, err := a.joining.wait(); err == nil {
		a.free(func() { place.Leave(ctx) })
	}
}
