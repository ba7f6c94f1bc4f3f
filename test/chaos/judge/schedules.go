package judge

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sidekeeper/sidekeeper/test/chaos/history"
	"github.com/sidekeeper/sidekeeper/test/chaos/txnlog"
)

// A timetable is a schedule that fires each minute: what its callers have seen, and what the ensemble's logs show of it.
type timetable struct {
	*evidence

	verdict *Verdict
	name    string
	works   []*attempt // of those that were told that an attempt is theirs
	asked   map[string]*operation
	places  []*place            // of workers, in the queue of the schedule's lock
	node    *txnlog.Life        // nil if there is none
	state   scheduleState       // the newest
	begun   []*beginning        // in their order
	shown   map[time.Time]int64 // the zxid at which the ensemble first showed a time to those that asked for it
}

// A scheduleState is what a schedule's node holds, as far as it is judged.
type scheduleState struct {
	CatchUp     bool          `json:"catch_up"`
	StartWithin time.Duration `json:"start_within_ns"`
	SkipLost    bool          `json:"skip_lost"`
	Next        time.Time     `json:"next"`
	Running     *fire         `json:"running"`
	Runs        []acceptedRun `json:"runs"`
	Recent      []fire        `json:"recent"`
}

// An acceptedRun is a run that waits.
type acceptedRun struct {
	ID string `json:"id"`
}

// A fire is an attempt at a tick or a run, or ticks that were missed, as a schedule's node holds it.
type fire struct {
	Tick    time.Time `json:"tick"`
	Run     string    `json:"run"`
	Outcome string    `json:"outcome"`
	Attempt int       `json:"attempt"`
	Missed  int       `json:"missed"`
	Token   int64     `json:"token"`
	Begun   time.Time `json:"begun"`
	Ended   time.Time `json:"ended"`
}

func (f fire) String() string {
	if f.Run != "" {
		return fmt.Sprintf("attempt %d at run %s", f.Attempt, f.Run)
	}
	return fmt.Sprintf("attempt %d at %s", f.Attempt, f.Tick.UTC().Format(time.DateTime))
}

// is says whether it is about the same tick or run.
func (f fire) is(other fire) bool { return f.Tick.Equal(other.Tick) && f.Run == other.Run }

// What the outcomes of attempts are called in a schedule's node.
const (
	lostOutcome   = "LOST"
	missedOutcome = "MISSED"
)

// A beginning is an attempt that the ensemble has recorded.
type beginning struct {
	fire

	at   txnlog.Stamp
	over txnlog.Stamp // when an outcome was first recorded
	last txnlog.Stamp // when another outcome was, or the same
}

// checkSchedules demands that each tick and each run begins once, in time, and again only after its attempt was lost; that one caller at a time
// counts on an attempt; and that no tick passes unless the schedule's rule says so.
func checkSchedules(e *evidence, v *Verdict) {
	tables := e.timetables(v)
	for _, name := range slices.Sorted(maps.Keys(tables)) {
		t := tables[name]
		findOverlaps(v, Schedules, name, t.works)
		t.checkTold()
		if e.log == nil {
			continue
		}
		t.readLog()
		for _, a := range t.works {
			t.checkWork(a)
		}
		t.checkDue()
	}
}

func (e *evidence) timetables(v *Verdict) map[string]*timetable {
	tables := map[string]*timetable{}
	for _, o := range e.operations {
		if o.Schedule == "" {
			continue
		}
		t := tables[o.Schedule]
		if t == nil {
			t = &timetable{evidence: e, verdict: v, name: o.Schedule, asked: map[string]*operation{}}
			tables[o.Schedule] = t
		}
		if o.Kind == history.Requesting {
			t.asked[o.Run] = o
			continue
		}
		a := e.newAttempt(o)
		if a.granted = o.first(history.Begun); a.granted != nil {
			t.works = append(t.works, a)
		}
	}
	for _, life := range e.lives {
		cut := strings.LastIndexByte(life.Path, '/')
		for _, t := range tables {
			switch {
			case life.Path == path(e.settings.ScheduleRoot, t.name):
				t.node = life
			case life.Path[:max(cut, 0)] == path(e.settings.LockRoot, t.name):
				t.places = append(t.places, &place{Life: life, mode: history.Exclusive})
			}
		}
	}
	shown := e.shownTimes()
	for _, t := range tables {
		findHeads(t.places)
		t.shown = shown
	}
	return tables
}

// shownTimes are the times that were asked of the ensemble by setting a node, each with the zxid at which it was first shown.
func (e *evidence) shownTimes() map[time.Time]int64 {
	shown := map[time.Time]int64{}
	if e.log == nil {
		return shown
	}
	for _, transaction := range e.log.Transactions {
		for _, change := range transaction.Changes {
			if at := transaction.Time.UTC(); change.Path == e.settings.ScheduleRoot+"/=clock" && shown[at] == 0 {
				shown[at] = transaction.Zxid
			}
		}
	}
	return shown
}

func (t *timetable) accusef(format string, arguments ...any) {
	t.verdict.accusef(Schedules, "%s: %s", t.name, fmt.Sprintf(format, arguments...))
}

// checkTold demands that no two callers were told of the same attempt.
func (t *timetable) checkTold() {
	told := map[string]*attempt{}
	for _, a := range t.works {
		of := fire{Tick: a.granted.Tick, Run: a.granted.Run, Attempt: int(a.granted.Count)}.String()
		if other := told[of]; other != nil {
			t.accusef("%s and %s were both told of %s", other.name(), a.name(), of)
		}
		told[of] = a
	}
}

// readLog goes through what was in the schedule's node.
func (t *timetable) readLog() {
	if t.node == nil {
		return
	}
	for i, write := range t.node.Writes {
		var now scheduleState
		if err := json.Unmarshal(write.Data, &now); err != nil {
			t.accusef("zxid %#x wrote what is no schedule: %v", write.Zxid, err)
			return
		}
		if i > 0 {
			t.step(t.state, now, write.Stamp)
		}
		t.state = now
	}
}

// step looks at one change.
func (t *timetable) step(before, now scheduleState, at txnlog.Stamp) {
	passed := 0
	if was := before.Running; was != nil && (now.Running == nil || now.Running.Token != was.Token) {
		t.checkEnd(*was, now, at)
	}
	t.checkOutcomes(now, at)
	if now.Running != nil && (before.Running == nil || before.Running.Token != now.Running.Token) {
		t.checkBegin(now, at)
		t.begun = append(t.begun, &beginning{fire: *now.Running, at: at})
		if now.Running.Run == "" && now.Running.Attempt == 1 {
			passed++
		}
	}
	for _, f := range now.Recent {
		if f.Outcome == missedOutcome && !slices.Contains(before.Recent, f) {
			t.checkMissed(now, f, at)
			passed += f.Missed
		}
	}
	if went := int(now.Next.Sub(before.Next) / time.Minute); went != passed {
		t.accusef("zxid %#x went on by %d ticks, of which %d have begun or are noted as missed", at.Zxid, went, passed)
	}
}

// checkEnd demands that what runs no more has an outcome, and that a lost attempt is followed by another unless the rule says otherwise.
func (t *timetable) checkEnd(was fire, now scheduleState, at txnlog.Stamp) {
	i := slices.IndexFunc(now.Recent, func(f fire) bool { return f.Token == was.Token })
	if i < 0 {
		t.accusef("%s runs no more from zxid %#x on, and has no outcome", was, at.Zxid)
		return
	}
	over := now.Recent[i]
	late := was.Run == "" && !now.CatchUp && over.Ended.Sub(was.Tick) > now.StartWithin
	repeated := now.Running != nil && now.Running.is(was) && now.Running.Attempt == was.Attempt+1
	if over.Outcome == lostOutcome && !repeated && !now.SkipLost && was.Attempt < mostAttempts && !late {
		t.accusef("%s was lost, and zxid %#x begins no other attempt at it", was, at.Zxid)
	}
}

// checkOutcomes looks at outcomes that were recorded for the first time, or instead of a loss.
func (t *timetable) checkOutcomes(now scheduleState, at txnlog.Stamp) {
	for _, b := range t.begun {
		i := slices.IndexFunc(now.Recent, func(f fire) bool { return f.Token == b.Token })
		switch {
		case i < 0 || b.over.Happened() && now.Recent[i].Outcome == b.Outcome:
			continue
		case b.over.Happened() && b.Outcome != lostOutcome:
			t.accusef("%s was %s at zxid %#x, and %s before", b, now.Recent[i].Outcome, at.Zxid, b.Outcome)
		case b.over.Happened() && slices.ContainsFunc(t.begun, func(other *beginning) bool { return other.is(b.fire) && other.Attempt > b.Attempt }):
			t.accusef("%s was %s at zxid %#x, when another attempt had followed it", b, now.Recent[i].Outcome, at.Zxid)
		}
		b.Outcome, b.last = now.Recent[i].Outcome, at
		if !b.over.Happened() {
			b.over = at
		}
		if b.Outcome == lostOutcome {
			if p := placeOf(b.Token, t.places); p != nil && stoodAt(p.Life, at.Zxid) {
				t.accusef("%s was noted as lost at zxid %#x, while its place stood", b, at.Zxid)
			}
			continue
		}
		if !t.hasSaid(t.workWith(b.Token), b.Outcome, at) {
			t.accusef("%s was %s at zxid %#x, and its caller had not said so", b, b.Outcome, at.Zxid)
		}
	}
}

// hasSaid says whether a caller had begun to say by then that this is what became of its attempt.
func (t *timetable) hasSaid(a *attempt, outcome string, at txnlog.Stamp) bool {
	if a == nil {
		return false
	}
	finishing := a.first(history.Finishing)
	return finishing != nil && finishing.At <= t.clocks.latest(at) && finishing.Reason == outcome
}

func (t *timetable) workWith(token int64) *attempt {
	for _, a := range t.works {
		if a.granted.Token == token {
			return a
		}
	}
	return nil
}

// mostAttempts is how many attempts there may be at one tick or run.
const mostAttempts = 3

// checkBegin looks at an attempt that has begun.
func (t *timetable) checkBegin(now scheduleState, at txnlog.Stamp) {
	made := *now.Running
	p := placeOf(made.Token, t.places)
	if p == nil || !stoodAt(p.Life, at.Zxid) || !p.head.Happened() || p.head.Zxid >= at.Zxid {
		t.accusef("%s began at zxid %#x with token %d, which was not that of the first in the queue", made, at.Zxid, made.Token)
		return
	}
	if early := made.Tick.Sub(made.Begun); early > 0 && made.Run == "" && made.Attempt == 1 { // another leader's clock may be late
		t.accusef("%s began %v before its time", made, early)
	}
	if told := t.shown[made.Begun.UTC()]; told == 0 || told > at.Zxid {
		t.accusef("%s began at %v, which no clock of the ensemble had shown", made, made.Begun)
	}
	if made.Attempt > 1 {
		t.verdict.Repeated++
		t.checkRepeated(now, at)
		t.checkLate(made, t.clocks.latest(p.head), at)
		return
	}
	if made.Run == "" {
		t.verdict.Ticks++
		t.checkLate(made, max(t.due(made.Tick, at.Zxid), t.clocks.latest(p.head)), at)
	} else {
		t.verdict.Runs++
		if o := t.asked[made.Run]; o == nil || o.At > t.clocks.latest(at) {
			t.accusef("%s began, and no caller had asked for it", made)
		}
	}
	t.checkOrder(made, at)
}

// checkOrder demands that no attempt has begun before at the same, or at a later tick.
func (t *timetable) checkOrder(made fire, at txnlog.Stamp) {
	for _, b := range t.begun {
		if b.is(made) || b.Run == "" && made.Run == "" && !b.Tick.Before(made.Tick) {
			t.accusef("%s began at zxid %#x, after %s", made, at.Zxid, b)
		}
	}
}

// checkRepeated demands that another attempt follows one that was lost.
func (t *timetable) checkRepeated(now scheduleState, at txnlog.Stamp) {
	made := *now.Running
	var last *beginning
	if len(t.begun) > 0 {
		last = t.begun[len(t.begun)-1]
	}
	follows := last != nil && last.is(made) && last.Attempt == made.Attempt-1 && last.Outcome == lostOutcome
	if !follows || now.SkipLost || made.Attempt > mostAttempts {
		t.accusef("%s began at zxid %#x, and no attempt was lost that it may repeat", made, at.Zxid)
	}
}

// checkWork compares what a caller was told with what the ensemble did.
func (t *timetable) checkWork(a *attempt) {
	token := a.granted.Token
	i := slices.IndexFunc(t.begun, func(b *beginning) bool { return b.Token == token })
	p := placeOf(token, t.places)
	if i < 0 || p == nil || ownerOf(p.Life) != history.Owner(a.Client, a.Op) {
		t.accusef("%s was told of an attempt with token %d, which is not recorded for its place", a.name(), token)
		return
	}
	b := t.begun[i]
	a.places = append(a.places, p)
	t.checkGhost(t.verdict, a, p)
	if told := (fire{Tick: a.granted.Tick, Run: a.granted.Run, Attempt: int(a.granted.Count)}); !b.is(told) || b.Attempt != told.Attempt {
		t.accusef("%s was told of %s, and %s is recorded", a.name(), told, b)
	}
	if early := t.clocks.earliest(b.at).Since(a.granted.At); early > 0 {
		t.accusef("%s was told of %s %v before it was recorded", a.name(), b, early)
	}
	if p.Gone.Happened() && a.believed && a.to > t.clocks.latest(p.Gone) {
		t.accusef("%s was sure of %s for %v after its place was gone", a.name(), b, a.to.Since(t.clocks.latest(p.Gone)))
	}
	done := a.done()
	if done != 0 && (!b.last.Happened() || b.Outcome == lostOutcome || t.clocks.earliest(b.last) > done) {
		t.accusef("%s was told that the outcome of %s is recorded, and it was not", a.name(), b)
	}
}
