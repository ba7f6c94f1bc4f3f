package service

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"strconv"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/sidekeeper/sidekeeper/internal/caller"
	machine "github.com/sidekeeper/sidekeeper/internal/lease"
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
	logID    string // what stands for it in the log and before operators; its id is a secret
	id       string // empty if it belongs to a single call
	key      digest

	note *note // for a later process that may resume the lease; nil if there is none

	drain *drain        // that ends what stands on it
	drive driver        // who may count on it, and on what stands on it
	over  over          // ended by end, with the reason
	gone  chan struct{} // closed when the session is over, and with it all that the lease owned
	freed chan struct{} // closed when nothing stands on the lease any more, though the disk keeps its session from being closed; nil without note
	leave []func() bool // of what ends it: the session, the drain

	mu        sync.Mutex
	why       error     // set before over ends
	streams   openCount // of what must have left it before it is finished: calls, and what the process before had on it
	places    openCount // of what may have nodes of its own in the ensemble
	resources map[resource]*possession

	waits      recipes.Waits
	publishing bool // what it waits for
}

// heedSession has the lease end with its session.
func (l *lease) heedSession() {
	l.leave = append(l.leave, l.session.AfterEnd(func() {
		l.end(errLeaseLost)
		l.drive.step(machine.Event{Kind: machine.Lost})
	}))
}

// heedDrain has the lease end when the sidecar does not wait for holders any longer. It is called when it is certain that no later process
// is to come back to the lease instead.
func (l *lease) heedDrain() {
	l.leave = append(l.leave, context.AfterFunc(l.drain.over.ctx, func() { l.end(errHoldStopped) }))
}

func (l *lease) forgetEnds() {
	for _, leave := range l.leave {
		leave()
	}
}

// end says why the lease has ended. What ended it first counts.
func (l *lease) end(why error) { l.endWith(why, func() {}) }

// close ends the lease by its caller's own hand: over this connection nobody counts on anything that stands on it any more.
func (l *lease) close(by caller.Caller) {
	l.endWith(errLeaseClosed, func() { l.drive.close(by) })
}

// endWith does something before anything learns of the end, if it is the first one.
func (l *lease) endWith(why error, first func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.why == nil {
		first()
		l.why = cmp.Or(l.lostLocked(), why)
		l.over.end(l.why)
		if l.note != nil {
			l.note.forget()
		}
	}
}

// resumable says whether a later process may come back to the lease.
func (l *lease) resumable() bool { return l.note != nil && !l.note.abandoned }

// mayReturn has a later process able to come back to the lease, unless it has ended meanwhile.
func (l *lease) mayReturn(by *note, handOver bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.note, l.freed = by, make(chan struct{})
	if handOver && l.resumable() {
		l.drain = newDrain() // which never begins
	}
	if l.why != nil {
		by.forget()
	}
}

// endOfLease says how a lease ends whose stream ends so: if it is not lost, it is closed, whatever became of the stream.
func endOfLease(why error) error {
	if errors.Is(why, errHoldStopped) {
		return why
	}
	return errLeaseClosed
}

// mayKnow says whether a caller may be told of the lease's validity. Of others than its stream's caller a later process must know first.
func (l *lease) mayKnow(ctx context.Context, from caller.Caller) error {
	if !l.resumable() || from.Ending == l.note.own || l.note.share(ctx) {
		return nil
	}
	return errNotRecorded
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

// tell notes what is told of the lease's validity to whoever asks, and returns it; 0 if the lease has ended. What is noted before that is in the
// account of all that stands on it.
func (l *lease) tell(to caller.Caller, validFor time.Duration) time.Duration {
	l.drive.tell(0, to, validFor)
	if l.lost() != nil {
		return 0
	}
	return max(0, validFor)
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
	ids      idRegistry[*lease] // those that have an id
	sessions openCount          // those that have not finished, and those that are being opened
	shares   *caller.Shares     // of them, by identity
	returns  *returns
	disk     disk

	mu     sync.Mutex
	open   map[*lease]struct{}
	serial int64
}

func newLeases(options Options, ensemble Ensemble, drain *drain) *leases {
	return &leases{
		options: options, ensemble: ensemble, drain: drain, open: map[*lease]struct{}{}, shares: caller.NewShares(options.LeaseShare),
		returns: newReturns(options.Resumption, drain), disk: make(disk, mostAtDisk),
	}
}

// begin opens a session and makes a lease of it. The code that begins a lease must have it heed the drain, end it and finish it.
func (l *leases) begin(ctx context.Context, from caller.Caller, about recipes.About, timeout time.Duration) (*lease, error) {
	return l.beginWith(ctx, from, about, time.Now(), func(ctx context.Context) (Session, error) { return l.ensemble.Open(ctx, timeout) })
}

// beginWith makes a lease of the session that open returns. It is as old as opened says.
func (l *leases) beginWith(
	ctx context.Context, from caller.Caller, about recipes.About, opened time.Time, open func(context.Context) (Session, error),
) (*lease, error) {
	if err := l.admit(from.Identity); err != nil {
		return nil, err
	}
	return l.beginAdmitted(ctx, from, about, opened, func() (Session, error) { return l.openSession(ctx, open) })
}

// beginToEnd makes a lease for what ends something whose beginning was admitted: no limit, no quota and no drain refuses it.
func (l *leases) beginToEnd(ctx context.Context, from caller.Caller, about recipes.About, timeout time.Duration) (*lease, error) {
	l.shares.AddInAnyCase(from.Identity, 1)
	l.sessions.enter(math.MaxInt)
	return l.beginAdmitted(ctx, from, about, time.Now(), func() (Session, error) { return l.ensemble.Open(ctx, timeout) })
}

func (l *leases) beginAdmitted(
	ctx context.Context, from caller.Caller, about recipes.About, opened time.Time, open func() (Session, error),
) (*lease, error) {
	session, err := open()
	if err != nil {
		l.dismiss(from.Identity)
		return nil, err
	}
	made := &lease{
		identity: from.Identity, about: about, session: session, opened: opened, drain: l.drain,
		over: newOver(context.Background()), gone: make(chan struct{}), resources: map[resource]*possession{},
		waits: l.options.waits(), drive: driver{began: time.Now(), session: session.Key().ID},
	}
	made.heedSession()
	l.mu.Lock()
	l.serial = max(l.serial+1, time.Now().UnixNano()) //nolint:forbidigo // so that a page token from before a restart names older leases
	made.serial, made.logID = l.serial, logIDOf(l.serial)
	l.open[made] = struct{}{}
	l.mu.Unlock()
	l.options.Events.LeaseOpened()
	caller.CallOf(ctx).StandsOn(made.logID)
	l.options.Log.Debug("lease opened", append(made.fields(), caller.CallOf(ctx).Number())...)
	return made, nil
}

// admit makes room for one more session. Who was admitted is dismissed.
func (l *leases) admit(identity string) error {
	if !l.shares.Add(identity, 1) {
		return QuotaExceeded("leases", l.shares.Most(identity), identity, 0)
	}
	if !l.sessions.enter(l.options.MostLeases) {
		l.shares.Add(identity, -1)
		return limited(errLeaseLimit, "max-leases", l.options.MostLeases)
	}
	return nil
}

func (l *leases) dismiss(identity string) {
	l.sessions.leave()
	l.shares.Add(identity, -1)
}

// openSession waits for a session until ctx ends or the sidecar stops.
func (l *leases) openSession(ctx context.Context, open func(context.Context) (Session, error)) (Session, error) {
	if l.drain.hasBegun() {
		return nil, errStopping
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	opening := run(func() (Session, error) { return open(ctx) })
	select {
	case <-opening.over.Done():
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
func (l *leases) find(ctx context.Context, id string) (*lease, error) {
	found, past, err := l.lookUp(ctx, id)
	switch {
	case err != nil:
		return nil, err
	case past != nil:
		return nil, past.why
	}
	if err := found.mayKnow(ctx, caller.Of(ctx)); err != nil {
		return nil, err
	}
	return found, nil
}

// lookUp returns the caller's lease with this id, or how it has ended.
func (l *leases) lookUp(ctx context.Context, id string) (*lease, *tombstone, error) {
	if err := parseID("lease_id", id); err != nil {
		return nil, nil, err
	}
	found, past, ok, err := lookUp(ctx, l.returns, &l.ids, id, digestOf(id))
	if err == nil && !ok {
		err = errLeaseNotFound
	}
	return found, past, err
}

// finish lets go of all that the lease owns, when the streams that stood on it have left it: nobody counts on what they had
// any more. It is called after the status of the lease's own stream.
func (l *leases) finish(ctx context.Context, ended *lease) {
	<-ended.streams.empty()
	ended.forgetEnds()
	ended.drive.finish()
	if ended.note != nil { // or a later process could come back to a session that is about to be closed
		ended.awaitForgotten()
	}
	ended.session.Close(ctx)
	l.mu.Lock()
	delete(l.open, ended)
	l.mu.Unlock()
	l.note(ended)
	close(ended.gone)
	l.dismiss(ended.identity)
}

// awaitForgotten returns when no later process can come back to the lease. Where the disk takes long for that, it says when the lease is free.
func (l *lease) awaitForgotten() {
	select {
	case <-l.note.forgotten.closed:
		return
	case <-after(noteTime):
	}
	select {
	case <-l.note.forgotten.closed:
		return
	case <-l.places.empty():
		close(l.freed)
	}
	<-l.note.forgotten.closed
}

func (l *leases) note(ended *lease) {
	level, reason, cause := zap.InfoLevel, ReasonOf(ended.lost()), ended.session.Err()
	if reason == ReasonOf(errLeaseClosed) {
		level, reason, cause = zap.DebugLevel, "CLOSED", nil
	}
	l.options.Events.LeaseEnded(reason, time.Since(ended.opened))
	l.options.Log.Log(level, "lease ended", append(ended.fields(), zap.String("reason", reason), zap.NamedError("session", cause))...)
}

// leaseWord is what the log calls a lease, also in the line of a call that stands on it.
const leaseWord = "lease"

// fields are a lease in the log; its id is a secret.
func (l *lease) fields() []zap.Field {
	return []zap.Field{
		zap.String(leaseWord, l.logID), zap.String("caller", l.identity), zap.String("owner", l.about.Owner),
		zap.Duration("ttl", l.session.Timeout()), zap.Duration("age", time.Since(l.opened)),
	}
}

// logIDOf is eight digits for the serial number of a lease.
func logIDOf(serial int64) string { return digestOf(strconv.FormatInt(serial, 10)).String() }

// all returns the open leases, in no order.
func (l *leases) all() []*lease {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Keys(l.open))
}
