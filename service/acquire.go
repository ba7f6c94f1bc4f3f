package service

import (
	"cmp"
	"context"
	"errors"
	"time"

	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	"github.com/sidekeeper/sidekeeper/recipes"
)

// An acquisition is one Acquire stream: it gets a lease, takes a place, waits for its turn and keeps the hold.
// What it has taken it gives up after its status, however it ends.
type acquisition struct {
	services *Services
	order    order
	lock     recipes.Lock
	caller   caller
	box      *outbox[*lockv1.AcquireResponse]
	begun    time.Time

	lease    *lease
	single   bool // the lease is this stream's alone
	joining  *errand[*recipes.Place]
	place    *recipes.Place
	hold     *hold // once granted
	errands  []<-chan struct{}
	patience time.Duration // how long a silent caller may still count on the hold
}

// run is the stream from end to end. It returns the status it ends with; what it has taken is given up after that.
func (a *acquisition) run(ctx context.Context) error {
	waiting, cancel := a.boundWait(ctx)
	defer cancel()
	err := a.takeLease(waiting)
	if err != nil {
		return err
	}
	afterStatus(ctx, a.giveUp)
	defer func() { a.settle(ctx, err) }() // also after a panic
	err = errInterrupted
	granted, err := a.waitForTurn(waiting)
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

// takeLease finds the lease that the order names, or begins one for this stream alone.
func (a *acquisition) takeLease(ctx context.Context) (err error) {
	if a.services.drain.hasBegun() {
		return errStopping
	}
	if a.order.leaseID == "" {
		a.single = true
		a.lease, err = a.services.leases.begin(ctx, a.caller, a.order.about, a.services.options.SessionTimeout)
		if err == nil {
			a.lease.begin(a.order.name)
		}
		return err
	}
	a.lease, err = a.services.leases.find(a.caller, a.order.leaseID)
	if err != nil {
		return err
	}
	return a.lease.enter(a.order.name)
}

// waitForTurn takes a place and returns when it is granted.
func (a *acquisition) waitForTurn(ctx context.Context) (granted *recipes.Hold, err error) {
	if err := a.services.crowd.enter(a.order.name); err != nil {
		return nil, err
	}
	defer a.services.crowd.leave(a.order.name)
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
	about := a.order.about
	if about.Owner == "" {
		about.Owner = a.lease.about.Owner
	}
	if len(about.Metadata) == 0 {
		about.Metadata = a.lease.about.Metadata
	}
	a.joining = run(func() (*recipes.Place, error) { return a.lock.Join(a.lease.session, a.order.mode, about) })
	if err := a.pause(ctx, a.joining.done); err != nil {
		return err
	}
	a.place, err = a.joining.wait()
	return err
}

// look asks whose turn it is. If it is not this place's, it tells the caller so and returns when it is worth to look again.
func (a *acquisition) look(ctx context.Context, news *queueNews) (*recipes.Hold, error) {
	turn, err := await(ctx, a, a.stand)
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
			if glance, err = await(ctx, a, a.place.Glance); err != nil {
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

// await runs one question to the ensemble beside the stream, so that the stream can end before there is an answer.
func await[T any](ctx context.Context, a *acquisition, ask func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	asked := run(func() (T, error) { return ask(ctx) })
	if err := a.pause(ctx, asked.done); err != nil {
		a.errands = append(a.errands, asked.done)
		var nothing T
		return nothing, err
	}
	return asked.wait()
}

// pause returns when one of the channels is closed, or with what ends the waiting.
func (a *acquisition) pause(ctx context.Context, first <-chan struct{}, others ...<-chan struct{}) error {
	others = append(others, nil, nil)
	select {
	case <-first:
		return nil
	case <-others[0]:
		return nil
	case <-others[1]:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-a.lease.session.Done():
		return recipes.ErrSessionEnded
	case <-a.lease.ended:
		return a.lease.lost()
	case <-a.services.drain.notice:
		return errStopping
	case <-a.box.slow:
		return errSlowReader
	}
}

// meaning says what an error means to a caller that holds nothing yet: a lease of its own that is lost took nothing
// along, so that it can try again.
func (a *acquisition) meaning(err error) error {
	switch lost := a.lease.lost(); {
	case errors.Is(err, recipes.ErrSessionEnded), errors.Is(err, recipes.ErrGone) && lost != nil:
		if a.single {
			return errEnsembleLost
		}
		return lost
	}
	return err
}

// settle ends on our side what the stream had, before its status is sent: from here on Check answers that it is over.
func (a *acquisition) settle(ctx context.Context, why error) {
	if ctx.Err() != nil {
		why = nil // given up by the caller, or by its silence
	}
	if a.hold != nil {
		if mayCount(ctx, a.caller, why) {
			a.patience = a.lease.session.ValidFor()
			why = cmp.Or(why, errLeaseLost) // it asked for nothing, and Check must not say that it did
		}
		a.services.endHold(a.hold, why)
	}
	a.lease.drop(a.order.name)
	if a.single {
		a.lease.end(endOfLease(why))
	}
}

// mayCount says whether a caller whose stream ends may not learn of it and go on counting on what it was told.
func mayCount(ctx context.Context, from caller, why error) bool {
	return ctx.Err() != nil && from.fellSilent() || errors.Is(why, errSlowReader)
}

// giveUp lets go of the place, after the status. For a caller that only fell silent it waits until the time is over that
// the caller was told.
func (a *acquisition) giveUp() {
	defer a.box.wait()
	a.lease.streams.leave()
	if a.single {
		a.services.leases.finish(a.lease, a.patience)
	}
	for _, done := range a.errands {
		<-done
	}
	if a.joining != nil {
		a.leave()
	}
	if a.hold != nil {
		a.services.forgoHold(a.hold)
	}
}

// leave gives the place up, if there is one: with the lease if that has ended, alone otherwise.
func (a *acquisition) leave() {
	place, err := a.joining.wait()
	if err != nil {
		return
	}
	linger(a.patience, a.lease.session.Done())
	select {
	case <-a.lease.ended:
		<-a.lease.gone
	default:
		place.Leave()
	}
}
