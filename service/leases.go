package service

import (
	"cmp"
	"context"
	"errors"
	"math"
	"strconv"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/sidekeeper/sidekeeper/recipes"
)

// A lease is what a caller holds towards this sidecar: a session of its own, until it ends. It ends when its own stream
// does: Open's, or that of the one call it was made for. Its end has two steps: end, from which on nothing is the
// caller's any more, and finish, which lets go in the ensemble once all streams that stood on it have ended.
type lease struct {
	identity string // of the caller it is bound to
	about    recipes.About
	session  Session
	opened   time.Time
	serial   int64  // grows from lease to lease, also when the sidecar starts again
	mark     string // what stands for it in the log and before operators; its id is a secret

	ended chan struct{} // closed by end
	gone  chan struct{} // closed when the session is over, and with it all that the lease owned

	mu      sync.Mutex
	why     error // set before ended is closed
	streams tally // of the calls that stand on it
	things  map[thing]*possession
}

// end says why the lease has ended. What ended it first counts.
func (l *lease) end(why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.why == nil {
		l.why = cmp.Or(l.lostLocked(), why)
		close(l.ended)
	}
}

// endOfLease says how a lease ends whose stream ends so: if it is not lost, it is closed, whatever became of the stream.
func endOfLease(why error) error {
	if errors.Is(why, errHoldStopped) {
		return why
	}
	return errLeaseClosed
}

// lost says why the lease is not its caller's any more; nil while it is.
func (l *lease) lost() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lostLocked()
}

func (l *lease) lostLocked() error {
	if l.why != nil {
		return l.why
	}
	select {
	case <-l.session.Done():
		return errLeaseLost
	default:
		return nil
	}
}

// validFor is how long the lease is certainly its caller's, counted from before the call.
func (l *lease) validFor() time.Duration {
	validFor := l.session.ValidFor()
	if l.lost() != nil {
		return 0
	}
	return max(0, validFor)
}

// leases are all leases of this sidecar.
type leases struct {
	options  Options
	ensemble Ensemble
	drain    *drain
	book     book[*lease] // those that have an id
	sessions tally        // those that have not finished, and those that are being opened
	telling  tally        // those with a stream whose caller has not been sent its end yet

	mu     sync.Mutex
	open   map[*lease]struct{}
	serial int64
}

func newLeases(options Options, ensemble Ensemble, drain *drain) *leases {
	return &leases{options: options, ensemble: ensemble, drain: drain, open: map[*lease]struct{}{}}
}

// begin opens a session and makes a lease of it. Whoever begins a lease must end and finish it.
func (l *leases) begin(ctx context.Context, from caller, about recipes.About, timeout time.Duration) (*lease, error) {
	if !l.sessions.enter(l.options.MostLeases) {
		return nil, limited(errLeaseLimit, "leases", l.options.MostLeases)
	}
	session, err := l.openSession(ctx, timeout)
	if err != nil {
		l.sessions.leave()
		return nil, err
	}
	made := &lease{
		identity: from.identity, about: about, session: session, opened: time.Now(),
		ended: make(chan struct{}), gone: make(chan struct{}), things: map[thing]*possession{},
	}
	l.mu.Lock()
	l.serial = max(l.serial+1, made.opened.UnixNano()) //nolint:forbidigo // so that a page token from before a restart names older leases
	made.serial, made.mark = l.serial, markOf(l.serial)
	l.open[made] = struct{}{}
	l.mu.Unlock()
	l.telling.enter(math.MaxInt)
	l.options.Events.LeaseOpened()
	standsOn(ctx, made)
	l.options.Log.Info("lease opened", append(made.fields(), callField(ctx))...)
	return made, nil
}

// openSession waits for a session until ctx ends or the sidecar stops.
func (l *leases) openSession(ctx context.Context, timeout time.Duration) (Session, error) {
	if l.drain.hasBegun() {
		return nil, errStopping
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	opening := run(func() (Session, error) { return l.ensemble.Open(ctx, timeout) })
	select {
	case <-opening.done:
	case <-l.drain.notice:
		cancel(errStopping)
	}
	session, err := opening.wait()
	if err != nil && ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return session, err
}

// find returns the caller's open lease with this id, or why there is none.
func (l *leases) find(from caller, id string) (*lease, error) {
	if err := parseID("lease_id", id); err != nil {
		return nil, err
	}
	found, past, ok := l.book.find(id, from.identity)
	switch {
	case !ok:
		return nil, errLeaseNotFound
	case past != nil:
		return nil, past.why
	}
	return found, nil
}

// finish lets go of all that the lease owns: when the streams that stood on it have ended and, for a caller that may still
// count on it, when the time it was told is over or it has left. It is called after the status of the lease's own stream.
func (l *leases) finish(ctx context.Context, ended *lease, patience time.Duration, left <-chan struct{}) {
	<-ended.streams.empty()
	l.telling.leave()
	linger(patience, ended.session.Done(), left)
	ended.session.Close(ctx)
	l.mu.Lock()
	delete(l.open, ended)
	l.mu.Unlock()
	l.note(ended)
	close(ended.gone)
	l.sessions.leave()
}

func (l *leases) note(ended *lease) {
	reason, cause := reasonOf(ended.lost()), ended.session.Err()
	if reason == reasonOf(errLeaseClosed) {
		reason, cause = "CLOSED", nil
	}
	l.options.Events.LeaseEnded(reason, time.Since(ended.opened))
	l.options.Log.Info("lease ended", append(ended.fields(), zap.String("reason", reason), zap.NamedError("session", cause))...)
}

// fields are a lease in the log; its id is a secret.
func (l *lease) fields() []zap.Field {
	return []zap.Field{
		zap.String(leaseWord, l.mark), zap.String("caller", l.identity), zap.String("owner", l.about.Owner),
		zap.Duration("ttl", l.session.Timeout()), zap.Duration("age", time.Since(l.opened)),
	}
}

// markOf is eight digits for the serial number of a lease.
func markOf(serial int64) string { return digestOf(strconv.FormatInt(serial, 10)).String() }

// all returns the open leases, in no order.
func (l *leases) all() []*lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	open := make([]*lease, 0, len(l.open))
	for lease := range l.open {
		open = append(open, lease)
	}
	return open
}

// linger waits for as long as a caller may count on what it was told, or until the session is over or the caller has left.
func linger(patience time.Duration, over, left <-chan struct{}) {
	if patience <= 0 {
		return
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-over:
	case <-left:
	}
}
