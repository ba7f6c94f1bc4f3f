package sidekeeper

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
)

// A claim is what the caller has for as long as a stream lives and its validity runs: a hold or a lease. It ends once,
// with the first cause given to end.
type claim struct {
	what      string // for errors: `lock orders`
	id        string // what the sidecar calls it; empty until it has begun
	clock     clock
	context   context.Context //nolint:containedctx // ends with the claim: what Context and Done hand out
	finish    context.CancelCauseFunc
	parent    *claim             // whose validity it shares; nil if it has its own
	carries   func() bool        // for a lease, whether its stream carries anything, or is broken; nil for others
	cut       context.CancelFunc // ends the stream
	followed  chan struct{}      // closed when the stream is not read any more
	heard     atomic.Bool        // that the stream has said anything
	suspended atomic.Bool
	ending    sync.Once
	kept      atomic.Bool // the stream outlives the claim until the caller gives it up

	mu        sync.Mutex
	asked     time.Duration      // when the question behind the newest answer was sent
	until     time.Duration      // when the validity runs out
	callbacks map[*func()]func() // what is called when it ends
	standing  map[*claim]bool    // the claims that end with it
}

// newClaim makes a claim and the context of its stream. Both keep the values of ctx and neither its end nor its
// deadline: a deadline would end the hold, too.
func (c *Client) newClaim(ctx context.Context, what string) (*claim, context.Context) {
	claimed, finish := context.WithCancelCause(context.WithoutCancel(ctx))
	streaming, cut := context.WithCancel(context.WithoutCancel(ctx))
	return &claim{
		what: what, clock: c.clock, context: claimed, finish: finish, cut: cut, followed: make(chan struct{}),
	}, streaming
}

// Done is closed when it is the caller's no more: lost, or given up.
func (c *claim) Done() <-chan struct{} { return c.context.Done() }

// Context ends when Done is closed, with Err as its cause, or ErrReleased.
func (c *claim) Context() context.Context { return c.context }

// Err says why it was lost: an error that wraps ErrLost. It is nil as long as it is valid, and if it was given up.
func (c *claim) Err() error {
	c.ValidFor() // which ends it when its time is over
	if err := context.Cause(c.context); !errors.Is(err, ErrReleased) {
		return err
	}
	return nil
}

// Valid says whether it is certainly the caller's at this moment.
func (c *claim) Valid() bool { return c.ValidFor() > 0 }

// ValidFor says for how long it is certainly still the caller's if the sidecar is not heard of again; 0 if it is not.
func (c *claim) ValidFor() time.Duration {
	if c.context.Err() != nil {
		return 0
	}
	if c.parent != nil {
		return c.parent.ValidFor()
	}
	_, until := c.proof()
	left := until - c.clock.now()
	if left <= 0 && until != 0 && c.isOutlived() { // it has begun
		c.lose(outlived())
	}
	return max(left, 0)
}

// isOutlived says whether the clock ends the claim: its validity is over, and a caller counts on it. No caller counts on a lease on which
// nothing stands. A caller that starts something on a lease sees first that it is valid, so here the clock is read last.
func (c *claim) isOutlived() bool {
	counted := c.carries == nil || c.carries() || c.isStoodOn()
	_, until := c.proof()
	return counted && until <= c.clock.now()
}

// isStoodOn says whether another claim ends with this one.
func (c *claim) isStoodOn() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for other := range c.standing {
		if other.context.Err() == nil {
			return true
		}
	}
	return false
}

// ValidUntil is when ValidFor will be 0, if the sidecar is not heard of again. It is for people and logs: the clock
// it is told on may be set.
func (c *claim) ValidUntil() time.Time { return time.Now().Add(c.ValidFor()) }

// Suspended says whether the sidecar has lost contact with the ensemble and not regained it yet.
func (c *claim) Suspended() bool { return c.suspended.Load() }

// suspend notes that contact is lost, for which the sidecar answers for the claim so long still.
func (c *claim) suspend(remaining *durationpb.Duration, tell func(remaining time.Duration)) {
	c.suspended.Store(true)
	call(tell, remaining.AsDuration())
}

func (c *claim) resume(tell func()) {
	c.suspended.Store(false)
	if tell != nil {
		tell()
	}
}

// AwaitRisk returns nil when less than left is left of the validity, or it has ended; otherwise, the cause of ctx's end.
func (c *claim) AwaitRisk(ctx context.Context, left time.Duration) error {
	for c.ValidFor() > left {
		_, until := c.proof()
		ready, stop := c.clock.alarm(until - left)
		select {
		case <-ready:
		case <-c.Done():
		case <-ctx.Done():
			stop()
			return context.Cause(ctx)
		}
		stop()
	}
	return nil
}

// proof is what the newest answers say, which for a claim without a validity of its own are its parent's.
func (c *claim) proof() (asked, until time.Duration) {
	if c.parent != nil {
		return c.parent.proof()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asked, c.until
}

// prove takes in an answer. An answer that came slowly may tell of an earlier end than one before; both are true.
func (c *claim) prove(asked, validFor time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked, c.until = asked, max(c.until, asked+validFor-c.clock.coarseness())
}

// A loss is why a claim was lost.
type loss struct {
	claim *claim
	why   error
}

func (l *loss) Error() string { return fmt.Sprintf("%s %v: %v", l.claim.what, ErrLost, l.why) }

func (l *loss) Unwrap() []error { return []error{ErrLost, l.why} }

// lose ends the claim because of err.
func (c *claim) lose(err error) { c.abandon(&loss{c, err}) }

// end ends the claim, and all that stand on it, before it returns, even if another goroutine has begun to end it. Only then does the client
// end the stream: this tells the sidecar, which gives all of it to others.
func (c *claim) end(cause error) {
	c.ending.Do(func() {
		c.finish(cause)
		c.mu.Lock()
		callbacks := slices.Collect(maps.Values(c.callbacks))
		c.callbacks = nil
		c.mu.Unlock()
		for _, callback := range callbacks {
			callback()
		}
	})
}

// onEnd has callback called when the claim ends, before the sidecar learns of it, or at once if it has ended: perhaps twice. It must
// be quick, and not end the same claim. remove takes it back.
func (c *claim) onEnd(callback func()) (remove func()) {
	c.mu.Lock()
	if c.callbacks == nil {
		c.callbacks = map[*func()]func(){}
	}
	c.callbacks[&callback] = callback
	c.mu.Unlock()
	if c.context.Err() != nil {
		callback()
	}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.callbacks, &callback)
	}
}

// abandon ends the claim, and its stream unless that is kept: the sidecar takes a stream that its caller ends for given up.
func (c *claim) abandon(cause error) {
	c.end(cause)
	if !c.kept.Load() {
		c.cut()
	}
}

// streamEnded ends the claim as its stream ended.
func (c *claim) streamEnded(err error) {
	if errors.Is(err, io.EOF) {
		c.abandon(ErrReleased)
		return
	}
	c.lose(fromStatus(err))
}

// refused is the error of a claim that ended before the caller had it: there was nothing to lose.
func (c *claim) refused(err error) error {
	cause := context.Cause(c.context)
	if own := (*loss)(nil); errors.As(cause, &own) && own.claim == c {
		cause = own.why
	}
	if cause != nil {
		return fmt.Errorf("%s: %w", c.what, cause)
	}
	if errors.Is(err, io.EOF) {
		err = errors.New("the sidecar ended the stream without a word")
	}
	return fmt.Errorf("%s: %w", c.what, fromStatus(err))
}
