package standin

import (
	"context"
	"sync"
	"time"
)

// An Operation is one call of a Session or a Reader, as a Hook sees it.
type Operation struct {
	Name string // of the method: "Enqueue"
	Path string // "" for CatchUp and Prove
}

// A Hook is called in the goroutine of the call it looks at, with nothing locked: it may block, and may change the tree
// or the session. One that runs before an operation and returns an error keeps the operation from being done; one
// that runs after it replaces the outcome, as when a reply is lost.
type Hook func(Operation) error

// A line is what lies between a caller and the ensemble.
type line struct {
	mu *sync.Mutex // the ensemble's

	suspended bool
	changed   chan struct{} // closed and made anew when suspended changes
	before    Hook
	after     Hook
	delay     time.Duration
	counts    map[string]int
}

func newLine(mu *sync.Mutex) *line {
	return &line{mu: mu, changed: make(chan struct{}), counts: map[string]int{}}
}

// call does one operation. It waits while the line is suspended, also with the reply. It ends early with the cause of
// ctx or, when over is closed, with why's answer.
func (l *line) call(ctx context.Context, over over, operation Operation, do func() error) error {
	if err := l.pass(ctx, over); err != nil {
		return err
	}
	before, after, delay := l.begin(operation)
	if before != nil {
		if err := before(operation); err != nil {
			return err
		}
	}
	if err := pause(ctx, over, delay); err != nil {
		return err
	}
	err := do()
	if after != nil {
		if replaced := after(operation); replaced != nil {
			err = replaced
		}
	}
	if late := l.pass(ctx, over); late != nil {
		return late
	}
	return err
}

// over tells that nothing can come any more. The zero value is never over.
type over struct {
	done <-chan struct{}
	why  func() error
}

// begin counts an operation and gives what has been asked to happen to it.
func (l *line) begin(operation Operation) (before, after Hook, delay time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counts[operation.Name]++
	return l.before, l.after, l.delay
}

// pass waits until the line is not suspended.
func (l *line) pass(ctx context.Context, over over) error {
	for {
		suspended, changed := l.state()
		select {
		case <-over.done:
			return over.why()
		default:
		}
		if !suspended {
			return nil
		}
		select {
		case <-changed:
		case <-over.done:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (l *line) state() (bool, <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.suspended, l.changed
}

// suspend sets the state. The ensemble is locked.
func (l *line) suspend(suspended bool) (did bool) {
	if l.suspended == suspended {
		return false
	}
	l.suspended = suspended
	close(l.changed)
	l.changed = make(chan struct{})
	return true
}

// pause waits for a time.
func pause(ctx context.Context, over over, delay time.Duration) error {
	if delay <= 0 {
		return nil
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-over.done:
		return over.why()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Before has hook called before every operation is done. nil for none.
func (l *line) Before(hook Hook) { l.set(func() { l.before = hook }) }

// After has hook called after every operation was done and before its caller learns of it. nil for none.
func (l *line) After(hook Hook) { l.set(func() { l.after = hook }) }

// Delay makes every operation take this much longer.
func (l *line) Delay(delay time.Duration) { l.set(func() { l.delay = delay }) }

func (l *line) set(change func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	change()
}

// Count is how many requests of this name were sent.
func (l *line) Count(name string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.counts[name]
}

// uncount takes a request back that turned out to need none.
func (l *line) uncount(name string) { l.counts[name]-- }

// Suspended says whether contact is lost, with a channel that is closed when that changes.
func (l *line) Suspended() (bool, <-chan struct{}) { return l.state() }
