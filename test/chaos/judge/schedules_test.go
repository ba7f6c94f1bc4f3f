package judge

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/test/chaos/history"
)

// Two workers that each begin a tick of a schedule, and say how it went.
const (
	ticked = `
		10 1/1 working
		12 2/1 working
		60100 1/1 begun 11 60 1
		60100 1/1 believed 60100 60400
		60500 1/1 finishing SUCCEEDED
		60600 1/1 finished ok
		60610 1/1 ended OK
		120100 2/1 begun 12 120 1
		120100 2/1 believed 120100 120400
		120500 2/1 finishing FAILED
		120600 2/1 finished ok
		120610 2/1 ended OK
		150000 c quiet`
	tickedLog = `
		9 5 s9 make /schedules/S next=60
		11 11 s1 place 1/1 S
		12 13 s2 place 2/1 S
		19 60040 s1 put /schedules/=clock - 1
		20 60050 s1 put /schedules/S next=120;running=60/1/11 1
		21 60550 s9 put /schedules/S next=120;60/1/11/SUCCEEDED 2
		22 60560 s1 gone 1/1 S
		23 120040 s2 put /schedules/=clock - 2
		23 120050 s2 put /schedules/S next=180;running=120/1/12;60/1/11/SUCCEEDED 3
		24 120550 s9 put /schedules/S next=180;60/1/11/SUCCEEDED;120/1/12/FAILED 4
		25 120560 s2 gone 2/1 S`
)

var stateWord = regexp.MustCompile(`next=\S+`)

// states has each state of a schedule be as its node holds it: `next=120;running=60/1/11;0/1/9/LOST;0/2/MISSED` is the next tick, the tick, the
// attempt and the token of what runs, an outcome, and two ticks from 0 on that were missed. A tick may have the id of a run behind it, and
// all of it the time at which it began or was noted, in milliseconds: `running=60/1/11@70000`, or else 40 ms after the tick.
func states(text string) string {
	return stateWord.ReplaceAllStringFunc(text, func(word string) string {
		state := scheduleState{StartWithin: 10 * time.Second}
		for part := range strings.SplitSeq(word, ";") {
			key, value, named := strings.Cut(part, "=")
			switch {
			case key == "next":
				state.Next = tickAt(value).Tick
			case part == "skip":
				state.SkipLost = true
			case part == "once":
				state.CatchUp = true
			case named:
				running := fireOf(value)
				state.Running = &running
			default:
				state.Recent = append(state.Recent, fireOf(part))
			}
		}
		data, err := json.Marshal(state)
		if err != nil {
			panic(err)
		}
		return string(data)
	})
}

func tickAt(text string) fire {
	seconds, run, _ := strings.Cut(text, "+")
	return fire{Tick: time.Unix(number(seconds), 0).Add(ahead).UTC(), Run: run}
}

func fireOf(text string) fire {
	text, noted, named := strings.Cut(text, "@")
	parts := strings.Split(text, "/")
	f := tickAt(parts[0])
	f.Begun = f.Tick.Add(40 * time.Millisecond)
	if named {
		f.Begun = time.UnixMilli(number(noted)).Add(ahead).UTC()
	}
	f.Ended = f.Begun
	if parts[len(parts)-1] == missedOutcome {
		f.Missed, f.Outcome = int(number(parts[1])), missedOutcome
		return f
	}
	f.Attempt, f.Token = int(number(parts[1])), number(parts[2])
	if len(parts) > 3 {
		f.Outcome = parts[3]
	}
	return f
}

func TestEachTickBeginsOnceAndInTime(t *testing.T) {
	lost := []string{"60500 1/1 finishing SUCCEEDED\n\t\t60600 1/1 finished ok\n\t\t60610 1/1 ended OK", "60410 1/1 ended Aborted LEASE_LOST"}
	lostLog := []string{
		"21 60550 s9 put /schedules/S next=120;60/1/11/SUCCEEDED 2\n\t\t22 60560 s1 gone 1/1 S", "21 60560 s1 expire",
		"next=180;running=120/1/12;60/1/11/SUCCEEDED", "next=120;running=60/2/12;60/1/11/LOST", "23 120050", "23 60600", "23 120040", "23 60590",
		"next=180;60/1/11/SUCCEEDED;120/1/12/FAILED 4", "next=120;60/1/11/LOST;60/2/12/FAILED 4",
		"24 120550", "24 60900", "25 120560", "25 60910",
	}
	again := append([]string{
		"120100 2/1 begun 12 120 1", "60700 2/1 begun 12 60 2", "believed 120100 120400", "believed 60700 60800",
		"120500 2/1", "60850 2/1", "120600 2/1", "60950 2/1", "120610 2/1", "60960 2/1", "150000", "100000",
	}, lost...)
	judgeSchedules(t, []story{
		{name: "as promised", seen: ticked, logged: tickedLog},
		{name: "by the histories alone", seen: ticked},
		{name: "again after a loss", seen: but(ticked, again...), logged: but(tickedLog, lostLog...)},
		{
			name: "again by the clock of a leader that is late", seen: but(ticked, again...),
			logged: but(but(tickedLog, lostLog...), "23 60590", "23 59000", "running=60/2/12", "running=60/2/12@59000"),
		},
		{
			name: "another outcome than its caller says", seen: but(ticked, "finishing SUCCEEDED", "finishing FAILED"), logged: tickedLog,
			want: "its caller had not said so",
		},
		{
			name: "before its time", seen: ticked,
			logged: but(tickedLog, "19 60040", "19 59040", "running=60/1/11", "running=60/1/11@59040"), want: "began 960ms before its time",
		},
		{
			name: "by a clock of its own", seen: ticked, logged: but(tickedLog, "19 60040", "19 59040"),
			want: "which no clock of the ensemble had shown",
		},
		{
			name: "the same again", seen: but(ticked, "begun 12 120 1", "begun 12 60 1"),
			logged: but(tickedLog, "running=120/1/12", "running=60/1/12@120040"), want: "began at zxid 0x17, after attempt 1 at 1970-01-01 01:01:00",
		},
		{name: "told to two", seen: but(ticked, "begun 12 120 1", "begun 12 60 1"), want: "were both told of attempt 1"},
		{
			name: "without the place", seen: ticked, logged: but(tickedLog, "running=60/1/11", "running=60/1/12", "60/1/11/", "60/1/12/"),
			want: "which was not that of the first in the queue",
		},
		{
			name: "again though it had an outcome", seen: but(ticked, again...),
			logged: strings.ReplaceAll(but(tickedLog, lostLog...), "LOST", "FAILED"),
			want:   "no attempt was lost that it may repeat",
		},
		{
			name: "again though its rule skips", seen: but(ticked, again...),
			logged: but(but(tickedLog, lostLog...), "running=60/2/12", "skip;running=60/2/12"), want: "no attempt was lost that it may repeat",
		},
		{
			name: "lost while its place stands", seen: but(ticked, lost...),
			logged: but(tickedLog, "next=120;60/1/11/SUCCEEDED 2", "next=120;60/1/11/LOST 2"), want: "while its place stood",
		},
		{
			name: "an outcome of nobody's", seen: but(ticked, lost...), logged: tickedLog, want: "its caller had not said so",
		},
		{
			name: "an outcome that changes", seen: ticked,
			logged: but(tickedLog, "next=180;60/1/11/SUCCEEDED;", "next=180;60/1/11/FAILED;"), want: "and SUCCEEDED before",
		},
		{
			name: "told and not recorded", seen: ticked, logged: but(tickedLog, "120/1/12/FAILED", "120/1/12/LOST"),
			want: "was told that the outcome of attempt 1 at 1970-01-01 01:02:00 is recorded, and it was not",
		},
		{
			name: "told before it is recorded", seen: but(ticked, "60100 1/1 begun", "60040 1/1 begun"), logged: tickedLog,
			want: "10ms before it was recorded",
		},
		{name: "told of another", seen: but(ticked, "begun 11 60 1", "begun 11 60 2"), logged: tickedLog, want: "was told of attempt 2"},
		{
			name: "never recorded", seen: but(ticked, "begun 12 120 1", "begun 13 120 1"), logged: tickedLog,
			want: "which is not recorded for its place",
		},
		{
			name: "sure for too long", seen: but(ticked, "believed 60100 60400", "believed 60100 60900"), logged: tickedLog,
			want: "after its place was gone",
		},
		{
			name: "two are sure", seen: but(ticked, "believed 60100 60400", "believed 60100 120200"), want: "were both sure of S",
		},
		{
			name: "begun late", seen: but(ticked, "120100 2/1 begun", "130100 2/1 begun", "believed 120100 120400", "believed 130100 130400",
				"120500 2/1", "130500 2/1", "120600 2/1", "130600 2/1", "120610 2/1", "130610 2/1"),
			logged: but(tickedLog, "23 120050", "23 130050", "23 120040", "23 130040",
				"running=120/1/12", "running=120/1/12@130040", "24 120550", "24 130550", "25 120560", "25 130560"),
			want: "began 10.039s after its worker could have begun it",
		},
	})
}

func TestAnAttemptThatRunsNoMoreHasAnOutcomeAndALostOneIsRepeated(t *testing.T) {
	seen, _, _ := strings.Cut(ticked, "60500 1/1 finishing")
	seen += "60410 1/1 ended Aborted LEASE_LOST\n60650 2/1 ended Canceled\n62000 c quiet"
	before, _, _ := strings.Cut(tickedLog, "21 60550")
	before += "21 60560 s1 expire\n22 60590 s2 put /schedules/=clock - 2\n"
	judgeSchedules(t, []story{
		{
			name: "not repeated", seen: seen, logged: before + "23 60600 s2 put /schedules/S next=120;60/1/11/LOST 3\n24 60700 s2 gone 2/1 S",
			want: "was lost, and zxid 0x17 begins no other attempt at it",
		},
		{
			name: "as its rule says", seen: seen, logged: before + "23 60600 s2 put /schedules/S next=120;skip;60/1/11/LOST 3\n24 60700 s2 gone 2/1 S",
		},
		{
			name: "without an outcome", seen: seen, logged: before + "23 60600 s2 put /schedules/S next=120 3\n24 60700 s2 gone 2/1 S",
			want: "runs no more from zxid 0x17 on, and has no outcome",
		},
		{
			name: "never looked at", seen: but(seen, "60650 2/1", "69000 2/1", "62000 c", "70000 c"), logged: before + "23 69010 s2 gone 2/1 S",
			want: "a worker waited for",
		},
	})
}

func TestNoTickPassesUnlessItsRuleSaysSo(t *testing.T) {
	missing := func(log, rule string) string {
		return but(log, "23 120050 s2 put /schedules/S next=180;running=120/1/12;60/1/11/SUCCEEDED 3",
			"23 140050 s2 put /schedules/S next=180;"+rule+"60/1/11/SUCCEEDED;120/1/MISSED@140040 3", "23 120040", "23 140040",
			"24 120550 s9 put /schedules/S next=180;60/1/11/SUCCEEDED;120/1/12/FAILED 4\n", "\n", "25 120560", "25 140560")
	}
	first, _, _ := strings.Cut(ticked, "120100 2/1")
	passed := first + "140800 2/1 ended Canceled\n150000 c quiet"
	judgeSchedules(t, []story{
		{name: "later than it may be", seen: passed, logged: missing(tickedLog, "")},
		{name: "though it catches up", seen: passed, logged: missing(tickedLog, "once;"), want: "was noted as missed 20.04s after its time"},
		{
			name: "in time", seen: passed,
			logged: but(missing(tickedLog, ""), "23 140050", "23 125050", "23 140040", "23 125040", "@140040", "@125040"),
			want:   "was noted as missed 5.04s after its time",
		},
		{
			name: "not noted", seen: passed, logged: but(missing(tickedLog, ""), ";120/1/MISSED@140040", ""),
			want: "went on by 1 ticks, of which 0 have begun or are noted as missed",
		},
		{
			name: "never looked at", seen: passed,
			logged: but(missing(tickedLog, ""), "23 140050 s2 put /schedules/S next=180;60/1/11/SUCCEEDED;120/1/MISSED@140040 3\n", "\n"),
			want:   "a worker waited for",
		},
	})
}

func TestEachRunBeginsOnceThatWasAskedFor(t *testing.T) {
	seen := "20000 3/1 requesting a\n20100 3/1 ended OK\n" + but(ticked, "60100 1/1 begun 11 60 1", "60100 1/1 begun 11 20 1 a")
	logged := but(tickedLog, "next=120;running=60/1/11", "next=60;running=20+a/1/11@60040",
		"next=120;60/1/11/SUCCEEDED", "next=60;20+a/1/11/SUCCEEDED",
		"next=180;running=120/1/12;60/1/11/SUCCEEDED", "next=180;running=120/1/12;60/1/MISSED@120040;20+a/1/11/SUCCEEDED",
		"next=180;60/1/11/SUCCEEDED;120", "next=180;60/1/MISSED@120040;20+a/1/11/SUCCEEDED;120")
	judgeSchedules(t, []story{
		{name: "as promised", seen: seen, logged: logged},
		{
			name: "that is forgotten", seen: seen + "\n130000 3/2 requesting b\n130100 3/2 ended OK", logged: logged,
			want: "run b was accepted, and neither waits nor has begun",
		},
		{
			name: "that no caller asked for", seen: strings.ReplaceAll(seen, "requesting a", "requesting b"), logged: logged,
			want: "no caller had asked for it",
		},
	})
}

// judgeSchedules tells stories in which states stand for what a schedule's node holds.
func judgeSchedules(t *testing.T, stories []story) {
	t.Helper()
	for i := range stories {
		stories[i].logged = states(stories[i].logged)
		stories[i].adjust = func(s *history.Settings) { s.Patience = 2 * time.Second }
	}
	judgeAll(t, Schedules, stories)
}
