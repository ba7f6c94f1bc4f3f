package service

import (
	"context"
	"errors"
	"math"
	"time"

	"go.uber.org/zap"

	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	"github.com/sidekeeper/sidekeeper/internal/caller"
	"github.com/sidekeeper/sidekeeper/recipes"
)

// A hold is a granted place, from its grant until its stream ends.
type hold struct {
	key     digest
	name    name
	token   int64
	place   recipes.Guard
	lease   *lease
	granted time.Time

	told     *tellings
	released *latch        // closed when Release has asked: that the hold ends or, once it has ended, that its place goes
	gone     chan struct{} // closed when its place is gone from the ensemble
}

// tell is for how long the hold is certainly its caller's, noted as told to whoever asks.
func (h *hold) tell(to caller.Caller) time.Duration {
	validFor := h.lease.validFor()
	if !h.told.note(to, validFor) {
		return 0
	}
	return validFor
}

// beginHold makes a hold of the grant of an Acquire stream and binds it to its caller.
func (s *Services) beginHold(a *lockStream, granted *recipes.Hold) (*hold, string) {
	made := &hold{
		name: a.params.name, token: granted.Token, place: granted.Guard(), lease: a.lease, granted: time.Now(),
		told: &a.told, released: a.acknowledged, gone: make(chan struct{}),
	}
	s.held.enter(math.MaxInt)
	a.lease.has(a.recipe.resource, granted.Token)
	var id string
	id, made.key = s.holds.enter(a.lease.identity, made)
	s.audit.granted(made)
	return made, id
}

// endHold is the end of a hold as far as its caller is concerned; why is nil if it gave the hold up.
func (s *Services) endHold(ended *hold, why error) {
	s.holds.end(ended.key, tombstone{why: why, token: ended.token, released: ended.released, gone: ended.gone})
	s.held.leave()
	s.options.Events.HoldEnded(endOf(why), time.Since(ended.granted))
	s.audit.ended(ended, why)
	if why != nil {
		s.options.Log.Info("lock lost", zap.Stringer("name", ended.name), zap.Stringer("hold", ended.key), zap.String(leaseWord, ended.lease.logID),
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

// begin makes a hold of the granted place.
func (a *lockStream) begin(ctx context.Context) (*lockv1.AcquireResponse, nodeState) {
	var id string
	a.hold, id = a.services.beginHold(a, a.granted)
	tellGrant(ctx, a.granted.Token)
	granted := &lockv1.Granted{HoldId: id, FencingToken: a.granted.Token}
	return &lockv1.AcquireResponse{Event: &lockv1.AcquireResponse_Granted{Granted: granted}}, a.asks(a.granted.Revocation, a.granted.Changed)
}

// look asks what is asked of the hold.
func (a *lockStream) look(ctx context.Context) (nodeState, error) {
	revocation, changed, err := a.granted.Look(ctx)
	return a.asks(revocation, changed), err
}
