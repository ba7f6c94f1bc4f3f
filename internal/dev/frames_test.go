package dev

import (
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	"github.com/sidekeeper/sidekeeper/internal/trace"
)

// mostFrames is how many functions lie between what brings an event of a free lock and what is done with it. All of them are this repository's.
const mostFrames = 14

// pairs is how many locks are looked at.
const pairs = 50

// A free lock over its lease's stream changes hands between goroutines once: what reads the stream asks the ensemble, what reads the ensemble's
// answer grants the lock, and what writes the stream tells the caller.
func TestAFreeLockIsGrantedWithinFewFramesAndOneHandOff(t *testing.T) {
	s := serve(t, Options{})
	stream, err := leasev1.NewLeaseServiceClient(s.connection).Multiplex(s.context())
	must(t, err)
	exchange := func(request *leasev1.MultiplexRequest) {
		t.Helper()
		must(t, stream.Send(request))
		_, err := stream.Recv()
		must(t, err)
	}
	pair := func(id uint64) {
		t.Helper()
		exchange(&leasev1.MultiplexRequest{Request: &leasev1.MultiplexRequest_Start{Start: &leasev1.Start{
			RequestId: id, Request: &leasev1.Start_Acquire{Acquire: &lockv1.AcquireRequest{Name: "orders"}},
		}}})
		exchange(&leasev1.MultiplexRequest{Request: &leasev1.MultiplexRequest_Stop{Stop: &leasev1.Stop{RequestId: id}}})
	}
	exchange(&leasev1.MultiplexRequest{Request: &leasev1.MultiplexRequest_Open{Open: &leasev1.OpenRequest{}}})
	pair(1) // which makes the directory
	stacks := map[trace.Kind][][]string{}
	var mu sync.Mutex
	stop := trace.Listen(func(step trace.Step) {
		mu.Lock()
		defer mu.Unlock()
		stacks[step.Kind] = append(stacks[step.Kind], stack())
	})
	for id := range pairs {
		pair(uint64(id + 2))
	}
	stop()
	for _, way := range []struct {
		step     trace.Kind
		from, to string
	}{
		{trace.Asked, "service.(*multiplex).read", "zookeeper.(*Session).EnqueueThen"},
		{trace.Carried, "zookeeper.(*wire).answerOwn", "service.(*held[...]).beginHold"},
		{trace.Promised, "outbox.(*Outbox[...]).deliver", "service.(*held[...]).mayTell"},
	} {
		found := 0
		for _, on := range stacks[way.step] {
			from, to := slices.Index(on, way.from), slices.Index(on, way.to)
			if from < 0 || to < 0 {
				continue // an answer may come before the goroutine that has asked has returned, which goes on then
			}
			found++
			if frames := from - to + 1; frames > mostFrames {
				t.Fatalf("%s lies %d frames behind %s, more than %d: %s", way.step, frames, way.from, mostFrames, strings.Join(on[to:from+1], ", "))
			}
		}
		if found == 0 {
			t.Errorf("%s was done by what is in %s %d times of %d: %v", way.step, way.from, found, len(stacks[way.step]), stacks[way.step])
		}
	}
}

// stack is in which functions the caller is, the innermost first, without the paths of their packages.
func stack() (functions []string) {
	callers := make([]uintptr, 100)
	frames := runtime.CallersFrames(callers[:runtime.Callers(0, callers)])
	for more := true; more; {
		var frame runtime.Frame
		frame, more = frames.Next()
		functions = append(functions, frame.Function[strings.LastIndex(frame.Function, "/")+1:])
	}
	return functions
}
