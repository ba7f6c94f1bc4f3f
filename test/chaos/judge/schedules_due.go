package judge

import (
	"maps"
	"slices"
	"time"

	"github.com/sidekeeper/sidekeeper/test/chaos/history"
	"github.com/sidekeeper/sidekeeper/test/chaos/txnlog"
)

// checkLate demands that the worker begins what is due once it is its turn.
func (t *timetable) checkLate(made fire, due history.Instant, at txnlog.Stamp) {
	due = max(due, t.free())
	if late := t.clocks.earliest(at).Since(t.deadline(due, t.settings.Patience)); late > 0 {
		t.accusef("%s began %v after its worker could have begun it", made, t.clocks.earliest(at).Since(due))
	}
}

// free is when the last attempt was certainly over: its outcome was recorded, or its place was gone.
func (t *timetable) free() history.Instant {
	if len(t.begun) == 0 {
		return 0
	}
	last := t.begun[len(t.begun)-1]
	if p := placeOf(last.Token, t.places); p != nil && p.Gone.Happened() && (!last.over.Happened() || last.Outcome == lostOutcome) {
		return t.clocks.latest(p.Gone)
	}
	if !last.over.Happened() {
		return t.quiet
	}
	return t.clocks.latest(last.over)
}

// due is when a tick was certainly due by the clock of the leader of a transaction, which may have become so since it leads.
func (t *timetable) due(tick time.Time, zxid int64) history.Instant {
	due := t.clocks.latest(txnlog.Stamp{Zxid: zxid, Time: tick})
	for _, transaction := range t.log.Transactions {
		if first := (txnlog.Stamp{Zxid: transaction.Zxid, Time: transaction.Time}); epochOf(first) == zxid>>32 {
			return max(due, t.clocks.latest(first))
		}
	}
	return due
}

// checkMissed demands that ticks are missed only if a later one was due, or if the last was later than the rule lets it be.
func (t *timetable) checkMissed(now scheduleState, f fire, at txnlog.Stamp) {
	t.verdict.Missed += f.Missed
	last := f.Tick.Add(time.Duration(f.Missed-1) * time.Minute)
	late := f.Ended.Sub(last)
	if told := t.shown[f.Ended.UTC()]; told == 0 || told > at.Zxid {
		t.accusef("the tick of %s was noted as missed at %v, which no clock of the ensemble had shown", last.UTC().Format(time.TimeOnly), f.Ended)
	}
	if late < time.Minute && (now.CatchUp || late <= now.StartWithin) {
		t.accusef("the tick of %s was noted as missed %v after its time", last.UTC().Format(time.TimeOnly), late)
	}
}

// checkDue demands that at the end no worker has waited beside what was due: the tick that is next, a run, or a lost attempt, which is noted.
// Each run that was accepted waits, or has begun.
func (t *timetable) checkDue() {
	if t.node == nil || !t.recovered() {
		return
	}
	for _, id := range slices.Sorted(maps.Keys(t.asked)) {
		ended := t.asked[id].first(history.Ended)
		goesOn := slices.Contains(t.state.Runs, acceptedRun{id}) || slices.ContainsFunc(t.begun, func(b *beginning) bool { return b.Run == id })
		if ended != nil && ended.Code == "OK" && !goesOn {
			t.accusef("run %s was accepted, and neither waits nor has begun", id)
		}
	}
	due := t.free()
	if t.state.Running == nil && len(t.state.Runs) == 0 {
		due = max(due, t.due(t.state.Next, t.log.Transactions[len(t.log.Transactions)-1].Zxid))
	}
	for _, p := range t.places {
		if !p.owned() {
			continue
		}
		since, until := max(due, t.clocks.latest(p.head)), t.quiet
		if p.Gone.Happened() {
			until = t.clocks.earliest(p.Gone)
		}
		if until > t.deadline(since, t.settings.Patience) {
			t.accusef("a worker waited for %v beside what was due; the next tick is %s", until.Since(since), t.state.Next.UTC().Format(time.TimeOnly))
		}
	}
}
