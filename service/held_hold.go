package service

import (
	"context"
	"errors"
	"math"
	"time"

	"go.uber.org/zap"

	"github.com/sidekeeper/sidekeeper/internal/caller"
	machine "github.com/sidekeeper/sidekeeper/internal/lease"
	"github.com/sidekeeper/sidekeeper/recipes"
)

// A hold is what was granted, from its grant until its stream ends.
type hold struct {
	key     digest
	logID   string // of key: what lines of the log say
	kind    string // of resource
	name    name
	token   int64
	place   recipes.Guard // of what may guard writes
	also    []guard       // the others, of one that holds several
	round   recipes.Round // of those who hold together, where they also end together
	lease   *lease
	granted time.Time

	finish func(ctx context.Context) error // what its caller's Done does in the ensemble; nil of what is only released
	done   *latch                          // closed when that is done
	once   *attempt                        // of a hold at work that is done once

	id       machine.ID    // to the lease's machine
	released *latch        // closed when the caller has asked that the hold end or, once it has ended, that its place go
	gone     chan struct{} // closed when its place is gone from the ensemble
}

// tell is for how long the hold is certainly its caller's, noted as told to whoever asks.
func (h *hold) tell(ctx context.Context) (time.Duration, error) {
	to := caller.Of(ctx)
	if err := h.lease.mayKnow(ctx, to); err != nil {
		return 0, err
	}
	validFor := h.lease.validFor()
	if !h.lease.drive.tell(h.id, to, validFor) {
		return 0, nil
	}
	return validFor, nil
}

// beginHold makes a hold of what the stream was granted, of which made has the name, the token and the place, and binds it to its caller.
func (s *held[P, M]) beginHold(made *hold) (id string) {
	s.hold, s.begun = made, true
	made.kind, made.lease, made.granted = s.recipe.resource.kind, s.lease, time.Now()
	made.id, made.released, made.gone = s.id, s.acknowledged, make(chan struct{})
	s.lease.drive.step(machine.Event{Kind: machine.Granted, Of: s.id, Token: made.token})
	s.services.held.enter(math.MaxInt)
	s.services.options.Events.HoldBegun()
	s.lease.has(s.resources, made.token)
	if s.claim.held() && s.claim.token == made.token {
		made.key = digestOf(s.claim.holdID)
		if _, ok := s.services.holds.enterAs(s.claim.holdID, s.lease.identity, made); ok {
			made.logID = made.key.String()
			s.services.audit.resumed(made)
			return s.claim.holdID
		}
	}
	id, made.key = s.services.holds.enter(s.lease.identity, made)
	made.logID = made.key.String()
	s.services.audit.granted(made)
	return id
}

// endHold is the end of a hold as far as its caller is concerned; why is nil if it gave the hold up.
func (s *Services) endHold(ended *hold, why error) {
	s.holds.end(ended.key, ended.ending(why))
	s.held.leave()
	s.usual.noteAll(ended)
	s.options.Events.HoldEnded(endOf(why), time.Since(ended.granted))
	s.audit.ended(ended, why)
	if why != nil {
		s.options.Log.Info(ended.kind+" lost", zap.Stringer("name", ended.name), zap.String("hold", ended.logID),
			zap.String(leaseWord, ended.lease.logID), zap.Int64("fencing_token", ended.token), zap.String("reason", endOf(why)))
	}
}

func (h *hold) ending(why error) tombstone {
	return tombstone{why: why, kind: h.kind, token: h.token, released: h.released, gone: h.gone, done: h.done, once: h.once, round: h.round}
}

// forgoHold says that the ensemble has let go of an ended hold's place. If the lease was lost on the way the ensemble has
// not said so: then the release of the hold was not its end.
func (s *Services) forgoHold(ended *hold) {
	if errors.Is(ended.lease.lost(), errLeaseLost) {
		s.holds.amendRelease(ended.key, errLeaseLost)
	}
	close(ended.gone)
}
