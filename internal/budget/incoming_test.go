package budget

import (
	"fmt"
	"testing"

	"go.uber.org/zap"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"

	"github.com/sidekeeper/sidekeeper/internal/caller"
	"github.com/sidekeeper/sidekeeper/internal/policy"
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

// One request too many of all ends the oldest of the caller that has the most.
func TestRequestsThatDoNotComeMakeRoomForThoseOfOthers(t *testing.T) {
	t.Parallel()
	b := budgetOf(0, zap.NewNop())
	begin := func(of *account, number int) (begun []*unreadStream, err error) {
		for range number {
			stream := new(unreadStream)
			if err := b.incoming.enter(&arrival{of: of, ctx: t.Context(), raw: stream}, mostUnread); err != nil {
				return begun, err
			}
			begun = append(begun, stream)
		}
		return begun, nil
	}
	one, two, three := b.newAccount("one"), b.newAccount("two"), b.newAccount("three")
	first, err := begin(one, mostUnread+1)
	same(t, "one too many of a caller", told(err), "ResourceExhausted QUOTA_EXCEEDED")
	second, err := begin(two, mostIncoming-mostUnread-10)
	must(t, err)
	third, err := begin(three, 13)
	must(t, err)
	ended := func(begun []*unreadStream) (ended string) {
		for i, stream := range begun {
			if stream.told != nil {
				ended += fmt.Sprint(i, " ", told(stream.told.Err()), " ")
			}
		}
		return ended
	}
	const so = " ResourceExhausted QUOTA_EXCEEDED "
	same(t, "of who has the most", ended(first), "0"+so+"1"+so+"2"+so)
	same(t, "of others", ended(second)+ended(third), "")
	same(t, "requests", len(b.incoming.open), mostIncoming)
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
	same(t, "of somebody else", begin(few), "OK")
	same(t, "streams", many.streams.Load(), fewStreams+2)
	m.most = 0
	same(t, "without a limit", begin(many), "OK")
}
