package judge

import (
	"slices"
	"strings"
	"testing"

	"github.com/sidekeeper/sidekeeper/test/chaos/history"
	"github.com/sidekeeper/sidekeeper/test/chaos/txnlog"
)

func TestARoundThatShowsNothingIsInvalid(t *testing.T) {
	whole := story{seen: "1 c fault N1 server/1"}.round()
	for name, spoil := range map[string]func(*Round){
		"that it began": func(r *Round) {
			r.Events = slices.DeleteFunc(r.Events, func(e history.Event) bool { return e.Kind == history.Began })
		},
		"brought to its end": func(r *Round) {
			r.Events = slices.DeleteFunc(r.Events, func(e history.Event) bool { return e.Kind == history.Quiet })
		},
		"last operation": func(r *Round) {
			r.Events = slices.DeleteFunc(r.Events, func(e history.Event) bool { return e.Kind == history.Tombstone })
		},
		"do not agree": func(r *Round) { r.Log = &txnlog.Log{Faults: []string{"x"}} },
		"not complete": func(r *Round) { r.Log = &txnlog.Log{Gaps: []string{"0x2 to 0x3"}} },
	} {
		spoiled := whole
		spoiled.Events = slices.Clone(whole.Events)
		spoil(&spoiled)
		verdict := Judge(spoiled)
		if !strings.Contains(verdict.Invalid, name) {
			t.Errorf("without %q: %q", name, verdict.Invalid)
		}
		if len(verdict.Violations) > 0 {
			t.Errorf("%q: %v", name, verdict.Violations)
		}
	}
	if verdict := Judge(whole); verdict.Invalid != "" {
		t.Errorf("the whole round: %s", verdict.Invalid)
	}
}

func TestARoundThatDidNotRecoverIsInvalidAndNotAskedWhatIsLeft(t *testing.T) {
	round := story{
		seen: `
			10 1/1 called L
			20 1/1 granted 5
			30 1/1 ended user
			9 1/2 watching keys k
			9 1/2 synced
			9 1/3 watching group G
			9 1/3 seen
			10 2/1 called M
			5000 2/1 ended user
			10 2/2 called N
			20 2/2 ended user`,
		logged: `
			1 11 s1 place 2/1 M
			2 5000 s1 gone 2/1 M
			3 11 s1 place 2/2 N
			4 9000 s1 gone 2/2 N
			5 11 s1 place 1/1 L
			6 12 s1 make /config/k
			7 12 s1 put /config/k a 1
			8 13 s1 create /groups/G/a`,
		residue: &Residue{Sessions: 2},
	}.round()
	if verdict := Judge(round); len(verdict.Violations) != 6 || verdict.Invalid != "" {
		t.Errorf("as long as it recovers: %v, %q", verdict.Violations, verdict.Invalid)
	}
	for i := range round.Events {
		if round.Events[i].Kind == history.Tombstone {
			round.Events[i].Outcome = history.Unknown
		}
	}
	if verdict := Judge(round); len(verdict.Violations) != 0 || verdict.Invalid == "" {
		t.Errorf("%v, %q", verdict.Violations, verdict.Invalid)
	}
}

func TestWhatCouldNotBeLookedAtIsSaid(t *testing.T) {
	verdict := Judge(story{}.round())
	if len(verdict.Unchecked) != 2 {
		t.Errorf("%q", verdict.Unchecked)
	}
	verdict = Judge(story{logged: "5 10 s1 make /other", residue: &Residue{}}.round())
	if len(verdict.Unchecked) != 0 {
		t.Errorf("%q", verdict.Unchecked)
	}
}

func TestEpochsAreThePlacesThatOwnedALock(t *testing.T) {
	verdict := Judge(story{
		seen: `
			10 1/1 called L
			11 1/1 ended user`,
		logged: `
			1 10 s1 place 1/1 L
			2 10 s2 place 2/1 L
			3 10 s3 place 3/1 L
			4 11 s2 gone 2/1 L
			5 12 s1 gone 1/1 L
			6 13 s3 gone 3/1 L`,
	}.round())
	if verdict.Epochs != 2 {
		t.Errorf("%d", verdict.Epochs)
	}
}

func TestAWallClockThatIsSetMakesTheJudgeCareful(t *testing.T) {
	round := story{
		seen: `
			12 2/1 called L
			20 2/1 granted 6
			50 2/1 ended user`,
		logged: `
			5 11 s1 place 1/1 L
			6 12 s2 place 2/1 L
			7 40 s1 gone 1/1 L
			8 50 s2 gone 2/1 L`,
	}.round()
	if verdict := Judge(round); len(verdict.Violations) != 1 {
		t.Errorf("%v", verdict.Violations)
	}
	round.Events = append(round.Events, history.Event{At: at("70000"), Kind: history.Clocks, Wall: int64(ahead) + int64(at("70030"))})
	if verdict := Judge(round); len(verdict.Violations) != 0 {
		t.Errorf("with a clock that was set by 30ms: %v", verdict.Violations)
	}
}
