package caller

import (
	"context"
	"sync/atomic"

	"google.golang.org/grpc/stats"
)

// AfterStatus has fn run in the stream's own goroutine once its status has been handed to the transport, so that what
// the caller is told goes out before what others may see. Functions run in the order in which they were given. It must
// be called by the handler before it returns, and only in a call from the network.
func AfterStatus(ctx context.Context, fn func()) {
	later := ctx.Value(laterKey{}).(*laterList)
	later.functions = append(later.functions, fn)
}

type laterKey struct{}

// A laterList belongs to one call and is touched by its goroutine only.
type laterList struct{ functions []func() }

func (l *laterList) run() {
	for _, fn := range l.functions {
		fn()
	}
	l.functions = nil // a context may be remembered for longer
}

// StatsHandler gives each call its list, and runs it at the call's end: grpc-go reports stats.End from the goroutine
// that ran the handler, after WriteStatus.
type StatsHandler struct {
	Calls *atomic.Uint64 // how many there were, to number them for the log; nil if nobody counts
}

// TagRPC implements stats.Handler.
func (h StatsHandler) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context {
	if h.Calls != nil {
		ctx = numbered(ctx, h.Calls.Add(1))
	}
	return context.WithValue(ctx, laterKey{}, new(laterList))
}

// HandleRPC implements stats.Handler.
func (StatsHandler) HandleRPC(ctx context.Context, event stats.RPCStats) {
	if _, ended := event.(*stats.End); !ended {
		return
	}
	ctx.Value(laterKey{}).(*laterList).run()
}

// TagConn implements stats.Handler.
func (StatsHandler) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context {
	return ctx
}

// HandleConn implements stats.Handler.
func (StatsHandler) HandleConn(context.Context, stats.ConnStats) {}
