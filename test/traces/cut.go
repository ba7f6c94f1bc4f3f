package traces

import (
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/trace"
)

// Readers is above the number of each caller that excludes all others, and below those of readers.
const Readers = 100

// A LockStep is one step of a LockTrace, in the words of LockTrace.tla.
type LockStep struct {
	Kind   string
	Caller int // 0 if it is nobody of the sidecars'; a reader if it is above Readers
	Place  int // the place of the log at which the node was made; 0 if there is none
	Token  int // the same, of the node whose transaction the fencing token is
}

// ofHolds are the steps that services take with holds; they name a hold by its token.
var ofHolds = map[trace.Kind]bool{
	trace.Held: true, trace.Carried: true, trace.Promised: true, trace.Released: true, trace.Ended: true,
	trace.Status: true, trace.Unread: true, trace.Stopped: true, trace.Acknowledged: true, trace.Deserted: true, Heard: true,
}

// A LockTrace is what was done about one lock. A caller is a session, which has one place in a lock's queue at a time, or a claim; callers
// that come when others have gone have their numbers.
type LockTrace struct {
	Lock             string
	Writers, Readers int // how many there are at a time of those that exclude all others, and of readers
	Claims           int // how many there were
	Steps            []LockStep
}

// Locks cuts out of a record what was done about each lock.
func Locks(lines []Line) (cut []LockTrace) {
	queues, alive, condemnedOnes := map[string]*lockQueue{}, map[int64]time.Duration{}, map[int64]bool{}
	whole := true
	lines = inOrder(lines)
	for _, line := range lines {
		if line.Kind == trace.Opened || line.Kind == trace.Attached || line.Kind == trace.Proved || line.Kind == trace.Shared {
			alive[line.Session] = line.Until
		}
		condemnedOnes[line.Session] = condemnedOnes[line.Session] || line.Kind == condemned
		whole = whole && line.Kind != vanished
		if lock := path.Dir(line.Place); line.Place != "" && queues[lock] == nil {
			queues[lock] = &lockQueue{
				LockTrace: LockTrace{Lock: lock},
				callers:   map[int64]int{}, places: map[string]int{}, tokens: map[int64]int{}, owners: map[string]int64{},
				holds: map[int64]int64{}, live: map[int]bool{}, carried: map[int]bool{}, until: map[int]time.Duration{}, alive: alive,
				condemned: condemnedOnes,
				turns:     map[int]time.Duration{}, settled: map[int]bool{}, asleep: map[int64]bool{},
			}
		}
		for _, queue := range queues {
			queue.take(line)
		}
	}
	for _, lock := range slices.Sorted(maps.Keys(queues)) {
		if whole && !queues[lock].claimed() { // a claim outlives all callers
			queues[lock].add("end", 0, 0, 0)
		}
		cut = append(cut, queues[lock].LockTrace)
	}
	return cut
}

// inOrder has a grant come before the end of its session that is told in the same instant: two goroutines tell of them. What is about to be
// asked for on a session that is over is left out, for nothing is written on it any more, or nothing comes of it: if it does, the ensemble tells
// of what nobody has asked for.
func inOrder(lines []Line) []Line {
	over := map[int64]bool{}
	lines = slices.DeleteFunc(slices.Clone(lines), func(line Line) bool {
		over[line.Session] = over[line.Session] || line.Kind == trace.Over || line.Kind == ended
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
	owners  map[string]int64        // sessions by place
	holds   map[int64]int64         // sessions by token
	live    map[int]bool            // callers whose hold has not ended, or is told of on its lease's stream, which has not told that
	carried map[int]bool            // of those, the latter
	until   map[int]time.Duration   // when what a caller was told is over
	alive   map[int64]time.Duration // until when a session is, as far as its proof goes
	turns   map[int]time.Duration   // since when it is a place's turn
	settled map[int]bool            // places that were granted, or of which it was told that they are not
	asleep  map[int64]bool          // sessions

	condemned map[int64]bool // sessions that are ended by hand: nobody waits for who was told of them
}

// Clocks of callers are right within one percent.
const clocks = 100

// stuck is for how long a place may stand ahead of all that it excludes before it must have been granted.
const stuck = time.Minute

// expire has what a caller was told be over by then, which is by the sidecar's clock: where that is suspended, so are they.
func (q *lockQueue) expire(caller int, now time.Duration) {
	if until, told := q.until[caller]; told && until <= now {
		q.add("expires", caller, 0, 0)
		delete(q.until, caller)
	}
}

// pass has time go by: whoever has its turn should have been granted what it waits for.
func (q *lockQueue) pass(now time.Duration) {
	for path, session := range q.owners {
		place := q.places[path]
		if q.settled[place] || q.waits(path) {
			continue
		}
		since, known := q.turns[place]
		if !known {
			q.turns[place] = now
		} else if now > since+stuck {
			q.settled[place] = true
			q.add("still", q.callers[session], place, 0)
		}
	}
}

// waits says whether anybody stands ahead of a place whom it excludes.
func (q *lockQueue) waits(place string) bool {
	for other := range q.owners {
		if q.places[other] < q.places[place] && !(isReader(other) && isReader(place)) {
			return true
		}
	}
	return false
}

// isReader says whether the place of this path, or of a path that begins so, is a reader's, as Curator names it.
func isReader(place string) bool { return strings.Contains(place, "-__READ__") }

// hold takes in what a service has done with a hold.
func (q *lockQueue) hold(line Line) {
	session := line.Session
	if line.Token != 0 {
		session = q.holds[line.Token]
	}
	caller, known := q.callers[session]
	if !known || line.Token == 0 && line.Until == 0 { // nothing is said of a lease that is over
		return
	}
	if line.Kind == Heard && (line.Until == 0 || !q.live[caller]) { // nobody counts on that
		return
	}
	q.carried[caller] = q.carried[caller] || line.Kind == trace.Carried
	if q.settles(caller, line.Kind) {
		delete(q.live, caller)
	}
	kind := string(line.Kind)
	switch {
	case line.Kind == Heard && line.Token == 0:
		kind = "lease_heard"
	case line.Kind == trace.Promised && line.Until > 0:
		kind = q.tells(caller, line)
	}
	q.add(kind, caller, 0, 0)
}

// tells takes in for how long a caller is told that it holds, or that its lease is valid.
func (q *lockQueue) tells(caller int, line Line) (kind string) {
	if q.live[caller] { // what is told of the lease later is not told of the hold
		q.until[caller] = max(q.until[caller], line.Clock+line.Until+line.Until/clocks)
	}
	if line.Token == 0 {
		return "lease_told"
	}
	return "hold_told"
}

// settles says whether nothing that is told after this step counts for the hold: of one that is told of on its lease's stream, what is told of
// the lease counts until its end is.
func (q *lockQueue) settles(caller int, kind trace.Kind) bool {
	switch kind {
	case trace.Released, trace.Status, trace.Unread:
		return true
	case trace.Ended:
		return !q.carried[caller]
	}
	return false
}

func (q *lockQueue) take(line Line) {
	q.pass(line.At)
	switch {
	case line.Place == "":
		q.session(line)
	case path.Dir(line.Place) != q.Lock:
	case isClaim(line.Place):
		q.claim(line)
	default:
		q.place(line)
	}
	q.pass(line.At)
}

func (q *lockQueue) add(kind string, caller, place, token int) {
	q.Steps = append(q.Steps, LockStep{kind, caller, place, token})
}

// caller is the number of the session's, which is the first that is free if it has none, of readers or of the others.
func (q *lockQueue) caller(session int64, reads bool) int {
	if number, known := q.callers[session]; known && reads == (number > Readers) {
		return number
	}
	base, most := 0, &q.Writers
	if reads {
		base, most = Readers, &q.Readers
	}
	number := base + 1
	for slices.Contains(slices.Collect(maps.Values(q.callers)), number) {
		number++
	}
	q.callers[session], *most = number, max(*most, number-base)
	return number
}

// session takes in what was done with a session.
func (q *lockQueue) session(line Line) {
	if ofHolds[line.Kind] {
		q.hold(line)
		return
	}
	caller, known := q.callers[line.Session]
	switch {
	case line.Kind == trace.Slept && slices.Contains(slices.Collect(maps.Values(q.owners)), line.Session):
		q.add("slept", caller, 0, 0)
	case line.Kind == trace.Slept, line.Kind == trace.Woken:
		q.asleep[line.Session] = line.Kind == trace.Slept
	case !known:
	case line.Kind == trace.Over, line.Kind == trace.Closing, line.Kind == trace.Buried, line.Kind == died:
		q.add(string(line.Kind), caller, 0, 0)
	case line.Kind == ended:
		if q.condemned[line.Session] {
			line.Clock = max(line.Clock, q.until[caller])
		}
		q.expire(caller, line.Clock)
		if q.asleep[line.Session] && !q.live[caller] { // it does not know yet, and waits for nothing any more
			q.add(string(trace.Over), caller, 0, 0)
		}
		q.add("lost", caller, 0, 0)
		for place, owner := range q.owners {
			if owner == line.Session {
				q.log++
				delete(q.owners, place)
			}
		}
		q.forget(line.Session)
	}
}

// forget has a caller gone.
func (q *lockQueue) forget(session int64) {
	delete(q.until, q.callers[session])
	delete(q.live, q.callers[session])
	delete(q.carried, q.callers[session])
	delete(q.callers, session)
	maps.DeleteFunc(q.holds, func(_, holder int64) bool { return holder == session })
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
		q.expire(q.callers[line.Owner], line.Clock)
		if line.Session == line.Owner {
			q.add("deleted", q.callers[line.Session], q.places[line.Place], 0)
		} else {
			q.add("taken", q.callers[line.Owner], q.places[line.Place], 0)
		}
	case trace.Granted:
		session, kind := q.owners[line.Place], "granted"
		if line.Clock > q.alive[session] {
			kind = "granted late"
		}
		if _, again := q.holds[line.Token]; again && kind == "granted" {
			return // a schedule's worker looks again at its place, which is the first, until a tick is due
		}
		q.holds[line.Token], q.live[q.callers[session]] = session, true
		q.settled[q.places[line.Place]] = true
		q.add(kind, q.callers[session], q.places[line.Place], q.tokens[line.Token])
	case trace.Left:
		if q.callers[line.Session] == 0 {
			return
		}
		q.add("left", q.callers[line.Session], q.places[line.Place], 0)
		q.forget(line.Session)
	case trace.Asked:
		q.add("asked", q.caller(line.Session, isReader(line.Place)), 0, 0)
	default:
		if caller, known := q.callers[line.Session]; known { // else it is about what went with its session, before the sidecar heard of that
			q.add(string(line.Kind), caller, q.places[line.Place], 0)
		}
	}
}
