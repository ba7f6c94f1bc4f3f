package traces

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/trace"
	"github.com/sidekeeper/sidekeeper/test/simulation"
)

const first, second = "/locks/orders/_c_1-lock-0", "/locks/orders/_c_2-lock-1"

// handOver has one session hold a lock and give it up, and another one wait for it and lose it.
func handOver() *Recorder {
	r, clock := NewRecorder(), func() time.Duration { return 7 * time.Second }
	for _, session := range []int64{1, 2} {
		r.Change(simulation.Change{Session: session, Timeout: 4 * time.Second})
		r.Step(trace.Step{Kind: trace.Opened, Session: session, Sent: time.Second, Answered: 2 * time.Second, Until: 9 * time.Second, Clock: clock})
	}
	r.Step(trace.Step{Kind: trace.Asked, Session: 1, Place: "/locks/orders/_c_1-lock-"})
	r.Change(simulation.Change{Session: 1, Zxid: 11, Made: []string{first}})
	r.Step(trace.Step{Kind: trace.Made, Session: 1, Place: first})
	r.Step(trace.Step{Kind: trace.Granted, Place: first, Token: 11})
	r.Step(trace.Step{Kind: trace.Asked, Session: 2, Place: "/locks/orders/_c_2-lock-"})
	r.Change(simulation.Change{Session: 2, Zxid: 12, Made: []string{second}})
	r.Step(trace.Step{Kind: trace.Found, Session: 2, Place: second})
	r.Step(trace.Step{Kind: trace.Leaving, Session: 1, Place: first})
	r.Change(simulation.Change{Session: 1, Zxid: 13, Gone: []simulation.Lost{{Path: first, Owner: 1}}})
	r.Step(trace.Step{Kind: trace.Left, Session: 1, Place: first})
	r.Step(trace.Step{Kind: trace.Over, Session: 2})
	r.Step(trace.Step{Kind: trace.Granted, Place: second, Token: 12})
	r.Change(simulation.Change{Session: 2, Zxid: 14, Ended: true, Gone: []simulation.Lost{{Path: second, Owner: 2}}})
	return r
}

// recorded is what a recorder has written, as it is read again.
func recorded(t *testing.T, r *Recorder) []Line {
	t.Helper()
	folder := t.TempDir()
	if err := r.Write(filepath.Join(folder, "hand-over.jsonl")); err != nil {
		t.Fatal(err)
	}
	all, err := Read(folder)
	if err != nil || len(all) != 1 {
		t.Fatalf("%d records, %v", len(all), err)
	}
	for i := range all[0] {
		all[0][i].At = 0 // as in virtual time
	}
	return all[0]
}

func TestATraceOfALockTellsWhatTheCodeAndTheEnsembleDo(t *testing.T) {
	cut := Locks(recorded(t, handOver()))
	var got []string
	for _, step := range cut[0].Steps {
		got = append(got, fmt.Sprintf("%s %d %d %d", step.Kind, step.Caller, step.Place, step.Token))
	}
	// A grant that is told after the end of its session, in the same instant, was before it.
	want := "asked 1 0 0, created 1 1 0, made 1 1 0, granted 1 1 1, asked 2 0 0, created 2 2 0, found 2 2 0, leaving 1 1 0, deleted 1 1 0, " +
		"left 1 1 0, granted 2 2 2, over 2 0 0, lost 2 0 0, end 0 0 0"
	if len(cut) != 1 || cut[0].Writers != 2 || cut[0].Readers != 0 || strings.Join(got, ", ") != want {
		t.Errorf("of %d callers:\n%s, not\n%s", cut[0].Writers, strings.Join(got, ", "), want)
	}
}

// told has one session hold a lock, of which its caller is told, and lose it.
func told() *Recorder {
	r, now := NewRecorder(), 2*time.Second
	r.Change(simulation.Change{Session: 1, Timeout: 4 * time.Second})
	r.Step(trace.Step{Kind: trace.Opened, Session: 1, Until: 5 * time.Second, Clock: func() time.Duration { return now }})
	r.Step(trace.Step{Kind: trace.Asked, Session: 1, Place: "/locks/orders/_c_1-lock-"})
	r.Change(simulation.Change{Session: 1, Zxid: 11, Made: []string{first}})
	r.Step(trace.Step{Kind: trace.Granted, Place: first, Token: 11})
	r.Step(trace.Step{Kind: trace.Granted, Place: first, Token: 11}) // of one who waits at the head for what is due
	r.Step(trace.Step{Kind: trace.Held, Session: 1, Token: 11})
	r.Step(trace.Step{Kind: trace.Promised, Session: 1, Token: 11})
	r.Step(trace.Step{Kind: trace.Promised, Session: 1, Token: 11, Until: 3 * time.Second})
	r.Step(trace.Step{Kind: Heard, Token: 11, Until: 3 * time.Second})
	r.Step(trace.Step{Kind: trace.Promised, Session: 1, Until: 2 * time.Second})
	r.Step(trace.Step{Kind: Heard, Session: 1, Until: 2 * time.Second})
	r.Step(trace.Step{Kind: trace.Ended, Session: 1, Token: 11})
	r.Step(trace.Step{Kind: Heard, Token: 11, Until: time.Second}) // which it was told before
	r.Step(trace.Step{Kind: trace.Status, Session: 1, Token: 11})
	r.Step(trace.Step{Kind: trace.Promised, Session: 1, Until: 9 * time.Second}) // but not of the hold
	r.Step(trace.Step{Kind: trace.Promised, Session: 1})                         // nothing is said of a lease that is over
	now = 5*time.Second + 30*time.Millisecond                                    // on a caller's clock that is slow, too
	r.Step(trace.Step{Kind: trace.Granted, Place: first, Token: 11})
	r.Change(simulation.Change{Session: 1, Ended: true, Gone: []simulation.Lost{{Path: first, Owner: 1}}})
	r.Step(trace.Step{Kind: trace.Made, Session: 1, Place: first}) // as its answer came
	r.Step(trace.Step{Kind: trace.Asked, Session: 1, Place: "/locks/orders/_c_2-lock-"})
	return r
}

func TestATraceOfALockTellsWhatItsCallerIsTold(t *testing.T) {
	var got []string
	for _, step := range Locks(recorded(t, told()))[0].Steps {
		got = append(got, fmt.Sprint(step.Kind, " ", step.Caller))
	}
	want := "asked 1, created 1, granted 1, held 1, promised 1, hold_told 1, heard 1, lease_told 1, lease_heard 1, ended 1, " +
		"status 1, lease_told 1, granted late 1, expires 1, lost 1, end 0"
	if all := strings.Join(got, ", "); all != want {
		t.Errorf("%s, not\n%s", all, want)
	}
}

func TestATraceOfALockTellsWhoIsTheFirstAndIsNotGrantedIt(t *testing.T) {
	lines := recorded(t, told())
	for i := range lines {
		if lines[i].Kind != created && lines[i].Kind != born && lines[i].Kind != trace.Asked {
			lines[i].At = stuck
		}
	}
	if steps := Locks(lines)[0].Steps; steps[2].Kind != "granted" || steps[3].Kind == "still" {
		t.Errorf("%v: it is granted in time", steps)
	}
	for i := range lines {
		if lines[i].Kind == trace.Granted {
			lines[i].At++
		}
	}
	if steps := Locks(lines)[0].Steps; steps[2] != (LockStep{"still", 1, 1, 0}) {
		t.Errorf("%v: it is not", steps)
	}
}

// wanting is what is recorded of a hand-over in which the session that comes first, and the other one, have places with these marks.
func wanting(t *testing.T, one, other string) []Line {
	t.Helper()
	lines := recorded(t, handOver())
	for i := range lines {
		mark := one
		if strings.Contains(lines[i].Place, "_c_2") {
			mark = other
		}
		lines[i].Place = strings.Replace(lines[i].Place, "-lock-", mark, 1)
	}
	return lines
}

const writes, reads = "-__WRIT__", "-__READ__"

func TestATraceOfALockTellsReadersFromOthers(t *testing.T) {
	cut := Locks(wanting(t, writes, reads))[0]
	if cut.Writers != 1 || cut.Readers != 1 || cut.Steps[0].Caller != 1 || cut.Steps[4].Caller != Readers+1 {
		t.Errorf("%+v", cut)
	}
}

func TestATraceOfALockTellsWhoIsNotGrantedItThoughNobodyAheadIsExcluded(t *testing.T) {
	for one, want := range map[string]bool{reads: true, writes: false} {
		lines := wanting(t, one, reads)
		lines = slices.DeleteFunc(lines, func(l Line) bool { // the first holds on, and the second is not granted the lock
			return l.Kind == trace.Leaving || l.Kind == removed || l.Kind == trace.Left || l.Kind == trace.Granted && l.Token == 12
		})
		lines[len(lines)-1].At = stuck + 1
		still := slices.ContainsFunc(Locks(lines)[0].Steps, func(s LockStep) bool { return s.Kind == "still" && s.Place == 2 })
		if still != want {
			t.Errorf("behind %s: %v", one, still)
		}
	}
}

func TestATraceOfASessionCountsFromWhenItWasAskedFor(t *testing.T) {
	cut := Sessions(recorded(t, handOver()))
	want := "[{opened 1 1000001 8000001 0 false 0 0} {over 0 0 0 0 false 0 0} {ended 0 0 0 6000001 false 0 0}]"
	if len(cut) != 1 || cut[0].Timeout != 4*time.Second || fmt.Sprint(cut[0].Steps) != want {
		t.Errorf("%+v, not %s", cut, want)
	}
}

// heartbeats says which of the transactions of session 3, of which these are the steps, are heartbeats for certain.
func heartbeats(t *testing.T, steps ...trace.Step) (certain []bool) {
	t.Helper()
	r := handOver()
	r.Step(trace.Step{Kind: trace.Opened, Session: 3, Sent: time.Second})
	for _, step := range steps {
		step.Session = 3
		r.Step(step)
	}
	r.Change(simulation.Change{Session: 3, Ended: true})
	for _, step := range Sessions(recorded(t, r))[0].Steps {
		if step.Kind == string(trace.Proved) {
			certain = append(certain, step.Heartbeat)
		}
	}
	return certain
}

var proved = trace.Step{Kind: trace.Proved, Sent: 3 * time.Second}

func TestATraceOfASessionTellsWhichTransactionsAreHeartbeats(t *testing.T) {
	got := heartbeats(
		t,
		proved, // a session that has no places may read for others
		trace.Step{Kind: trace.Asked, Place: "/locks/orders/_c_3-lock-"},
		proved, // its creation
		trace.Step{Kind: trace.Absent, Place: "/locks/orders/_c_3-lock-"},
		proved, // that of its directory
		trace.Step{Kind: trace.Asked, Place: "/locks/orders/_c_4-lock-"},
		trace.Step{Kind: trace.Found, Place: "/locks/orders/_c_4-lock-2"},
		proved,
		trace.Step{Kind: trace.Leaving, Place: "/locks/orders/_c_4-lock-2"},
		proved, // its deletion
		trace.Step{Kind: trace.Left, Place: "/locks/orders/_c_4-lock-2"},
		proved,
		trace.Step{Kind: trace.Over},
	)
	if want := []bool{false, false, false, true, false, true}; !slices.Equal(got, want) {
		t.Errorf("%v, not %v", got, want)
	}
}

// A release and the end of the session may delete one place at once, and two streams may ask for places in one queue.
func TestATransactionIsNoHeartbeatForCertainWhileOneOfTwoHandsIsBusy(t *testing.T) {
	const third, fourth = "/locks/orders/_c_3-lock-", "/locks/orders/_c_4-lock-"
	got := heartbeats(
		t,
		trace.Step{Kind: trace.Asked, Place: third},
		trace.Step{Kind: trace.Asked, Place: fourth},
		trace.Step{Kind: trace.Made, Place: fourth + "3"},
		proved, // the creation of the third
		trace.Step{Kind: trace.Made, Place: third + "2"},
		proved,
		trace.Step{Kind: trace.Leaving, Place: third + "2"}, // by its release
		trace.Step{Kind: trace.Leaving, Place: third + "2"}, // by the end of the session
		trace.Step{Kind: trace.Left, Place: third + "2"},
		proved, // the deletion by the other one
		trace.Step{Kind: trace.Left, Place: third + "2"},
		proved,
		trace.Step{Kind: trace.Over},
	)
	if want := []bool{false, true, false, true}; !slices.Equal(got, want) {
		t.Errorf("%v, not %v", got, want)
	}
}

func TestAModuleHasARecordOfEachStep(t *testing.T) {
	text := Module([]LockTrace{{Steps: []LockStep{{"granted", 1, 2, 2}, {Kind: "end"}}}, {Steps: []LockStep{{Kind: "end"}}}})
	want := `---- MODULE Traces ----
Traces == <<
<<
[kind |-> "granted", caller |-> 1, place |-> 2, token |-> 2],
[kind |-> "end", caller |-> 0, place |-> 0, token |-> 0]
>>,
<<
[kind |-> "end", caller |-> 0, place |-> 0, token |-> 0]
>>
>>
====
`
	if text != want {
		t.Errorf("%s, not\n%s", text, want)
	}
}

// What another session can say is taken from its own transactions, and not from who believes it.
func TestWhatASessionIsProvedByIsTheOthersNewestTransactionButOne(t *testing.T) {
	second := func(n int) time.Duration { return time.Duration(n) * time.Second }
	lines := []Line{
		{Kind: born, Session: 1, Timeout: second(15)},
		{Kind: trace.Opened, Session: 1, Sent: second(1), Answered: second(2)},
		{Kind: born, Session: 2, Timeout: second(15)},
		{Kind: trace.Opened, Session: 2, Sent: second(3), Answered: second(4)},
		{Kind: trace.Proved, Session: 1, Sent: second(5), Answered: second(6)},
		{Kind: trace.Proved, Session: 1, Sent: second(7), Answered: second(9)},
		{Kind: trace.Proved, Session: 1, Sent: second(8), Answered: second(10)}, // under way together with the one before
		{Kind: trace.Proved, Session: 1, Sent: second(11), Answered: second(12)},
		{Kind: trace.Shared, Session: 2, By: 1, Sent: second(5), Answered: second(5)},
		{Kind: ended, Session: 2},
	}
	cut := Sessions(lines)
	if len(cut) != 1 || cut[0].Steps[1].Before != 4_000_001 || cut[0].Steps[1].From != 0 {
		t.Errorf("%+v", cut)
	}
	back := slices.Insert(lines, 8, Line{Kind: trace.Attached, Session: 1, Sent: second(12), Answered: second(12)})
	if cut := Sessions(back); cut[0].Steps[1].From != mostTold || cut[0].Steps[1].Before != 0 {
		t.Errorf("by a session that has come back: %+v", cut)
	}
}

func TestASidecarThatWasFrozenWithItsEnsembleMayBeTheSlowerToSayThatASessionIsOver(t *testing.T) {
	for name, c := range map[string]struct {
		silent, late time.Duration
		want         []string
	}{
		"at once after a standstill":    {5 * time.Second, time.Millisecond, []string{"opened", "over", "ended"}},
		"without a standstill":          {standstill - 1, time.Millisecond, []string{"opened", "ended"}},
		"long after the standstill":     {5 * time.Second, standstill, []string{"opened", "ended"}},
		"never, though it goes on long": {5 * time.Second, -1, []string{"opened", "ended"}},
	} {
		lines := []Line{
			{Kind: born, Session: 1, Timeout: 4 * time.Second},
			{Kind: trace.Opened, Session: 1},
			{At: c.silent, Kind: ended, Session: 2},
			{At: c.silent, Kind: ended, Session: 1},
			{At: c.silent, Kind: trace.Over, Session: 3},
		}
		if c.late >= 0 {
			lines = append(lines, Line{At: c.silent + c.late, Kind: trace.Over, Session: 1})
		}
		var kinds []string
		for _, step := range Sessions(lines)[0].Steps {
			kinds = append(kinds, step.Kind)
		}
		if !slices.Equal(kinds, c.want) {
			t.Errorf("%s: %v", name, kinds)
		}
	}
}

func TestATraceOfASessionThatIsAwakeTellsHowLongItMustBeValid(t *testing.T) {
	r, now := NewRecorder(), 2*time.Second
	r.Change(simulation.Change{Session: 1, Timeout: 4 * time.Second})
	r.Step(trace.Step{Kind: trace.Opened, Session: 1, Sent: time.Second, Until: 5 * time.Second, Clock: func() time.Duration { return now }})
	r.Step(trace.Step{Kind: trace.Promised, Session: 1, Until: 9 * time.Second}) // as it does not sleep
	r.Step(trace.Step{Kind: trace.Slept, Session: 1})
	now = 8 * time.Second
	r.Step(trace.Step{Kind: trace.Promised, Session: 1, Until: time.Second})
	now = 8*time.Second + 500*time.Millisecond
	r.Step(trace.Step{Kind: trace.Promised, Session: 1, Until: time.Second / 4}) // which is over sooner
	r.Step(trace.Step{Kind: trace.Woken, Session: 1})
	r.Change(simulation.Change{Session: 1, Ended: true})
	steps := Sessions(recorded(t, r))[0].Steps
	if until := (8 * time.Second).Microseconds() - composing.Microseconds() + 1; len(steps) != 4 || steps[2].Until != until {
		t.Errorf("%+v, want until %d", steps, until)
	}
}
