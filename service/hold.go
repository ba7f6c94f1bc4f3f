package service

import (
	"context"
	"errors"
	"math"
	"time"

	"go.uber.org/zap"
	"google.golang.org/protobuf/types/known/durationpb"

	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	"github.com/sidekeeper/sidekeeper/recipes"
)

// A hold is a granted place, from its grant until its stream ends.
type hold struct {
	key     digest
	name    name
	token   int64
	lease   *lease
	granted time.Time

	told     *tellings
	released *latch        // closed when Release has asked: that the hold ends or, once it has ended, that its place goes
	gone     chan struct{} // closed when its place is gone from the ensemble
}

// tell is for how long the hold is certainly its caller's, noted as told to whoever asks.
func (h *hold) tell(to caller) time.Duration {
	validFor := h.lease.validFor()
	if !h.told.note(to, validFor) {
		return 0
	}
	return validFor
}

// beginHold makes a hold of the grant of an acquisition and binds it to its caller.
func (s *Services) beginHold(a *acquisition, token int64) (*hold, string) {
	made := &hold{
		name: a.order.name, token: token, lease: a.lease, granted: time.Now(),
		told: &a.told, released: a.acknowledged, gone: make(chan struct{}),
	}
	s.held.enter(math.MaxInt)
	a.lease.has(a.thing, token)
	var id string
	id, made.key = s.holds.enter(a.lease.identity, made)
	s.audit.granted(made)
	return made, id
}

// endHold is the end of a hold as far as its caller is concerned; why is nil if it gave the hold up.
func (s *Services) endHold(ended *hold, why error) {
	s.holds.end(ended.key, past{why: why, token: ended.token, released: ended.released, gone: ended.gone})
	s.held.leave()
	s.options.Events.HoldEnded(endOf(why), time.Since(ended.granted))
	s.audit.ended(ended, why)
	if why != nil {
		s.options.Log.Info("lock lost", zap.Stringer("name", ended.name), zap.Stringer("hold", ended.key), zap.String(leaseWord, ended.lease.mark),
			zap.Int64("fencing_token", ended.token), zap.String("reason", endOf(why)))
	}
}

// forgoHold says that the ensemble has let go of an ended hold's place. If the lease was lost on the way the ensemble has
// not said so: then the release of the hold was not its end.
func (s *Services) forgoHold(ended *hold) {
	if errors.Is(ended.lease.lost(), errLeaseLost) {
		s.holds.amendRelease(ended.key, errLeaseLost)
	}
	close(ended.gone)
}

// A tenure is the time in which a stream holds its lock: one select, and what it has to remember between two events.
type tenure struct {
	*acquisition
	granted *recipes.Hold
	contact *contact

	looking *errand[sight]  // a look at what is asked of the hold; nil if none is under way
	looked  <-chan struct{} // closed when it has an answer
	changed <-chan struct{} // closed when it is worth to look again

	asked  request         // the newest that the caller was told
	force  <-chan struct{} // closed when the hold must end
	notice <-chan struct{} // closed when the sidecar begins to stop; nil once the caller knows
}

// A sight is what a look at the hold has shown.
type sight struct {
	revocation recipes.Revocation
	changed    <-chan struct{}
}

// A request is a revocation as its holder counts it.
type request struct {
	told       bool // false only before there was any
	by, reason string
	deadline   time.Time // zero if the hold is never ended by force
}

// keep tells the caller that the lock is its own, and returns when it is not any more, with the reason; nil if it was released.
func (a *acquisition) keep(ctx context.Context, granted *recipes.Hold) error {
	var id string
	a.hold, id = a.services.beginHold(a, granted.Token)
	tellGrant(ctx, granted.Token)
	t := &tenure{acquisition: a, granted: granted, contact: newContact(a.lease.session), notice: a.services.drain.notice}
	defer t.contact.stop()
	t.tell(topicPlace, func() *lockv1.AcquireResponse { return grantedEvent(id, granted.Token) })
	if t.contact.suspended {
		t.tellContact()
	}
	looks, cancel := context.WithCancel(ctx)
	defer cancel()
	if why := t.see(sight{granted.Revocation, granted.Changed}); why != nil {
		return why
	}
	for {
		if over, why := t.next(ctx, looks); over {
			return why
		}
	}
}

// next waits for one event and says whether it was the end.
func (t *tenure) next(ctx, looks context.Context) (over bool, why error) {
	select {
	case <-ctx.Done():
		return true, ctx.Err()
	case <-t.lease.session.Done():
		return true, errLeaseLost
	case <-t.lease.ended:
		return true, t.lease.lost()
	case <-t.hold.released.closed:
		return true, nil
	case <-t.place.Gone():
		return true, t.broken()
	case <-t.force:
		return true, errLockRevoked
	case <-t.services.drain.over:
		return true, errHoldStopped
	case <-t.box.slow:
		return true, errSlowReader
	case <-t.notice:
		t.notice = nil
		t.request(request{true, "sidekeeper", "the sidecar is stopping", t.services.drain.deadline})
	case <-t.contact.changed:
		if t.contact.look() {
			t.tellContact()
		}
	case <-t.contact.tick:
		t.tellContact()
	case <-t.changed:
		t.look(looks)
	case <-t.looked:
		why = t.consider()
	}
	return why != nil, why
}

// look asks what is asked of the hold.
func (t *tenure) look(ctx context.Context) {
	t.looking = run(func() (sight, error) {
		revocation, changed, err := t.granted.Look(ctx)
		return sight{revocation, changed}, err
	})
	t.looked, t.changed = t.looking.done, nil
	t.errands = []<-chan struct{}{t.looked}
}

// consider acts on the answer to a look. An error says nothing about the hold, save ErrGone: look again later.
func (t *tenure) consider() error {
	seen, err := t.looking.wait()
	t.looked = nil
	switch {
	case errors.Is(err, recipes.ErrGone):
		return t.broken()
	case err != nil:
		t.changed = after(countdown)
		return nil //nolint:nilerr // the lease alone decides whether the hold stands
	}
	return t.see(seen)
}

// see acts on what is asked of the hold. It returns why the hold must end, if it must.
func (t *tenure) see(seen sight) error {
	t.changed = seen.changed
	switch {
	case seen.revocation.Break:
		return errLockBroken
	case seen.revocation.Asked:
		t.request(t.counted(seen.revocation))
	}
	return nil
}

// broken says why the place is gone: with the session, or by somebody else's hand.
func (t *tenure) broken() error {
	t.taken = true
	if why := t.lease.lost(); why != nil {
		return why
	}
	return errLockBroken
}

// counted begins to count a revocation's grace. A deadline that is running stands, unless the new one is sooner.
func (t *tenure) counted(asked recipes.Revocation) request {
	counted := request{told: true, by: asked.By, reason: asked.Reason, deadline: t.asked.deadline}
	if asked.Grace == nil {
		return counted
	}
	deadline := time.Now().Add(*asked.Grace)
	if counted.deadline.IsZero() || deadline.Before(counted.deadline) {
		counted.deadline = deadline
		t.force = after(*asked.Grace)
	}
	return counted
}

// request tells the caller what is asked of it, once.
func (t *tenure) request(asked request) {
	if asked == t.asked {
		return
	}
	t.asked = asked
	t.tell(topicRevocation, func() *lockv1.AcquireResponse { return revocationEvent(asked) })
}

func (t *tenure) tellContact() {
	suspended := t.contact.suspended
	t.tell(topicContact, func() *lockv1.AcquireResponse {
		if suspended {
			return holdSuspendedEvent(t.remaining())
		}
		return &lockv1.AcquireResponse{Event: &lockv1.AcquireResponse_Resumed{Resumed: &lockv1.Resumed{}}}
	})
}

// tell sends an event, unless the lock is not the caller's any more when the event's turn has come.
func (t *tenure) tell(about topic, compose func() *lockv1.AcquireResponse) {
	t.box.put(about, func() (*lockv1.AcquireResponse, bool) {
		event := compose()
		return event, t.mayTell()
	})
}

func grantedEvent(id string, token int64) *lockv1.AcquireResponse {
	return &lockv1.AcquireResponse{Event: &lockv1.AcquireResponse_Granted{
		Granted: &lockv1.Granted{HoldId: id, FencingToken: token},
	}}
}

func holdSuspendedEvent(remaining time.Duration) *lockv1.AcquireResponse {
	return &lockv1.AcquireResponse{Event: &lockv1.AcquireResponse_Suspended{
		Suspended: &lockv1.Suspended{Remaining: durationpb.New(remaining)},
	}}
}

func revocationEvent(asked request) *lockv1.AcquireResponse {
	event := &lockv1.RevocationRequested{RequestedBy: asked.by, Reason: asked.reason}
	if !asked.deadline.IsZero() {
		event.Grace = durationpb.New(max(0, time.Until(asked.deadline)))
	}
	return &lockv1.AcquireResponse{Event: &lockv1.AcquireResponse_RevocationRequested{RevocationRequested: event}}
}
