package budget

import (
	"fmt"
	"testing"
	"time"

	"go.uber.org/zap"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"

	"github.com/sidekeeper/sidekeeper/internal/caller"
	"github.com/sidekeeper/sidekeeper/internal/policy"
	"github.com/sidekeeper/sidekeeper/test/support/bubble"
)

// An unreadStream is one of a call whose request does not come.
type unreadStream struct{ told *status.Status }

func (*unreadStream) RecvCompress() string           { return "" }
func (*unreadStream) ReadMessageHeader([]byte) error { return nil }
func (*unreadStream) Read(int) (mem.BufferSlice, error) {
	return nil, nil
}

func (s *unreadStream) WriteStatus(answer *status.Status) error {
	s.told = answer
	return nil
}

// One request too many of all ends the oldest of the caller that has the most, once it has had its time.
func TestRequestsThatDoNotComeMakeRoomForThoseOfOthers(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		b := budgetOf(0, zap.NewNop())
		begin := func(of *account, number int) (begun []*arrival) {
			for range number {
				a := &arrival{of: of, ctx: t.Context(), raw: new(unreadStream), since: time.Now()}
				if !b.incoming.enter(a, mostUnread) {
					return begun
				}
				begun = append(begun, a)
				b.incoming.surplus(mostIncoming).end((*account).unread)
			}
			return begun
		}
		one, two, three := b.newAccount("one"), b.newAccount("two"), b.newAccount("three")
		first := begin(one, mostUnread+1)
		same(t, "of one caller", len(first), mostUnread)
		time.Sleep(time.Second)
		second := begin(two, mostIncoming-mostUnread-10)
		third := begin(three, 13)
		ended := func(begun []*arrival) (ended string) {
			for i, a := range begun {
				if answer := a.raw.(*unreadStream).told; answer != nil {
					ended += fmt.Sprint(i, " ", told(answer.Err()), " ")
					same(t, "known to the call", b.incoming.leave(a), true)
				}
			}
			return ended
		}
		const so = " ResourceExhausted QUOTA_EXCEEDED "
		same(t, "of who has the most", ended(first), "0"+so+"1"+so+"2"+so)
		same(t, "of others", ended(second)+ended(third), "")
		same(t, "requests", b.incoming.sum, mostIncoming)
		for _, a := range first[3:] {
			same(t, "ended", b.incoming.leave(a), false)
		}
		same(t, "requests, then", fmt.Sprint(b.incoming.sum, one.arrivals.number.Load(), len(b.incoming.callers)), "259 0 2")
		begin(one, mostIncoming-259+1)
		same(t, "where none has had its time, the oldest of all", ended(second), "0"+so)
	})
}

func TestAConnectionWithManyStreamsGetsNoMoreWhileThereIsNoMemory(t *testing.T) {
	t.Parallel()
	used, live := 0, 0
	b := budgetOf(0, zap.NewNop(), func(o *Options) { o.Limits = caller.NewLimits(policy.Limits{policy.Streams: 4096}) })
	m := &b.memory
	m.most, m.inUse, m.live = 1<<20, func() int { return used }, func() int { return live }
	slot := func() *Slot { return &Slot{budget: b, account: b.newAccount("uid:1")} }
	many, few := slot(), slot()
	begin := func(slot *Slot) string { return told(slot.BeginStream(1024)) }
	for range fewStreams {
		same(t, "few", begin(many), "OK")
	}
	same(t, "with memory", begin(many), "OK")
	used = 2 << 20
	same(t, "with garbage", begin(many), "OK")
	live = 2 << 20
	same(t, "without memory", begin(many), "ResourceExhausted MEMORY_LIMIT")
	same(t, "of another caller", begin(few), "OK")
	same(t, "streams", many.streams.Load(), fewStreams+2)
	m.most = 0
	same(t, "without a limit", begin(many), "OK")
}
