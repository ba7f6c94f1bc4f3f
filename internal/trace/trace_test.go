package trace_test

import (
	"testing"

	"github.com/sidekeeper/sidekeeper/internal/trace"
)

var step = trace.Step{Kind: trace.Proved, Session: 1, Sent: 2, Answered: 3, Until: 4}

func TestWhoeverListensIsToldEachStepUntilItStops(t *testing.T) {
	var told []trace.Kind
	trace.Tell(step)
	stop := trace.Listen(func(s trace.Step) { told = append(told, s.Kind) })
	if !trace.Told() {
		t.Error("nobody is told while somebody listens")
	}
	trace.Tell(step)
	stop()
	trace.Tell(step)
	if len(told) != 1 || told[0] != trace.Proved || trace.Told() {
		t.Errorf("told %q", told)
	}
}

func TestAStepThatNobodyListensToAllocatesNothing(t *testing.T) {
	if allocations := testing.AllocsPerRun(1000, func() { trace.Tell(step) }); allocations != 0 {
		t.Errorf("%v allocations", allocations)
	}
}

func BenchmarkAStepThatNobodyListensTo(b *testing.B) {
	for b.Loop() {
		trace.Tell(trace.Step{Kind: trace.Proved, Session: 1, Sent: 2, Answered: 3, Until: 4})
	}
}
