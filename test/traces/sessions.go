package traces

import (
	"cmp"
	"path"
	"slices"
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
}

// A SessionTrace is what was done about one session.
type SessionTrace struct {
	Timeout time.Duration // as the ensemble granted it
	Steps   []SessionStep

	began time.Duration
	busy  map[string]bool // with what else than heartbeats: see place
}

// Sessions cuts out of a record what was done about each session that the code has heard of, those first of which there is most to say. All of
// them have ended.
func Sessions(lines []Line) (cut []SessionTrace) {
	timeouts, known := map[int64]time.Duration{}, map[int64]*SessionTrace{}
	for _, line := range lines {
		session := known[line.Session]
		switch {
		case line.Kind == born:
			timeouts[line.Session] = line.Timeout
		case line.Kind == trace.Opened:
			known[line.Session] = &SessionTrace{Timeout: timeouts[line.Session], began: line.Sent, busy: map[string]bool{"": true}}
			known[line.Session].Steps = known[line.Session].with(line)
		case session == nil || line.Kind == trace.Buried || ofHolds[line.Kind]:
		case line.Place != "":
			session.place(line)
		default:
			session.Steps = session.with(line)
			if line.Kind == ended {
				cut = append(cut, *session)
				delete(known, line.Session)
			}
		}
	}
	slices.SortStableFunc(cut, func(a, b SessionTrace) int { return -cmp.Compare(a.worth(), b.worth()) })
	return cut
}

// with is its steps and this one.
func (t SessionTrace) with(line Line) []SessionStep {
	kind := string(line.Kind)
	if line.Kind == ended {
		kind = "ended"
	}
	heartbeat := line.Kind == trace.Proved && len(t.busy) == 0
	return append(t.Steps, SessionStep{kind, t.since(line.Sent), t.since(line.Answered), t.since(line.Until), t.since(line.Clock), heartbeat})
}

// place takes in what was done with a place. Until there is one, the session may be one that reads for others. Then it is busy with a directory
// until the place that was asked for there is made or found, and with a place until that is deleted.
func (t SessionTrace) place(line Line) {
	delete(t.busy, "")
	switch line.Kind {
	case trace.Asked:
		t.busy[path.Dir(line.Place)] = true
	case trace.Made, trace.Found:
		delete(t.busy, path.Dir(line.Place))
	case trace.Leaving:
		t.busy[line.Place] = true
	case trace.Left:
		delete(t.busy, line.Place)
	}
}

func (t SessionTrace) since(at time.Duration) int64 {
	if at == 0 {
		return 0
	}
	return at.Microseconds() - t.began.Microseconds() + 1
}

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
