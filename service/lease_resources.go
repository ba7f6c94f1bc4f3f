package service

import (
	"math"
	"time"

	"github.com/sidekeeper/sidekeeper/recipes"
)

// A resource is what a lease can have: a lock, permits, or a place in a group or at a double barrier.
type resource struct {
	kind string
	name string
}

// The kinds of resources.
const (
	kindLock       = "lock"
	kindSemaphore  = "semaphore"
	kindQueue      = "queue"
	kindMember     = "member"
	kindBarrier    = "barrier"
	kindAgreement  = "agreement"
	kindAssignment = "assignment" // a member of a set of items
	kindElection   = "election"   // a lock, in what counts waits
	kindOnce       = "once"       // a lock, likewise
	kindSchedule   = "schedule"   // a lock, likewise
	kindClaim      = "claim"      // a lock's, in the audit log
)

// WaitKinds are what streams wait for.
var WaitKinds = []string{kindLock, kindSemaphore, kindElection, kindQueue, kindBarrier, kindOnce, kindSchedule}

// A possession is what a lease has of a resource.
type possession struct {
	held    bool            // it has it; otherwise it waits for it
	since   time.Time       // when it began to wait for it, or has it
	token   int64           // of a lock it has, the fencing token; of permits, theirs; of a member, the incarnation
	left    <-chan struct{} // closed when the caller has ended the stream
	yielded bool            // the stream is over
	asks    bool            // its caller asks to be told if it waits for it in a circle
	gone    *recipes.Signal // given when it is dropped; nil until a request waits for that
}

// enter has one more stream stand on the lease, for the sake of resources that it does not have or wait for yet. left is
// closed when the caller ends the stream. asks says whether the caller asks to be told if it waits in a circle.
func (l *lease) enter(all []resource, left <-chan struct{}, asks bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.lostLocked(); err != nil {
		return err
	}
	for _, of := range all {
		if l.resources[of] != nil {
			return &detailedError{kind: errAlreadyContending, facts: map[string]string{"name": of.name}}
		}
	}
	l.beginLocked(all, left, asks)
	return nil
}

// begin has the one stream that a lease was made for stand on it.
func (l *lease) begin(all []resource, left <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.beginLocked(all, left, false)
}

func (l *lease) beginLocked(all []resource, left <-chan struct{}, asks bool) {
	for _, of := range all {
		l.resources[of] = &possession{since: time.Now(), left: left, asks: asks}
	}
	l.streams.enter(math.MaxInt)
	l.places.enter(math.MaxInt)
	l.publishLocked()
}

func (l *lease) has(all []resource, token int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, of := range all {
		found := l.resources[of]
		found.held, found.since, found.token = true, time.Now(), token
	}
}

// yield says that the stream is over that had the resource, and that the lease will drop it once it is gone.
func (l *lease) yield(of resource) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.resources[of].yielded = true
}

// leaving is given when a resource is dropped that the lease gives up, or has dropped already; nil if the lease has it and
// does not give it up. A caller that ends one stream and then begins another finds the first one leaving.
func (l *lease) leaving(of resource) *recipes.Signal {
	l.mu.Lock()
	defer l.mu.Unlock()
	found := l.resources[of]
	switch {
	case found == nil:
		return recipes.Given()
	case found.yielded, isClosed(found.left):
		if found.gone == nil {
			found.gone = &recipes.Signal{}
		}
		return found.gone
	}
	return nil
}

// drop lets the lease have or wait for the resources again. The stream stands on the lease until streams.leave.
func (l *lease) drop(all ...resource) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, of := range all {
		if found := l.resources[of]; found != nil && found.gone != nil {
			found.gone.Give()
		}
		delete(l.resources, of)
	}
}

// possessions is a copy of what the lease has and waits for.
func (l *lease) possessions() map[resource]possession {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make(map[resource]possession, len(l.resources))
	for of, had := range l.resources {
		all[of] = *had
	}
	return all
}
