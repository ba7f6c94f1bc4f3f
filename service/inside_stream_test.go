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

// A fakeHolder does what it is told when it is told that it has ended.
type fakeHolder struct {
	holder

	ended func()
}

func (f fakeHolder) isEnded() { f.ended() }

// The contexts of a stream's requests are ended one after the other. A request that hears of the stream's end before its own context has ended
// would never hear of it again.
func TestARequestThatHearsOfItsStreamsEndHasEnded(t *testing.T) {
	t.Parallel()
	m := &multiplex{over: newOver(t.Context()), requests: map[uint64]*started{}}
	late := &started{multiplex: m, id: 1, over: newOver(t.Context())} // as if its turn had not come
	var why error
	late.holder = fakeHolder{ended: func() { why = late.over.why() }}
	m.requests[1] = late
	m.over.end(errLeaseClosed)
	m.isOver()
	same(t, "why", why, errLeaseClosed)
}
