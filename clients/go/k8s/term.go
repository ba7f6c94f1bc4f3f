package k8s

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
)

// lookTime is how often a term is looked at, at least.
const lookTime = 250 * time.Millisecond

var (
	// ErrYieldRequested is why a context ends whose leader was asked to yield, and still leads until what acts for it has ended.
	ErrYieldRequested = errors.New("asked to yield")
	// ErrAtRisk is why a context ends whose term has not been confirmed for so long that less than the grace is left of it.
	ErrAtRisk = errors.New("the term is at risk")
	// ErrStillActing is why a process ends: its term is about to be over, and what acts for it has not ended.
	ErrStillActing = errors.New("the term is about to be over, and what acts for it has not ended")
)

// leadership is what a term takes of a sidekeeper.Leadership.
type leadership interface {
	ValidFor() time.Duration
	Done() <-chan struct{}
	Err() error
	YieldRequested() <-chan sidekeeper.Revocation
	Resign(ctx context.Context) error
}

// A term is the time for which something acts because this process leads.
type term struct {
	leadership
	options       Options
	grace, margin time.Duration
	stop          context.CancelCauseFunc // what acts must end
	over          chan struct{}           // closed when it has ended
	watched       sync.WaitGroup

	mu    sync.Mutex
	valid time.Duration // for how long the term was valid when that was seen last
	seen  time.Time
}

// begin has a term watched until it is ended. It refuses one that is at risk already. stop is called when what acts must end, perhaps
// several times.
func begin(led leadership, options Options, stop context.CancelCauseFunc) (*term, error) {
	validFor := led.ValidFor()
	grace, margin := options.thresholds(validFor)
	if validFor <= grace {
		return nil, fmt.Errorf("%w: it is valid for %v, and the grace is %v", ErrAtRisk, validFor, grace)
	}
	t := &term{leadership: led, options: options, grace: grace, margin: margin, stop: stop, over: make(chan struct{})}
	t.left()
	options.Gate.open(t)
	t.watched.Go(t.watch)
	return t, nil
}

// end is called once, when nothing acts for the term any more. It returns when the term is resigned.
func (t *term) end(ctx context.Context) error {
	close(t.over)
	t.watched.Wait()
	return t.Resign(ctx)
}

// isOver says whether nothing acts for the term any more.
func (t *term) isOver() bool {
	select {
	case <-t.over:
		return true
	default:
		return false
	}
}

// left is for how long what acts for the term may still do so. A term that ends early is handed on when that is acknowledged, and otherwise not
// before its validity would have ended: see AcknowledgeOnRelease of package sidekeeper. Only a lease that the ensemble has dropped is no
// protection any more.
func (t *term) left() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	if left := t.ValidFor(); left > 0 {
		t.valid, t.seen = left, now
		return left
	}
	if errors.Is(t.Err(), sidekeeper.ErrLeaseLost) {
		return 0
	}
	passed := now.Sub(t.seen)
	wall := now.Round(0).Sub(t.seen.Round(0)) // goes on while the machine is suspended
	return max(t.valid-max(passed, wall), 0)
}

// watch stops what acts in time, and ends the process if that does not end in time.
func (t *term) watch() {
	done := t.Done()
	for !t.isOver() {
		left := t.left()
		if left <= t.grace {
			t.stop(ErrAtRisk)
		}
		if left <= t.margin {
			t.options.exit(fmt.Errorf("%w: %w", ErrStillActing, t.why()))
			return
		}
		next := time.NewTimer(min(lookTime, left-t.margin, max(left-t.grace, time.Millisecond)))
		select {
		case <-next.C:
		case <-t.YieldRequested():
			t.stop(ErrYieldRequested)
		case <-done:
			done = nil
			t.stop(t.why())
		case <-t.over:
		}
		next.Stop()
	}
}

// why says why the term has ended, or is about to.
func (t *term) why() error {
	if err := t.Err(); err != nil {
		return err
	}
	return ErrAtRisk
}
