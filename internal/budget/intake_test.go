package budget

import (
	"context"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/test/support/bubble"
)

func TestARequestThatWaitsForItsTurnIsRefusedInTheEnd(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		requests, none := newIntake(MostIncomplete), NewMemory(0)
		for range MostIncomplete {
			must(t, requests.enter(t.Context(), "uid:1", none))
		}
		began := time.Now()
		same(t, "one more", told(requests.enter(t.Context(), "uid:1", none)), "ResourceExhausted QUOTA_EXCEEDED")
		same(t, "after", time.Since(began), LongestRequest)
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		same(t, "of a caller that has gone", requests.enter(gone, "uid:1", none), context.Canceled)
		requests.leave()
		same(t, "when there is room", requests.enter(t.Context(), "uid:1", none), nil)
		same(t, "calls", requests.calls.Load(), MostIncomplete)
	})
}

func TestAConnectionWithManyStreamsGetsNoMoreWhileThereIsNoMemory(t *testing.T) {
	t.Parallel()
	used, live := 0, 0
	m := NewMemory(1 << 20)
	m.inUse, m.live = func() int { return used }, func() int { return live }
	many, few := &Slot{quota: newCallerQuota()}, &Slot{quota: newCallerQuota()}
	begin := func(slot *Slot) string {
		return told(slot.BeginStream(1024, 4096, "uid:1", m))
	}
	for range fewStreams {
		same(t, "few", begin(many), "OK")
	}
	same(t, "with memory", begin(many), "OK")
	used = 2 << 20
	same(t, "with garbage", begin(many), "OK")
	live = 2 << 20
	same(t, "without memory", begin(many), "ResourceExhausted MEMORY_LIMIT")
	same(t, "of somebody else", begin(few), "OK")
	same(t, "streams", many.streams.open.Load(), fewStreams+2)
	m.most = 0
	same(t, "without a limit", begin(many), "OK")
}
