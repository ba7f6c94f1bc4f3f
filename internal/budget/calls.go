package budget

import (
	"context"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"

	"github.com/sidekeeper/sidekeeper/internal/caller"
	"github.com/sidekeeper/sidekeeper/internal/methods"
	"github.com/sidekeeper/sidekeeper/internal/policy"
	"github.com/sidekeeper/sidekeeper/service"
)

// fewCalls are what one caller gets of calls under way over all its connections, whether there is memory or not; over a connection that has few
// streams, all.
const fewCalls = 1024

// CallsUnderWay is a limit that no policy sets.
const CallsUnderWay = "calls_under_way"

// How many calls of one caller are turned away in a second, and at once, until its connections are read more slowly.
const (
	turnedAway      = 1000
	turnedAwayBurst = 4000
	longestPause    = 2 * time.Second // before each piece that is read
)

// Calls bounds the calls under way of each caller. It is asked when a call's headers have been read, before anything is made for it: a
// goroutine for each of a million calls takes more memory than there is, though each would end at once.
type Calls struct {
	Most    int // of one caller
	Streams int // long-lived, of one connection
	Limits  *caller.Limits
	Memory  Memory
	Refused func(answer *status.Status, reason string) // is told of each that is turned away
	methods map[string]bool                            // those there are, and whether they are long-lived streams
}

// Learn notes the methods of a server, before it serves.
func (c *Calls) Learn(server *grpc.Server) {
	c.methods = map[string]bool{}
	for name, of := range server.GetServiceInfo() {
		for _, method := range of.Methods {
			c.methods["/"+name+"/"+method.Name] = method.IsServerStream
		}
	}
}

// A countedCall counts among those of its caller until it is over.
type countedCall struct {
	under *atomic.Int64
	over  atomic.Bool
	never *time.Timer // ends one that had so little time that its handler never runs; nil if it had any time
}

type countedKey struct{}

const neverRuns = time.Second // after the time of a call is over

// Begin is grpc-go's tap handle.
func (c *Calls) Begin(ctx context.Context, info *tap.Info) (context.Context, error) {
	slot := SlotOf(caller.Of(ctx))
	if slot.quota == nil {
		return ctx, nil
	}
	err := c.admit(slot, caller.Of(ctx).Identity, info.FullMethodName)
	if err != nil {
		slot.quota.turnedAway.count()
		return ctx, err
	}
	call := &countedCall{under: &slot.quota.calls}
	if deadline, has := ctx.Deadline(); has {
		call.never = time.AfterFunc(time.Until(deadline)+neverRuns, call.end)
	}
	return context.WithValue(ctx, countedKey{}, call), nil
}

func (c *Calls) admit(slot *Slot, identity, method string) error {
	streams, known := c.methods[method]
	if !known {
		return status.Error(codes.Unimplemented, fmt.Sprintf("unknown method %q", method)) //nolint:forbidigo // gRPC's own answer
	}
	quota, most := slot.quota, c.Most
	if most != math.MaxInt && methods.Of(method).IsUrgent() {
		most += fewCalls // to let go what the others have is always possible
	}
	under := quota.calls.Add(1)
	var err error
	switch {
	case under > int64(most):
		err = service.QuotaExceeded(CallsUnderWay, most, identity, 0)
	case under > fewCalls && slot.streams.open.Load() > fewStreams:
		err = c.Memory.short()
	}
	if err == nil && streams && quota.turnedAway.owes() {
		err = c.hopeless(slot, identity, method)
	}
	if err == nil {
		return nil
	}
	quota.calls.Add(-1)
	answer, reason := service.StatusOf(err)
	c.Refused(answer, reason)
	return answer.Err()
}

// hopeless says early what a stream of a caller who is turned away again and again would be told in the end, at a tenth of the cost.
func (c *Calls) hopeless(slot *Slot, identity, method string) error {
	if slot.streams.open.Load() >= int64(c.Streams) {
		return service.StreamLimit(c.Streams)
	}
	if share := c.Limits.Of(identity, policy.Streams); slot.quota.streams.open.Load() >= int64(orAny(share)) {
		return service.QuotaExceeded(policy.Streams.String(), share, identity, 0)
	}
	most := c.Limits.Of(identity, policy.IncompleteRequests)
	if intake := slot.quota.intakeFor(method, most); intake.calls.Load() >= int64(cap(intake.reading)+mostUnread) {
		return service.QuotaExceeded(policy.IncompleteRequests.String(), most, identity, 0)
	}
	return nil
}

func (c *countedCall) end() {
	if c.over.CompareAndSwap(false, true) {
		c.under.Add(-1)
	}
}

// TagRPC implements stats.Handler. It is called when a call's goroutine runs.
func (*Calls) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context {
	if call, counted := ctx.Value(countedKey{}).(*countedCall); counted && call.never != nil {
		call.never.Stop()
	}
	return ctx
}

// HandleRPC implements stats.Handler.
func (*Calls) HandleRPC(ctx context.Context, event stats.RPCStats) {
	if _, ended := event.(*stats.End); !ended {
		return
	}
	if call, counted := ctx.Value(countedKey{}).(*countedCall); counted {
		call.end()
	}
}

// TagConn implements stats.Handler.
func (*Calls) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn implements stats.Handler.
func (*Calls) HandleConn(context.Context, stats.ConnStats) {}

func newTurnedAway() *pace { return newPace(rate.Limit(turnedAway), turnedAwayBurst) }
