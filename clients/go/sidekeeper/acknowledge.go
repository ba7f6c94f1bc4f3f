package sidekeeper

import (
	"context"
	"sync"
	"time"

	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
)

// acknowledgeTime bounds an acknowledgment, and so how long it holds up a client that is closed.
const acknowledgeTime = 2 * time.Second

// An acknowledger tells the sidecar that the caller counts on a hold no more. A hold that did not end by its caller's own hand keeps
// its place until then, or until the caller cannot be counting on it any more: so nothing but the others' time is lost with an
// acknowledgment that does not arrive.
type acknowledger struct {
	locks lockv1.LockServiceClient

	mu       sync.Mutex
	closed   bool
	underWay sync.WaitGroup
}

// acknowledge is called once for a hold, when its claim has ended.
func (a *acknowledger) acknowledge(holdID string) {
	if !a.begin() {
		return
	}
	defer a.underWay.Done()
	ctx, cancel := context.WithTimeout(context.Background(), acknowledgeTime) // whatever ended the hold may have ended its context
	defer cancel()
	_, _ = a.locks.Release(ctx, &lockv1.ReleaseRequest{HoldId: holdID}) // its error is how the hold has ended
}

func (a *acknowledger) begin() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.closed {
		a.underWay.Add(1)
	}
	return !a.closed
}

// close begins nothing more: the end of the connection tells the same.
func (a *acknowledger) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
}

// wait waits for what is under way, after close.
func (a *acknowledger) wait() { a.underWay.Wait() }
