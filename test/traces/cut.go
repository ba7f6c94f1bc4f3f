package traces

import (
	"maps"
	"path"
	"slices"

	"github.com/sidekeeper/sidekeeper/internal/trace"
)

// A LockStep is one step of a LockTrace, in the words of LockTrace.tla.
type LockStep struct {
	Kind   string
	Caller int // 0 if it is nobody of the sidecars'
	Place  int // the place of the log at which the node was made; 0 if there is none
	Token  int // the same, of the node whose transaction the fencing token is
}

// A LockTrace is what was done about one lock. A caller is a session, which has one place in a lock's queue at a time; callers that
// come when others have gone have their numbers.
type LockTrace struct {
	Lock    string
	Callers int
	Steps   []LockStep
}

// Locks cuts out of a record what was done about each lock.
func Locks(lines []Line) (cut []LockTrace) {
	queues := map[string]*lockQueue{}
	lines = inOrder(lines)
	for _, line := range lines {
		if line.Place == "" {
			for _, lock := range slices.Sorted(maps.Keys(queues)) {
				queues[lock].session(line)
			}
			continue
		}
		lock := path.Dir(line.Place)
		if queues[lock] == nil {
			queues[lock] = &lockQueue{
				LockTrace: LockTrace{Lock: lock},
				callers:   map[int64]int{}, places: map[string]int{}, tokens: map[int64]int{}, owners: map[string]int64{},
			}
		}
		queues[lock].place(line)
	}
	for _, lock := range slices.Sorted(maps.Keys(queues)) {
		queues[lock].add("end", 0, 0, 0)
		cut = append(cut, queues[lock].LockTrace)
	}
	return cut
}

// inOrder has a grant come before the end of its session that is told in the same instant: two goroutines tell of them. What is about to be
// asked for on a session that is over is left out, for nothing is written on it any more: if it is, the ensemble tells of what
// nobody has asked for.
func inOrder(lines []Line) []Line {
	over := map[int64]bool{}
	lines = slices.DeleteFunc(slices.Clone(lines), func(line Line) bool {
		over[line.Session] = over[line.Session] || line.Kind == trace.Over
		return line.Kind == trace.Asked && over[line.Session]
	})
	for i, line := range lines {
		for j := i; line.Kind == trace.Granted && j > 0 && lines[j-1].At == line.At && lines[j-1].Kind == trace.Over; j-- {
			lines[j-1], lines[j] = lines[j], lines[j-1]
		}
	}
	return lines
}

// A lockQueue is a LockTrace that is being cut.
type lockQueue struct {
	LockTrace

	log     int           // how many nodes were made and deleted
	callers map[int64]int // by session
	places  map[string]int
	tokens  map[int64]int
	owners  map[string]int64 // sessions by place
}

func (q *lockQueue) add(kind string, caller, place, token int) {
	q.Steps = append(q.Steps, LockStep{kind, caller, place, token})
}

// caller is the number of the session's, which is the first that is free if it has none.
func (q *lockQueue) caller(session int64) int {
	if number, known := q.callers[session]; known {
		return number
	}
	number := 1
	for slices.Contains(slices.Collect(maps.Values(q.callers)), number) {
		number++
	}
	q.callers[session], q.Callers = number, max(q.Callers, number)
	return number
}

// session takes in what was done with a session.
func (q *lockQueue) session(line Line) {
	caller, known := q.callers[line.Session]
	switch {
	case !known:
	case line.Kind == trace.Over, line.Kind == trace.Closing:
		q.add(string(line.Kind), caller, 0, 0)
	case line.Kind == ended:
		q.add("lost", caller, 0, 0)
		for place, owner := range q.owners {
			if owner == line.Session {
				q.log++
				delete(q.owners, place)
			}
		}
		delete(q.callers, line.Session)
	}
}

// place takes in what was done with a place.
func (q *lockQueue) place(line Line) {
	switch line.Kind {
	case created:
		q.log++
		q.places[line.Place], q.tokens[line.Token], q.owners[line.Place] = q.log, q.log, line.Session
		q.add("created", q.callers[line.Session], q.log, 0)
	case removed:
		q.log++
		delete(q.owners, line.Place)
		if line.Session == line.Owner {
			q.add("deleted", q.callers[line.Session], q.places[line.Place], 0)
		} else {
			q.add("taken", q.callers[line.Owner], q.places[line.Place], 0)
		}
	case trace.Granted:
		q.add("granted", q.callers[q.owners[line.Place]], q.places[line.Place], q.tokens[line.Token])
	case trace.Left:
		q.add("left", q.callers[line.Session], q.places[line.Place], 0)
		delete(q.callers, line.Session)
	default:
		q.add(string(line.Kind), q.caller(line.Session), q.places[line.Place], 0)
	}
}
