package service

import (
	"context"
	"math"
	"sync"
	"time"

	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	"github.com/sidekeeper/sidekeeper/internal/caller"
	"github.com/sidekeeper/sidekeeper/internal/journal"
	machine "github.com/sidekeeper/sidekeeper/internal/lease"
)

// The returns are what callers may be about to come back to from before the sidecar was started. A caller asks for a lease or a hold by its id
// also over other connections than that on which it comes back, and perhaps sooner. It is not told that there is none before that is certain.
type returns struct {
	kept  *journal.Journal // nil if nothing is kept
	drain *drain

	mu        sync.Mutex
	undecided map[string]int // by identity: leases that are being resumed, and claims to hold that are neither held again nor ended
}

func newReturns(of *Resumption, drain *drain) *returns {
	made := &returns{drain: drain, undecided: map[string]int{}}
	if of != nil {
		made.kept = of.Journal
	}
	return made
}

// enter says that a caller is about to come back to something. leave must be called when it has, or has not.
func (r *returns) enter(identity string) (leave func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.undecided[identity]++
	return sync.OnceFunc(func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.undecided[identity]--; r.undecided[identity] == 0 {
			delete(r.undecided, identity)
		}
	})
}

// mayFollow says whether a caller may come back to the lease with this key, or with none, to any.
func (r *returns) mayFollow(key digest, identity string) bool {
	r.mu.Lock()
	defer r.mu.Unlock() // also for the journal: what is taken out of it was entered here before
	if r.undecided[identity] > 0 || r.kept == nil {
		return r.undecided[identity] > 0
	}
	lease := ""
	if key != (digest{}) {
		lease = key.full()
	}
	return r.kept.Awaits(lease, identity)
}

// betweenLooks is what passes between two looks for what may come back.
const betweenLooks = 20 * time.Millisecond

// lookUp finds what a caller names by an id, or how it ended. While it may be about to come back, it waits.
func lookUp[T any](ctx context.Context, r *returns, ids *idRegistry[T], id string, key digest) (live T, ended *tombstone, ok bool, err error) {
	identity := caller.Of(ctx).Identity
	for {
		more := r.mayFollow(key, identity) // before the look: what has come back by then is found
		live, ended, ok = ids.find(id, identity)
		if ok || !more {
			return live, ended, ok, nil
		}
		select {
		case <-after(betweenLooks):
		case <-r.drain.notice:
			return live, nil, false, errStopping
		case <-ctx.Done():
			return live, nil, false, context.Cause(ctx)
		}
	}
}

// awaitHold says that something is about to be held again, or to end: to whoever asks for it, and to a sidecar that stops.
func (m *multiplex) awaitHold() (settled func()) {
	services := m.leases.services
	services.held.enter(math.MaxInt)
	leave := services.leases.returns.enter(m.lease.identity)
	return sync.OnceFunc(func() {
		services.held.leave()
		leave()
	})
}

// kindOf is of which kind the hold is that a request begins.
func kindOf(of *leasev1.Start) string {
	switch {
	case of.GetAcquirePermits() != nil:
		return kindSemaphore
	case of.GetEnter() != nil:
		return kindBarrier
	}
	return kindLock
}

// refuseClaim ends what is claimed by a request that was refused before its stream had it in hand.
func (s *started) refuseClaim(why error) {
	if s.claim.held() {
		s.endClaim(why)
	}
	free := !s.claim.held() || len(s.claim.standing) == 0
	s.lease.drive.step(machine.Event{Kind: machine.Ended, Of: s.life, Free: free})
}

// endClaim ends a claim to hold that is not held again as a hold ends: who asks by its id is told why, and acknowledges it.
func (s *started) endClaim(why error) {
	defer s.claim.settled()
	if s.claim.holdID == "" { // a member
		return
	}
	ended := &hold{
		kind: s.claim.kind, token: s.claim.token, lease: s.lease, once: s.claim.once, released: s.stopped, gone: make(chan struct{}),
	}
	var is bool
	if ended.key, is = s.leases.services.holds.enterEnded(s.claim.holdID, s.lease.identity, ended.ending(why)); is {
		s.endedAs = ended
	}
}
