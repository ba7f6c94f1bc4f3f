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

	lease    *lease
	single   bool // the lease is this stream's alone
	errands  []<-chan struct{}
	patience time.Duration // how long a silent caller may still count on the thing
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

// mayCount says whether a caller whose stream ends may not learn of it in time and go on counting on what it was told: one
// that fell silent, one that does not read, and, since it may be frozen just then, one whose sidecar stops.
func mayCount(ctx context.Context, from caller, why error) bool {
	return ctx.Err() != nil && from.fellSilent() || errors.Is(why, errSlowReader) ||
		errors.Is(why, errHoldStopped) && from.left() != nil
}

// endLease ends a lease that is this stream's alone, before the status.
func (f *footing) endLease(why error) {
	if f.single {
		f.lease.end(endOfLease(why))
	}
}

// leaveLease takes the stream off its lease, after the status, and returns when nothing runs beside the stream any more.
// A lease that was the stream's alone has let go of all in the ensemble by then.
func (f *footing) leaveLease(ctx context.Context) {
	f.lease.streams.leave()
	if f.single {
		f.services.leases.finish(ctx, f.lease, f.patience, f.caller.left())
	}
	for _, done := range f.errands {
		<-done
	}
}

// free lets go of what the stream had in the ensemble: with the lease if that has ended, alone otherwise.
func (f *footing) free(letGo func()) {
	linger(f.patience, f.lease.session.Done(), f.caller.left())
	select {
	case <-f.lease.ended:
		<-f.lease.gone
	default:
		letGo()
	}
}
