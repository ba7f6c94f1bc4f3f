package traces

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/trace"
	"github.com/sidekeeper/sidekeeper/test/simulation"
)

const reserved = "/locks/orders/_c_9-claim-lock-0"

// afterAClaim has a claim hold a lock, and a session wait for it. Another session than the one that has made the claim ends it.
func afterAClaim(t *testing.T) []Line {
	t.Helper()
	r, clock := NewRecorder(), func() time.Duration { return 7 * time.Second }
	r.Change(simulation.Change{Session: 2, Timeout: 4 * time.Second})
	r.Step(trace.Step{Kind: trace.Opened, Session: 2, Sent: time.Second, Answered: 2 * time.Second, Until: 9 * time.Second, Clock: clock})
	r.Change(simulation.Change{Session: 8, Zxid: 11, Made: []string{reserved}})
	r.Step(trace.Step{Kind: trace.Granted, Place: reserved, Token: 11})
	r.Step(trace.Step{Kind: trace.Asked, Session: 2, Place: "/locks/orders/_c_2-lock-"})
	r.Change(simulation.Change{Session: 2, Zxid: 12, Made: []string{second}})
	r.Step(trace.Step{Kind: trace.Made, Session: 2, Place: second})
	r.Change(simulation.Change{Session: 8, Ended: true}) // the claim stands on
	r.Change(simulation.Change{Session: 9, Zxid: 14, Gone: []simulation.Lost{{Path: reserved}}})
	r.Step(trace.Step{Kind: trace.Granted, Place: reserved, Token: 11}) // as its answer came
	r.Step(trace.Step{Kind: trace.Granted, Place: second, Token: 12})
	r.Step(trace.Step{Kind: trace.Leaving, Session: 2, Place: second})
	r.Change(simulation.Change{Session: 2, Zxid: 15, Gone: []simulation.Lost{{Path: second, Owner: 2}}})
	r.Step(trace.Step{Kind: trace.Left, Session: 2, Place: second})
	return recorded(t, r)
}

func TestATraceOfALockTellsOfAClaimAsOfACallerThatIsNeverLost(t *testing.T) {
	cut := Locks(afterAClaim(t))
	var got []string
	for _, step := range cut[0].Steps {
		got = append(got, fmt.Sprint(step.Kind, " ", step.Caller, " ", step.Place, " ", step.Token))
	}
	want := "asked 1 0 0, created 1 1 0, made 1 1 0, granted 1 1 1, asked 2 0 0, created 2 2 0, made 2 2 0, leaving 1 1 0, deleted 1 1 0, " +
		"left 1 1 0, granted 2 2 2, leaving 2 2 0, deleted 2 2 0, left 2 2 0, end 0 0 0"
	if all := strings.Join(got, ", "); len(cut) != 1 || cut[0].Writers != 2 || cut[0].Claims != 1 || all != want {
		t.Errorf("%+v:\n%s, not\n%s", cut, all, want)
	}
}

// Who waits behind a claim waits for as long as that stands, and a claim may wait without a sidecar, and outlive all callers.
func TestATraceOfALockTellsNobodyToBeLateBesideAClaim(t *testing.T) {
	lines := slices.DeleteFunc(afterAClaim(t), func(l Line) bool { return l.Kind == trace.Granted || l.Place == reserved && l.Kind == removed })
	lines[len(lines)-1].At = stuck + 1
	for _, step := range Locks(lines)[0].Steps {
		if step.Kind == "still" || step.Kind == "end" {
			t.Errorf("%+v", step)
		}
	}
}

func TestAClaimAndAReadersPlaceAreToldApart(t *testing.T) {
	lines := afterAClaim(t)
	for i := range lines {
		lines[i].Place = strings.Replace(lines[i].Place, "-claim-lock-", "-claim-__READ__", 1)
	}
	if cut := Locks(lines)[0]; cut.Steps[0].Caller != Readers+1 || cut.Readers != 1 || cut.Writers != 1 {
		t.Errorf("%+v", cut)
	}
}
