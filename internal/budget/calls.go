package budget

import (
	"context"
	"fmt"
	"math"
	"sync/atomic"
	"time"

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

// What one caller gets of calls and of long-lived streams, whether there is memory or not, and where there are others.
const (
	fewCalls          = 1024 // under way over all its connections; over a connection that has few streams, all
	fewStreams        = 64   // of one connection
	StreamConnections = 4    // connections' worth of streams, over all its connections
)

// CallsUnderWay is a limit that no policy sets.
const CallsUnderWay = "calls_under_way"

// Learn notes the methods of a server, before it serves.
func (b *Budget) Learn(server *grpc.Server) {
	b.methods = map[string]bool{}
	for name, of := range server.GetServiceInfo() {
		for _, method := range of.Methods {
			b.methods["/"+name+"/"+method.Name] = method.IsServerStream
		}
	}
}

// Begin is grpc-go's tap handle: it bounds the calls under way of each caller. It is asked when a call's headers have been read, before
// anything is made for it: a goroutine for each of a million calls takes more memory than there is, though each would end at once.
func (b *Budget) Begin(ctx context.Context, info *tap.Info) (context.Context, error) {
	slot := SlotOf(caller.Of(ctx))
	if slot.account == nil {
		return ctx, nil
	}
	if err := b.admit(slot, info.FullMethodName); err != nil {
		slot.account.turnedAway.count()
		return ctx, err
	}
	call := &countedCall{of: slot.account}
	if deadline, has := ctx.Deadline(); has {
		call.never = time.AfterFunc(time.Until(deadline)+neverRuns, call.end)
	}
	return context.WithValue(ctx, countedKey{}, call), nil
}

func (b *Budget) admit(slot *Slot, method string) error {
	streams, known := b.methods[method]
	if !known {
		return status.Error(codes.Unimplemented, fmt.Sprintf("unknown method %q", method)) //nolint:forbidigo // gRPC's own answer
	}
	of, most := slot.account, b.Calls
	if most != math.MaxInt && methods.Of(method).IsUrgent() {
		most += fewCalls // to let go what the others have is always possible
	}
	if !of.calls.enter(most) {
		return b.turnAway(of.exceeded(CallsUnderWay, most))
	}
	var err error
	if of.calls.Load() > fewCalls && slot.streams.Load() > fewStreams {
		err = b.memory.short()
	}
	if err == nil && streams && of.turnedAway.owes() {
		err = b.hopeless(slot)
	}
	if err != nil {
		of.calls.leave()
		return b.turnAway(err)
	}
	return nil
}

// turnAway tells of a call that ends before anything is made for it.
func (b *Budget) turnAway(err error) error {
	answer, reason := service.StatusOf(err)
	b.Refused(answer, reason)
	return answer.Err()
}

// hopeless says early what a stream of a caller who is turned away again and again would be told in the end, at a tenth of the cost.
func (b *Budget) hopeless(slot *Slot) error {
	if slot.streams.Load() >= int64(b.Streams) {
		return service.StreamLimit(b.Streams)
	}
	if share := slot.account.most(policy.Streams); slot.account.streams.Load() >= int64(share) {
		return slot.account.exceeded(policy.Streams.String(), share)
	}
	if slot.account.arrivals.number.Load() >= mostUnread { // no lock is taken: the transport holds its own
		return slot.account.unread()
	}
	return nil
}

// A countedCall counts among those of its caller until it is over.
type countedCall struct {
	of    *account
	over  atomic.Bool
	never *time.Timer // ends one that had so little time that its handler never runs; nil if it had any time
}

type countedKey struct{}

const neverRuns = time.Second // after the time of a call is over

func (c *countedCall) end() {
	if c.over.CompareAndSwap(false, true) {
		c.of.calls.leave()
	}
}

// TagRPC implements stats.Handler. It is called when a call's goroutine runs.
func (*Budget) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context {
	if call, counted := ctx.Value(countedKey{}).(*countedCall); counted && call.never != nil {
		call.never.Stop()
	}
	return ctx
}

// HandleRPC implements stats.Handler.
func (*Budget) HandleRPC(ctx context.Context, event stats.RPCStats) {
	if _, ended := event.(*stats.End); !ended {
		return
	}
	if call, counted := ctx.Value(countedKey{}).(*countedCall); counted {
		call.end()
	}
}

// TagConn implements stats.Handler.
func (*Budget) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn implements stats.Handler.
func (*Budget) HandleConn(context.Context, stats.ConnStats) {}

// BeginStream admits one more long-lived stream of the connection, and of its caller. What was admitted calls EndStream. When memory is short,
// a connection that has many streams gets no more, and the others do. Any number is admitted where the connection has no account.
func (s *Slot) BeginStream(most int) error {
	if !s.streams.enter(most) {
		return service.StreamLimit(most)
	}
	if s.account == nil {
		return nil
	}
	if share := s.account.most(policy.Streams); !s.account.streams.enter(share) {
		s.streams.leave()
		return s.account.exceeded(policy.Streams.String(), share)
	}
	if s.streams.Load() > fewStreams {
		if err := s.budget.memory.spare(); err != nil {
			s.EndStream()
			return err
		}
	}
	return nil
}

// EndStream is for each stream that was admitted.
func (s *Slot) EndStream() {
	s.streams.leave()
	if s.account != nil {
		s.account.streams.leave()
	}
}

// TurnedAway notes that a call of the caller was refused for what it takes.
func (s *Slot) TurnedAway() {
	if s.account != nil {
		s.account.turnedAway.count()
	}
}

// Withdrawn notes the end of a call, if it was taken back or had no time.
func (s *Slot) Withdrawn(ctx context.Context) { s.pace.withdrawn(ctx) }
