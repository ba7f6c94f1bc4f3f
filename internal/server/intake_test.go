// It looks inside: what a request waits for, and what is kept of it, shows in no answer.

package server

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"time"

	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	"github.com/sidekeeper/sidekeeper/test/support/bubble"
)

func TestARequestThatWaitsForItsTurnIsRefusedInTheEnd(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		requests, none := newIntake(mostIncomplete), newMemory(0)
		for range mostIncomplete {
			must(t, requests.enter(t.Context(), "uid:1", none))
		}
		began := time.Now()
		same(t, "one more", outcome(answerWith(requests.enter(t.Context(), "uid:1", none), discardTrailer)), "ResourceExhausted QUOTA_EXCEEDED")
		same(t, "after", time.Since(began), longestRequest)
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		same(t, "of a caller that has gone", requests.enter(gone, "uid:1", none), context.Canceled)
		requests.leave()
		same(t, "when there is room", requests.enter(t.Context(), "uid:1", none), nil)
		same(t, "calls", requests.calls.Load(), mostIncomplete)
	})
}

func TestAConnectionWithManyStreamsGetsNoMoreWhileThereIsNoMemory(t *testing.T) {
	t.Parallel()
	used, live := 0, 0
	m := newMemory(1 << 20)
	m.inUse, m.live = func() int { return used }, func() int { return live }
	many, few := &connSlot{quota: newCallerQuota()}, &connSlot{quota: newCallerQuota()}
	begin := func(slot *connSlot) string {
		return outcome(answerWith(slot.beginStream(1024, 4096, "uid:1", m), discardTrailer))
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

// A stream that lives long keeps the first names that it asked for, and not the request.
func TestAStreamKeepsNamesNotRequests(t *testing.T) {
	t.Parallel()
	freed := make(chan struct{})
	attempted := func() attempt {
		request := &lockv1.AcquireRequest{Name: strings.Repeat("x", 1<<20)}
		runtime.AddCleanup(request, func(freed chan struct{}) { close(freed) }, freed)
		return attemptOf(lockv1.LockService_Acquire_FullMethodName, request)
	}
	made := attempted()
	runtime.GC()
	<-freed
	same(t, "action", made.action, "sidekeeper.lock.v1.LockService/Acquire")
	same(t, "bytes", len(made.names[0]), longestDeniedName)
}
