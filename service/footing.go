package service

import (
	"context"
	"errors"
	"time"

	"github.com/sidekeeper/sidekeeper/recipes"
)

// A footing is what a stream stands on that wants to have something: a lease, which it names or has for itself alone.
type footing struct {
	services *Services
	caller   caller
	thing    thing           // what the stream is about
	left     <-chan struct{} // closed when the caller has ended the stream
	slow     <-chan struct{} // closed when the caller does not read

	lease   *lease
	single  bool // the lease is this stream's alone
	errands []<-chan struct{}

	told         tellings              // of the thing's validity
	acknowledged *latch                // closed when the caller has said that it does not count on the thing any more
	counting     map[*ending]time.Time // who may go on counting on the thing after its end, and until when
	gaveUp       bool                  // the caller has ended the stream itself
}

// takeLease finds the lease with this id or, if it is empty, begins one for this stream alone.
func (f *footing) takeLease(ctx context.Context, id string, about recipes.About) (err error) {
	if f.services.drain.hasBegun() {
		return errStopping
	}
	if id == "" {
		f.single = true
		f.lease, err = f.services.leases.begin(ctx, f.caller, about, f.services.options.SessionTimeout)
		if err == nil {
			f.lease.begin(f.thing, f.left)
		}
		return err
	}
	f.lease, err = f.services.leases.find(f.caller, id)
	if err != nil {
		return err
	}
	standsOn(ctx, f.lease)
	return f.lease.enter(f.thing, f.left)
}

// aboutWith is what a caller says about itself in its request, and for the rest what it said of its lease.
func (f *footing) aboutWith(about recipes.About) recipes.About {
	if about.Owner == "" {
		about.Owner = f.lease.about.Owner
	}
	if len(about.Metadata) == 0 {
		about.Metadata = f.lease.about.Metadata
	}
	about.Timeout = f.lease.session.Timeout()
	return about
}

// await runs one question to the ensemble beside the stream, so that the stream can end before there is an answer.
func await[T any](ctx context.Context, f *footing, ask func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	asked := run(func() (T, error) { return ask(ctx) })
	if err := f.pause(ctx, asked.done); err != nil {
		f.errands = append(f.errands, asked.done)
		var nothing T
		return nothing, err
	}
	return asked.wait()
}

// pause returns when one of the channels is closed, or with what ends the waiting.
func (f *footing) pause(ctx context.Context, first <-chan struct{}, others ...<-chan struct{}) error {
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
	case <-f.lease.session.Done():
		return recipes.ErrSessionEnded
	case <-f.lease.ended:
		return f.lease.lost()
	case <-f.services.drain.notice:
		return errStopping
	case <-f.slow:
		return errSlowReader
	}
}

// meaning says what an error means to a caller that has nothing yet: a lease of its own that is lost took nothing
// along, so that it can try again.
func (f *footing) meaning(err error) error {
	switch lost := f.lease.lost(); {
	case errors.Is(err, recipes.ErrSessionEnded), errors.Is(err, recipes.ErrGone) && lost != nil:
		if f.single {
			return errEnsembleLost
		}
		return lost
	}
	return err
}

// mayNotHear says whether a caller whose stream ends certainly does not hear of it now: it fell silent, or does not read.
func mayNotHear(ctx context.Context, from caller, why error) bool {
	return ctx.Err() != nil && from.fellSilent() || errors.Is(why, errSlowReader)
}

// almostDue is how long before a stream's deadline its end is taken for the deadline's: the caller's library, whose clock
// decides, says that it cancels.
const almostDue = time.Second

// gaveUp says whether the caller itself has ended the stream, in words. Its deadline does so without it.
func gaveUp(ctx context.Context, from caller) bool {
	deadline, bounded := ctx.Deadline()
	return errors.Is(ctx.Err(), context.Canceled) && !from.fellSilent() && !isClosed(from.left()) &&
		(!bounded || time.Until(deadline) > almostDue)
}

// remaining is for how long the thing is valid, noted as told to the stream's caller.
func (f *footing) remaining() time.Duration {
	remaining := f.lease.validFor()
	f.told.note(f.caller, remaining)
	return remaining
}

// mayTell says whether the thing is the caller's still.
func (f *footing) mayTell() bool { return f.lease.validFor() > 0 && f.told.note(f.caller, 0) }

// stopTelling ends what callers are told of the thing, and finds out who may go on counting on it. Where the caller has given it up or
// has left, those alone do who asked for this very thing over other connections. One that does not hear of the end may count on
// anything, whether it was told or not.
func (f *footing) stopTelling(ctx context.Context, why error) {
	if errors.Is(why, errHoldStopped) {
		f.lease.end(why) // its own stream may not have noticed yet
	}
	if mayNotHear(ctx, f.caller, why) {
		f.told.note(f.caller, f.lease.session.ValidFor())
	}
	f.told.close()
	if f.gaveUp = gaveUp(ctx, f.caller); f.gaveUp || isClosed(f.caller.left()) {
		f.counting = f.told.noted()
		delete(f.counting, f.caller.ending)
		return
	}
	f.counting = f.lease.counting(&f.told)
}

// outlast returns when nobody counts on the thing any more that has ended: the caller has acknowledged that, the session is over, or,
// for each connection over which a validity was told, that validity is, or the connection has left, and with it the one of the
// stream. Whoever asks over short connections may live on as long as its stream does.
func (f *footing) outlast() {
	caller := f.caller.left()
	if f.gaveUp {
		caller = after(0)
	}
	for connection, until := range f.counting {
		timer := time.NewTimer(time.Until(until))
		f.outlastOne(connection.left, caller, timer.C)
		timer.Stop()
	}
}

func (f *footing) outlastOne(connection, caller <-chan struct{}, over <-chan time.Time) {
	for _, left := range []<-chan struct{}{connection, caller} {
		select {
		case <-left:
		case <-over:
			return
		case <-f.acknowledged.closed:
			return
		case <-f.lease.session.Done():
			return
		}
	}
}

// endLease ends a lease that is this stream's alone, before the status.
func (f *footing) endLease(why error) {
	if f.single {
		f.lease.end(endOfLease(why))
	}
}

// leaveLease takes the stream off its lease, after the status, when nobody counts on the thing any more: the lease may end
// then, whoever ends it. It returns when nothing runs beside the stream any more. A lease that was the stream's alone
// has let go of all in the ensemble by then.
func (f *footing) leaveLease(ctx context.Context) {
	f.outlast()
	f.lease.streams.leave()
	if f.single {
		f.services.leases.finish(ctx, f.lease)
	}
	for _, done := range f.errands {
		<-done
	}
}

// together is how long what stands on a lease that has ended waits for going all at once: longer if others count on something else
// that stands on it, for whom nobody waits.
const together = 50 * time.Millisecond

// free lets go of what the stream had in the ensemble: with the lease if that has ended, alone otherwise.
func (f *footing) free(letGo func()) {
	if isClosed(f.lease.ended) {
		select {
		case <-f.lease.gone:
			return
		case <-after(together):
		}
	}
	letGo()
}
