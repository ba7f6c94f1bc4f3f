package service

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/caller"
)

// settle ends on our side what the stream had, before its status is sent: from here on Check answers that it is over.
func (s *heldStream[P, M]) settle(ctx context.Context, why error) {
	s.gaveUp = gaveUp(ctx, s.caller, s.began) // before anybody learns of the end: whoever does may end the stream for that alone
	if ctx.Err() != nil {
		why = nil // given up by the caller, or by its silence
	}
	s.letsGo = s.held && (s.gaveUp || why == nil && ctx.Err() == nil)
	if s.held {
		if mayNotHear(ctx, s.caller, why) {
			why = cmp.Or(why, errLeaseLost) // it asked for nothing, and Check must not say that it did
		}
		s.recipe.end(why)
		s.stopTelling(ctx, why)
		s.forgone = s.taken || s.recipe.awaited != nil && s.recipe.awaited(why)
		s.place.Disregard()
	}
	if s.recipe.again != nil {
		s.lease.yield(s.recipe.resource)
	} else {
		s.lease.drop(s.recipe.all()...)
	}
	if s.single { // the lease is this stream's alone, and ends before the status too
		s.lease.end(endOfLease(why))
	}
}

// giveUp lets go of the place, after the status, and when nobody counts on the hold any more. Where places have names, the lease can
// take one under the same name when that is done, and not before: the name alone would not tell the new one from the old.
func (s *heldStream[P, M]) giveUp(ctx context.Context) {
	defer s.box.wait()
	if s.recipe.again != nil {
		defer s.lease.drop(s.recipe.resource)
	}
	s.giveUpUnreturned()
	s.leaveLease(ctx)
	if s.taking != nil {
		if place, err := s.taking.wait(); err == nil {
			s.free(func() { place.Leave(ctx) })
		}
	}
	if s.held && s.recipe.gone != nil {
		s.recipe.gone()
	}
}

// mayNotHear says whether a caller whose stream ends certainly does not hear of it now: it fell silent, or does not read.
func mayNotHear(ctx context.Context, from caller.Caller, why error) bool {
	return ctx.Err() != nil && from.FellSilent() || errors.Is(why, errSlowReader)
}

// almostDue is how long before a stream's deadline its end is taken for the deadline's: the caller's library, whose clock
// decides, and may be faster (see clocks), says that it cancels.
const almostDue = time.Second

// gaveUp says whether the caller itself has ended the stream, which began then, in words. Its deadline does so without it.
func gaveUp(ctx context.Context, from caller.Caller, began time.Time) bool {
	deadline, bounded := ctx.Deadline()
	return errors.Is(ctx.Err(), context.Canceled) && !from.FellSilent() && !isClosed(from.Left()) &&
		(!bounded || time.Until(deadline) > almostDue+time.Since(began)/clocks)
}

// stopTelling ends what callers are told of the hold, and finds out who may go on counting on it. Where the caller has given it up or
// has left, those alone do who asked for this very hold over other connections. One that does not hear of the end may count on
// anything, whether it was told or not.
func (s *heldStream[P, M]) stopTelling(ctx context.Context, why error) {
	if errors.Is(why, errHoldStopped) {
		s.lease.end(why) // its own stream may not have noticed yet
	}
	if mayNotHear(ctx, s.caller, why) {
		s.told.note(s.caller, s.lease.session.ValidFor())
	}
	s.told.close()
	if s.gaveUp || isClosed(s.caller.Left()) {
		s.counting = s.told.noted()
		delete(s.counting, s.caller.Ending)
		return
	}
	s.counting, s.leaseCounts = s.lease.counting(&s.told), s.started != nil
}

// counted is until when those may count on the hold who were told of its validity. On its lease's stream, what was told of the lease before
// the end counts for the hold, and has been noted once the end is handed to the transport.
func (s *heldStream[P, M]) counted() map[*caller.Ending]time.Time {
	switch {
	case s.forgone:
		return nil
	case s.leaseCounts:
		return later(s.counting, s.lease.counting(&s.told))
	}
	return s.counting
}

// outlast returns when nobody counts on the hold any more that has ended: the caller has acknowledged that, the session is over, or,
// for each connection over which a validity was told, that validity is, or the connection has left, and with it the one of the
// stream. Whoever asks over short connections may live on as long as its stream does.
func (s *heldStream[P, M]) outlast() {
	own := s.caller.Left()
	if s.gaveUp {
		own = after(0)
	}
	for connection, until := range s.counted() {
		timer := time.NewTimer(time.Until(until))
		s.outlastOne(connection.Left(), own, timer.C)
		timer.Stop()
	}
}

func (s *heldStream[P, M]) outlastOne(connection, own <-chan struct{}, over <-chan time.Time) {
	for _, left := range []<-chan struct{}{connection, own} {
		select {
		case <-left:
		case <-over:
			return
		case <-s.acknowledged.closed:
			return
		case <-s.lease.session.Done():
			return
		}
	}
}

// leaveLease takes the stream off its lease, after the status, when nobody counts on the hold any more: the lease may end
// then, whoever ends it. It returns when nothing runs beside the stream any more. A lease that was the stream's alone
// has let go of all in the ensemble by then.
func (s *heldStream[P, M]) leaveLease(ctx context.Context) {
	s.outlast()
	if s.letsGo && s.recipe.letGo != nil {
		s.recipe.letGo(ctx)
	}
	s.lease.streams.leave()
	if s.single {
		s.services.leases.finish(ctx, s.lease)
	}
	for _, done := range s.calls {
		<-done
	}
}

// together is how long what stands on a lease that has ended waits for going all at once: longer if others count on something else
// that stands on it, for whom nobody waits.
const together = 50 * time.Millisecond

// free lets go of what the stream had in the ensemble: with the lease if that has ended, alone otherwise.
func (s *heldStream[P, M]) free(letGo func()) {
	if isClosed(s.lease.ended) {
		select {
		case <-s.lease.gone:
			return
		case <-after(together):
		}
	}
	letGo()
}
