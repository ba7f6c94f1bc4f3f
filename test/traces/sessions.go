package traces

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/trace"
)

// A SessionStep is one step of a SessionTrace, in the words of SessionTrace.tla. Times are in microseconds of the sidecar's clock, which
// shows 1 when the session is asked for.
type SessionStep struct {
	Kind                  string
	Sent, Answered, Until int64
	Clock                 int64 // when the ensemble ended it
	Heartbeat             bool  // what was proved is a heartbeat for certain
	Before, From          int64 // of the session that proves it, too: when its newest transaction but one was sent, and its handshake was answered
}

// A SessionTrace is what was done about one session.
type SessionTrace struct {
	Timeout time.Duration // as the ensemble granted it
	Steps   []SessionStep

	began time.Duration
	busy  map[string]int // with what else than heartbeats, and how many hands each: see place
	other bool           // with what nobody tells of
}

// Sessions cuts out of a record what was done about each session that the code has heard of, those first of which there is most to say. All of
// them have ended.
func Sessions(lines []Line) (cut []SessionTrace) {
	timeouts, known, others := map[int64]time.Duration{}, map[int64]*SessionTrace{}, map[int64]*prober{}
	for _, line := range assured(thawed(lines)) {
		if others[line.Session] == nil {
			others[line.Session] = &prober{}
		}
		others[line.Session].take(line)
		session := known[line.Session]
		switch {
		case line.Kind == born:
			timeouts[line.Session] = line.Timeout
		case line.Kind == trace.Opened:
			known[line.Session] = &SessionTrace{Timeout: timeouts[line.Session], began: line.Sent, busy: map[string]int{"": 1}}
			known[line.Session].Steps = known[line.Session].with(line)
		case session == nil || line.Kind == trace.Buried || ofHolds[line.Kind]:
		case line.Place != "" && isClaim(line.Place): // which is no session's
		case line.Kind == elsewhere:
			session.other = true
		case line.Kind == condemned, line.Kind == trace.Replaced: // what becomes of it is nobody's promise
			cut = append(cut, *session)
			delete(known, line.Session)
		case line.Place != "":
			session.place(line)
		default:
			session.Steps = session.with(line)
			if by := others[line.By]; line.Kind == trace.Shared && by != nil {
				last := &session.Steps[len(session.Steps)-1]
				last.Before, last.From = session.since(by.before), session.since(by.from)
			}
			if line.Kind == ended {
				cut = append(cut, *session)
				delete(known, line.Session)
			}
		}
	}
	slices.SortStableFunc(cut, func(a, b SessionTrace) int { return -cmp.Compare(a.worth(), b.worth()) })
	return cut
}

// standstill is for how long nothing is told by processes that stand still, and within how long after it they have told what was over.
const standstill = time.Second

// thawed are the lines, of which those that say that a session is over stand before its end where the sidecar had stood still together with
// the ensemble, as a `sidekeeper dev` that is frozen: the ensemble may be quicker, and what was believed is over by the clock.
func thawed(lines []Line) []Line {
	lines = slices.Clone(lines)
	last, thaw := time.Duration(0), -standstill
	for i, line := range lines {
		if line.At-last >= standstill {
			thaw = line.At
		}
		last = line.At
		if line.Kind != ended || line.At-thaw >= standstill {
			continue
		}
		later := slices.IndexFunc(lines[i:], func(l Line) bool { return l.Kind == trace.Over && l.Session == line.Session })
		if later > 0 && lines[i+later].At-thaw < standstill {
			copy(lines[i+1:i+later+1], lines[i:i+later])
			lines[i] = Line{At: line.At, Kind: trace.Over, Session: line.Session}
		}
	}
	return lines
}

// assured are the lines, of which those that say that a session is awake say until when it must be valid.
func assured(lines []Line) []Line {
	lines, slumbers := slices.Clone(lines), map[int64]slumber{}
	for i, line := range lines {
		slumbers[line.Session], lines[i] = slumbers[line.Session].take(line)
	}
	return lines
}

// A slumber is whether a session sleeps, and until when those count on it who have asked meanwhile.
type slumber struct {
	asleep  bool
	assured time.Duration
}

// take takes in a line. That the session is awake says until when it must be valid.
func (s slumber) take(line Line) (slumber, Line) {
	switch {
	case line.Kind == trace.Slept:
		return slumber{asleep: true}, line
	case line.Kind == trace.Woken:
		line.Until = s.assured
		return slumber{}, line
	case s.asleep && line.Kind == trace.Promised && line.Token == 0:
		s.assured = max(s.assured, line.Clock+line.Until-composing)
	}
	return s, line
}

// with is its steps and this one.
func (t SessionTrace) with(line Line) []SessionStep {
	kind := string(line.Kind)
	if line.Kind == ended {
		kind = "ended"
	}
	heartbeat := line.Kind == trace.Proved && len(t.busy) == 0 && !t.other
	return append(t.Steps, SessionStep{
		Kind: kind, Sent: t.since(line.Sent), Answered: t.since(line.Answered), Until: t.since(line.Until), Clock: t.since(line.Clock),
		Heartbeat: heartbeat,
	})
}

// A prober is what one session can say of others: by its two newest transactions that count, and the handshake on which it was made.
type prober struct {
	from, before    time.Duration
	newest, decided time.Duration // when the newest transaction was sent and answered
}

// composing is how long it may take from when it was computed what is told until that is noted, where time goes by.
const composing = 50 * time.Millisecond

// never is later than anything that a trace tells of.
const never = 30 * 24 * time.Hour

func (v *prober) take(line Line) {
	switch line.Kind {
	case trace.Opened:
		*v = prober{from: line.Answered}
	case trace.Attached:
		*v = prober{from: never}
	case trace.Proved:
		if line.Sent >= v.decided {
			v.before, v.newest, v.decided = v.newest, line.Sent, line.Answered
		}
	}
}

// place takes in what was done with a place. Until there is one, the session may be one that reads for others. Then it is busy with each place
// that was asked for until that is made or found, with a directory in which one was not made until the next one is, and with a place that is
// given up until each hand that deletes it has its answer: a release and the end of the session may both do so.
func (t SessionTrace) place(line Line) {
	delete(t.busy, "")
	switch line.Kind {
	case trace.Asked:
		t.busy[line.Place]++
	case trace.Absent:
		delete(t.busy, line.Place)
		t.busy[path.Dir(line.Place)] = 1
	case trace.Made, trace.Found:
		delete(t.busy, path.Dir(line.Place))
		maps.DeleteFunc(t.busy, func(asked string, _ int) bool { return asked != line.Place && strings.HasPrefix(line.Place, asked) })
	case trace.Leaving:
		if line.Owner == 0 { // else it has gone with another transaction
			t.busy[line.Place]++
		}
	case trace.Left:
		if t.busy[line.Place]--; t.busy[line.Place] <= 0 {
			delete(t.busy, line.Place)
		}
	}
}

func (t SessionTrace) since(at time.Duration) int64 {
	if at == 0 {
		return 0
	}
	return min(max(0, at.Microseconds()-t.began.Microseconds()+1), mostTold)
}

const mostTold = 1<<31 - 1 // of TLC's numbers

// worth is how much there is to say: of sessions that nobody has given up most of all, and of those that have come back.
func (t SessionTrace) worth() int {
	worth := min(len(t.Steps), 50)
	for _, step := range t.Steps {
		switch step.Kind {
		case string(trace.Attached):
			worth += 10
		case string(trace.Closing):
			return worth
		case string(trace.Over):
			return worth + 100
		}
	}
	return worth
}
