package supervise

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	"github.com/sidekeeper/sidekeeper/internal/exit"
	"github.com/sidekeeper/sidekeeper/internal/show"
)

// A holding is what a command runs under that others can ask for: a lock, permits or leadership.
type holding struct {
	r         *Runner
	claim     held
	what      string // for people: `lock orders`
	terminate bool   // SIGTERM when it is revoked
	grace     time.Duration
	margin    time.Duration // less than this left: SIGKILL, which takes a while on a busy machine; less than half: the guardian kills by itself
}

type held interface {
	Valid() bool
	ValidFor() time.Duration
	AwaitRisk(ctx context.Context, left time.Duration) error
	Revocation() <-chan sidekeeper.Revocation
	Release(ctx context.Context) error
}

// hold begins to watch over what was granted. Without a grace, the validity told last is taken for the usual one.
func hold(r *Runner, claim held, what string, grace time.Duration, terminate bool) holding {
	if grace == 0 {
		grace = claim.ValidFor() / 3
	}
	margin := min(grace, claim.ValidFor()) / 5
	return holding{r: r, claim: claim, what: what, terminate: terminate, grace: grace, margin: margin}
}

// refuseGrace refuses a grace that is as long as a lease's validity: the command would be ended as soon as it began. It opens a lease to
// know, and takes nothing. If the sidecar opens none, what is asked for next says why.
func (r *Runner) refuseGrace(ctx context.Context, grace time.Duration) error {
	if grace == 0 {
		return nil
	}
	lease, err := r.Client.OpenLease(ctx, sidekeeper.LeaseOptions{Owner: DefaultOwner(), Wait: new(time.Duration)})
	if err != nil {
		return nil
	}
	validity := lease.ValidFor().Round(10 * time.Millisecond)
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.Timeout)
	defer cancel()
	_ = lease.Close(closing) // nothing stands on it, and it ends with the connection
	if grace < validity {
		return nil
	}
	return exit.UsageError(fmt.Errorf("--kill-grace is %q: less than %v, for which a lease of this sidecar is valid", grace, validity))
}

// suspended is what is said when contact is lost.
func (r *Runner) suspended(what string) func(remaining time.Duration) {
	return func(remaining time.Duration) {
		r.say("no contact with the ensemble: %s is safe for %v", what, remaining.Round(100*time.Millisecond))
	}
}

func (r *Runner) resumed() { r.say("contact with the ensemble is back") }

func (h *holding) guarded() bool { return true }

func (h *holding) left() (left time.Duration, valid bool) {
	left = h.claim.ValidFor() - h.margin/2
	return left, h.claim.Valid()
}

// watch ends the command before its lock ends, or when the grace of a revocation does.
func (h *holding) watch(ctx context.Context, child *Child) {
	var guard sync.WaitGroup
	defer guard.Wait()
	guard.Go(func() { h.guard(ctx, child) })
	var deadline <-chan time.Time
	for {
		select {
		case revocation := <-h.claim.Revocation():
			deadline = h.revoked(revocation, child)
		case <-deadline:
			child.Kill(h.margin / 4) // which leaves the rest of the margin for what has to be done without the guardian
			h.r.say("grace period expired")
		case <-ctx.Done():
			return
		}
	}
}

func (h *holding) guard(ctx context.Context, child *Child) {
	if h.claim.AwaitRisk(ctx, h.grace) != nil {
		return
	}
	if h.claim.Valid() { // else the release will say why not
		h.r.say("%s is at risk: safe for %v", h.what, h.claim.ValidFor().Round(time.Millisecond))
	}
	child.Terminate()
	if h.claim.AwaitRisk(ctx, h.margin) == nil {
		child.Kill(h.margin / 4)
	}
}

// revoked returns when to kill the command, if ever: the hold ends with the grace. A command that lets go in time when
// it is asked has lost nothing.
func (h *holding) revoked(r sidekeeper.Revocation, child *Child) <-chan time.Time {
	asked := "revocation requested"
	if r.To != "" {
		asked = "asked to yield to " + show.Printable(r.To)
	}
	h.r.say("%s by %s: %s", asked, show.Printable(r.RequestedBy), show.Printable(r.Reason))
	if h.terminate {
		child.Signal(syscall.SIGTERM)
	}
	if r.Deadline.IsZero() {
		return nil
	}
	left := time.Until(r.Deadline)
	return time.After(left - min(h.margin, left/2))
}

func (h *holding) release(ctx context.Context) error { return h.claim.Release(ctx) }

func (h *holding) ended() error {
	return errors.New("the command was ended because " + h.what + " was at risk")
}
