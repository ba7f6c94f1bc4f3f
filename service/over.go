package service

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/caller"
	machine "github.com/sidekeeper/sidekeeper/internal/lease"
)

// An over is the end of a stream or of a lease, with its cause. Each end comes through it, and the first one counts:
//
//   - the caller has ended the stream, or its deadline or its connection has: the cause is the context's own error;
//   - the caller may not make the call any more (caller.Permission);
//   - the caller does not read what it is sent (errSlowReader);
//   - the caller has given up what the stream waits for or holds (errGivenUp);
//   - a revocation's grace is over (heldRecipe.revoked);
//   - the lease has ended that the stream stands on: its session has (errLeaseLost), its caller or its own stream has closed it
//     (errLeaseClosed), or the sidecar stops (errHoldStopped).
type over struct {
	ctx context.Context //nolint:containedctx // the end is what it is for
	end context.CancelCauseFunc
}

// errGivenUp ends a stream whose caller has given up what it waits for or holds by another call or message.
var errGivenUp = fmt.Errorf("given up: %w", context.Canceled)

func newOver(within context.Context) (o over) {
	o.ctx, o.end = context.WithCancelCause(within)
	return o
}

// overOf is the end of a call from the network, or of one inside of another.
func overOf(call context.Context) over {
	o := newOver(call)
	caller.PermissionOf(call).Ends(o.end)
	return o
}

// endWith has the stream end as the lease does, unless forget is called before.
func (o over) endWith(l *lease) (forget func() bool) {
	return context.AfterFunc(l.over.ctx, func() { o.end(l.over.why()) })
}

// Done is closed at the end.
func (o over) Done() <-chan struct{} { return o.ctx.Done() }

// why is the cause of the end; nil before it.
func (o over) why() error { return context.Cause(o.ctx) }

// partingOf says how a stream ends that its caller reads, and that began then. why is what ends it; nil if it was released.
func partingOf(stream context.Context, from caller.Caller, began time.Time, why error) machine.Parting {
	switch {
	case gaveUp(stream, from, began):
		return machine.Cancelled
	case stream.Err() != nil:
		return machine.Deserted
	case why == nil, errors.Is(why, context.Canceled):
		return machine.Released
	}
	return machine.Forced
}

// almostDue is how long before a stream's deadline its end is taken for the deadline's: the caller's library, whose clock
// decides, and may be faster (see machine.Clocks), says that it cancels.
const almostDue = time.Second

// gaveUp says whether the caller itself has ended the stream, which began then, in words. Its deadline does so without it.
func gaveUp(ctx context.Context, from caller.Caller, began time.Time) bool {
	deadline, bounded := ctx.Deadline()
	return errors.Is(ctx.Err(), context.Canceled) && !from.FellSilent() && !isClosed(from.Left()) &&
		(!bounded || time.Until(deadline) > almostDue+time.Since(began)/machine.Clocks)
}
