package budget

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/tap"

	"github.com/sidekeeper/sidekeeper/internal/caller"
	"github.com/sidekeeper/sidekeeper/test/support/bubble"
)

// A tapped is where calls of one caller begin.
type tapped struct {
	t     *testing.T
	calls *Budget
	from  context.Context
}

const (
	tappedUnary  = "/a/Unary"
	tappedStream = "/a/Stream"
)

func newTapped(t *testing.T, most int) (one, other tapped) {
	t.Helper()
	of := budgetOf(10, zap.NewNop(), func(o *Options) { o.Calls, o.Streams = most, 1 })
	of.methods = map[string]bool{tappedUnary: false, tappedStream: true}
	from := func(identity string) context.Context {
		slot, err := of.enter(nil)
		must(t, err)
		must(t, slot.Identify(identity))
		return peer.NewContext(t.Context(), &peer.Peer{AuthInfo: caller.Caller{Identity: identity, Slot: slot}})
	}
	return tapped{t, of, from("one")}, tapped{t, of, from("other")}
}

func (c tapped) begin(ctx context.Context, method string) (context.Context, string) {
	ctx, err := c.calls.Begin(ctx, &tap.Info{FullMethodName: method, Header: metadata.MD{}})
	return ctx, outcome(err)
}

func (c tapped) call(method string) string {
	_, told := c.begin(c.from, method)
	return told
}

func TestCallsUnderWayAreBoundedForEachCaller(t *testing.T) {
	t.Parallel()
	one, other := newTapped(t, 3)
	first, told := one.begin(one.from, tappedUnary)
	same(t, "the first", told, "OK")
	for range 2 {
		same(t, "a further one", one.call(tappedStream), "OK")
	}
	same(t, "one too many", one.call(tappedUnary), "ResourceExhausted QUOTA_EXCEEDED")
	same(t, "another caller", other.call(tappedUnary), "OK")
	same(t, "an unknown method", other.call("/a/None"), "Unimplemented")
	one.calls.HandleRPC(first, &stats.Begin{})
	same(t, "while the first is answered", one.call(tappedUnary), "ResourceExhausted QUOTA_EXCEEDED")
	one.calls.HandleRPC(first, &stats.End{})
	one.calls.HandleRPC(first, &stats.End{})
	same(t, "when it has ended", one.call(tappedUnary), "OK")
	same(t, "and no more than one", one.call(tappedUnary), "ResourceExhausted QUOTA_EXCEEDED")
}

func TestACallWhoseTimeIsOverBeforeItRunsCountsNoLonger(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		one, _ := newTapped(t, 1)
		brief, cancel := context.WithTimeout(one.from, time.Second)
		defer cancel()
		_, told := one.begin(brief, tappedUnary)
		same(t, "a call", told, "OK")
		same(t, "another", one.call(tappedUnary), "ResourceExhausted QUOTA_EXCEEDED")
		time.Sleep(time.Second + neverRuns)
		synctest.Wait()
		brief, cancel = context.WithTimeout(one.from, time.Second)
		defer cancel()
		ctx, told := one.begin(brief, tappedUnary)
		same(t, "later", told, "OK")
		one.calls.TagRPC(ctx, nil)
		time.Sleep(time.Minute)
		same(t, "one that runs still counts", one.call(tappedUnary), "ResourceExhausted QUOTA_EXCEEDED")
	})
}

func TestWhoIsTurnedAwayAgainAndAgainIsReadSlowly(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		one, other := newTapped(t, math.MaxInt-1)
		slot := SlotOf(caller.Of(one.from))
		slot.streams.Add(1)
		same(t, "a stream too many at first", one.call(tappedStream), "OK") // to be told by its interceptor
		for range turnedAwayBurst + turnedAway {
			_ = one.call("/a/None")
		}
		same(t, "a stream too many", one.call(tappedStream), "ResourceExhausted STREAM_LIMIT")
		began := time.Now()
		slot.Pace()
		same(t, "wait", time.Since(began).Round(100*time.Millisecond), time.Second)
		began = time.Now()
		SlotOf(caller.Of(other.from)).Pace()
		same(t, "another caller's", time.Since(began), 0*time.Second)
	})
}
