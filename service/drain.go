package service

import (
	"context"
	"sync"
	"time"
)

// A drain is how far the sidecar's stopping has come.
type drain struct {
	stopping context.Context //nolint:containedctx // ends with errStopping when it has begun: nothing new begins, and nobody waits any longer
	stop     context.CancelCauseFunc
	notice   <-chan struct{} // closed when stopping ends
	begun    sync.Once
	deadline time.Time // of the holders; set before stopping ends
	over     over      // ends when the holders' leases must
}

func newDrain() *drain {
	stopping, stop := context.WithCancelCause(context.Background())
	return &drain{stopping: stopping, stop: stop, notice: stopping.Done(), over: newOver(context.Background())}
}

func (d *drain) begin(timeout time.Duration) {
	d.begun.Do(func() {
		d.deadline = time.Now().Add(timeout)
		d.stop(errStopping)
	})
}

// bound returns ctx, but ended with errStopping when the drain has begun. release must be called.
func (d *drain) bound(ctx context.Context) (bounded context.Context, release func()) {
	bounded, cancel := context.WithCancelCause(ctx)
	forget := context.AfterFunc(d.stopping, func() { cancel(errStopping) })
	return bounded, func() {
		forget()
		cancel(nil)
	}
}

func (d *drain) finish() { d.over.end(errHoldStopped) }

func (d *drain) hasBegun() bool { return isClosed(d.notice) }

// An openCount counts what is open.
type openCount struct {
	mu    sync.Mutex
	count int
	none  chan struct{} // closed when the count falls to zero; nil if nobody asked
}

// enter counts one more, if there are fewer than most.
func (t *openCount) enter(most int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.count >= most {
		return false
	}
	t.count++
	return true
}

func (t *openCount) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.count--
	if t.count == 0 && t.none != nil {
		close(t.none)
		t.none = nil
	}
}

// empty returns a channel that is closed when nothing is open.
func (t *openCount) empty() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.none == nil {
		t.none = make(chan struct{})
	}
	none := t.none
	if t.count == 0 {
		close(none)
		t.none = nil
	}
	return none
}
