package traces

import (
	"path"
	"strings"

	"github.com/sidekeeper/sidekeeper/internal/trace"
)

// isClaim says whether the place of this path is a claim's. It belongs to no session: the session that has made it may end.
func isClaim(place string) bool { return strings.Contains(path.Base(place), "-claim-") }

// claim takes in what was done with the place of a claim. For the model, a claim is a caller of its own that is never lost. It asks for its
// place as the ensemble makes that, and gives it up as that goes, regardless of why. So the trace shows that its grant, and those of all
// others, come in their turn. It does not show that the claim's time was over: Claim.tla does.
func (q *lockQueue) claim(line Line) {
	session, stands := q.owners[line.Place]
	switch {
	case line.Kind == created:
		line.Session = int64(-1 - q.log) // of none, and of no other claim
		caller := q.caller(line.Session, isReader(line.Place))
		q.add("asked", caller, 0, 0)
		q.place(line)
		q.add("made", caller, q.log, 0)
		q.settled[q.log] = true // its sidecar may have gone: nothing says that it is granted in time
		q.Claims++
	case !stands:
	case line.Kind == trace.Granted:
		line.Clock = 0 // no session's proof counts
		q.place(line)
	case line.Kind == removed:
		line.Owner, line.Session = session, session
		caller, place := q.callers[session], q.places[line.Place]
		q.add("leaving", caller, place, 0)
		q.place(line)
		q.add("left", caller, place, 0)
		q.forget(session)
	}
}

// claimed says whether a claim stands.
func (q *lockQueue) claimed() bool {
	for place := range q.owners {
		if isClaim(place) {
			return true
		}
	}
	return false
}
