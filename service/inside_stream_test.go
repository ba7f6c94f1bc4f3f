// It looks inside: a context's deadline and its caller's hand are told apart by a pure function.

package service

import (
	"context"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/caller"
)

// The caller's clock may be faster than the sidecar's by as much as is allowed for.
func TestADeadlineThatComesEarlyIsNotTheCallersOwnHand(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	cancel()
	same(t, "given up in the middle", gaveUp(ctx, caller.Caller{}, time.Now()), true)
	same(t, "given up in the last minute of an hour", gaveUp(ctx, caller.Caller{}, time.Now().Add(-time.Hour)), false)
}
