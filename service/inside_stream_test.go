// It looks inside: which waker wakes a stream shows in no answer.

package service

import (
	"context"
	"errors"
	"testing"
	"time"

	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	"github.com/sidekeeper/sidekeeper/internal/caller"
	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/support/standin"
)

func TestWhicheverWakerIsClosedEndsAPause(t *testing.T) {
	t.Parallel()
	session := standin.New(standin.Options{}).OpenSession(time.Minute)
	defer session.Close(t.Context())
	on := &lease{session: session, drain: newDrain(), ended: make(chan struct{})}
	s := &heldStream[*recipes.Place, *lockv1.AcquireResponse]{
		lease: on, acknowledged: newLatch(), box: newOutbox(func(*lockv1.AcquireResponse) error { return nil }),
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for i := range (wakers{}) {
		var by wakers
		by[i] = after(0)
		if err := s.pause(ctx, by); err != nil {
			t.Errorf("waker %d: %v", i, err)
		}
	}
	cancel()
	if err := s.pause(ctx, wakers{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// The caller's clock may be faster than the sidecar's by as much as is allowed for.
func TestADeadlineThatComesEarlyIsNotTheCallersOwnHand(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	cancel()
	same(t, "given up in the middle", gaveUp(ctx, caller.Caller{}, time.Now()), true)
	same(t, "given up in the last minute of an hour", gaveUp(ctx, caller.Caller{}, time.Now().Add(-time.Hour)), false)
}
