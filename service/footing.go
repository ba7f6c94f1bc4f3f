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

// gaveUp says whether the caller itself has ended the stream, in words. Its deadline does so without it.
func gaveUp(ctx context.Context, from caller) bool {
	return errors.Is(ctx.Err(), context.Canceled) && !from.fellSilent() && !isClosed(from.left())
}

// remaining is for how long the thing is valid, noted as told to the stream's caller.
func (f *footing) remaining() time.Duration {
	remaining := f.lease.validFor()
	f.told.note(f.caller, remaining)
	return remaining
}

// mayTell says whether the thing is the caller's still.
func (f *footing) mayTell() bool { return f.lease.validFor() > 0 && f.told.note(f.caller, 0) }

// stopTelling ends what callers are told of the thing, and finds out who may go on counting on it. Whoever ended it by its own
// hand does not, and of one that has left, those alone do who asked for this very thing over other connections. One that does not
// hear of the end may count on anything, whether it was told or not.
func (f *footing) stopTelling(ctx context.Context, why error) {
	if mayNotHear(ctx, f.caller, why) {
		f.told.note(f.caller, f.lease.session.ValidFor())
	}
	f.told.close()
	switch {
	case gaveUp(ctx, f.caller):
	case isClosed(f.caller.left()):
		f.counting = f.told.noted()
	default:
		f.counting = f.lease.counting(&f.told)
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
	outlast(f.counting, f.acknowledged.closed, f.lease.session.Done())
	f.lease.streams.leave()
	if f.single {
		f.services.leases.finish(ctx, f.lease)
	}
	for _, done := range f.errands {
		<-done
	}
}

// free lets go of what the stream had in the ensemble: with the lease if that has ended, alone otherwise.
func (f *footing) free(letGo func()) {
	select {
	case <-f.lease.ended:
		<-f.lease.gone
	default:
		letGo()
	}
}
