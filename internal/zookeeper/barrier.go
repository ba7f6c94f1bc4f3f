package zookeeper

import (
	"context"
	"errors"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/sidekeeper/sidekeeper/recipes"
)

// A placeBarrier is what is known of what others ask of one place, in its node's data; see the package comment.
type placeBarrier struct {
	version int32   // of the data: the newest in which whoever has the place has found nothing that ends it
	since   instant // the barrier: no newer data had been committed by then
	asked   instant // when the newest heartbeat was sent that was answered for this place
	changed bool    // there is newer data
	inDoubt bool    // the newest heartbeat that was answered for this place has found other data, perhaps seen by now
}

// The barriers of a session are those of its places that bound the validity.
type barriers struct {
	placeBarriers map[string]*placeBarrier
	barrier       instant // the oldest of theirs
}

// mostChecks bounds a heartbeat, and the answer, with 13 bytes for each check if it fails.
const mostChecks = 256

// cover lets a place bound the session's validity; see life.
func (s *Session) cover(place string, version int32, since instant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	s.follow(s.life.cover(place, version, since, now), now)
}

// Seen implements recipes.Session. What the reader shows may be older than what was written or checked here.
func (s *Session) Seen(place string, version int32) { s.saw(place, version, 0) }

// WatchOwn implements recipes.Session. Somebody may write so often that no heartbeat finds what was seen just before: then the
// reader catches up first, and what it shows is a barrier itself.
func (s *Session) WatchOwn(ctx context.Context, place string) (recipes.Node, *recipes.Signal, func(), error) {
	var since instant
	if s.isInDoubt(place) {
		since = s.now()
		if err := s.CatchUp(ctx); err != nil {
			return recipes.Node{}, nil, nil, err
		}
	}
	node, changed, err := s.Watch(ctx, place)
	return node, changed, func() { s.saw(place, node.Version, since) }, err
}

func (s *Session) isInDoubt(place string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen := s.placeBarriers[place]
	return seen != nil && seen.inDoubt
}

// saw takes in what was seen of a place; see life.
func (s *Session) saw(place string, version int32, since instant) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.life.saw(place, version, since, s.now())
}

// Disregard implements recipes.Session.
func (s *Session) Disregard(place string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.uncover(place, s.now())
}

// recount finds the oldest barrier.
func (b *barriers) recount() {
	first := true
	for _, seen := range b.placeBarriers {
		if first || seen.since < b.barrier {
			b.barrier, first = seen.since, false
		}
	}
}

// promisesWithin is that of the session's life.
func (s *Session) promisesWithin(unasked instant) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.life.promisesWithin(unasked)
}

// A check is what a heartbeat asks of a place: whether its data are still of this version.
type check struct {
	session *Session
	place   string
	version int32
	seen    *placeBarrier
	gone    *recipes.Signal
}

// A checkList is what one heartbeat asks of places.
type checkList struct {
	checks            []check
	size              int // of the paths
	mostChecks, bytes int
}

// checks are those that the next heartbeat makes, of places that have not been asked for since the round began. With static
// proof it is a read, and asks for one place. The prober of others asks for theirs, too, but not for what was asked for lately.
func (s *Session) checks(round instant, with *sharedProof) []check {
	list := checkList{mostChecks: mostChecks, bytes: maxPlaceData}
	if s.proof.static {
		list.mostChecks = 1
	}
	s.addChecks(&list, round, func(*placeBarrier) bool { return true })
	lately := round.add(-s.interval * 3 / 4)
	for _, each := range with.othersOf(s) {
		list.mostChecks, list.bytes = mostSharedChecks, mostSharedBytes
		each.addChecks(&list, round, func(seen *placeBarrier) bool { return seen.since < lately })
	}
	return list.checks
}

// addChecks adds those of the session's places that are due, as far as there is room.
func (s *Session) addChecks(list *checkList, round instant, isDue func(*placeBarrier) bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for place, seen := range s.placeBarriers {
		if seen.changed || seen.asked >= round || !isDue(seen) {
			continue
		}
		if n := len(list.checks); n > 0 && (list.size+len(place) > list.bytes || n == list.mostChecks) {
			return
		}
		list.size += len(place)
		list.checks = append(list.checks, check{s, place, seen.version, seen, s.places[place].gone})
	}
}

// An answer is what a heartbeat was told of its checks: which hold, and which one does not, if one does not, and why.
type answer struct {
	held, refused []check
	why           error
}

// of is what was told of the checks of one session.
func (a answer) of(s *Session) answer {
	isAnothers := func(c check) bool { return c.session != s }
	a.held = slices.DeleteFunc(slices.Clone(a.held), isAnothers)
	a.refused = slices.DeleteFunc(slices.Clone(a.refused), isAnothers)
	return a
}

// take takes an answer to what was sent then. The lock is held.
func (s *Session) take(told answer, sent instant) {
	for _, c := range s.life.take(told, sent) {
		s.placeGone(c.place, c.gone)
	}
}

// errOld is what a server says that shows less than has been seen already.
var errOld = errors.New("older data")

// readBy is the place that a heartbeat asks for that no quorum sees, or the root.
func readBy(checks []check) string {
	if len(checks) == 0 {
		return "/"
	}
	return checks[0].place
}

// toldByRead is what the answer to such a heartbeat says, with at most one check.
func toldByRead(checks []check, request *ownRequest) (answer, error) {
	stat, err := request.stat()
	switch {
	case errors.Is(err, zk.ErrNoNode):
		return answer{refused: checks, why: recipes.ErrNoNode}, nil
	case err != nil || len(checks) == 0:
	case stat.Version > checks[0].version:
		return answer{refused: checks, why: recipes.ErrBadVersion}, nil
	case stat.Version < checks[0].version:
		return answer{refused: checks, why: errOld}, nil
	}
	return answer{held: checks}, err // which nobody takes if there is an error
}

// operationsOf is the transaction that makes the checks, or one of the root.
func operationsOf(checks []check) []operation {
	if len(checks) == 0 {
		return []operation{checkOf("/", anyVersion)}
	}
	operations := make([]operation, len(checks))
	for i, c := range checks {
		operations[i] = checkOf(c.place, c.version)
	}
	return operations
}

// toldByMulti is what the answer to such a transaction says. The leader makes the checks in their order until one does not hold: those before it
// do.
func toldByMulti(checks []check, request *ownRequest) (answer, error) {
	if request.err != nil {
		return answer{}, request.err
	}
	_, err := resultsIn(request.answer, operationsOf(checks))
	told := answer{}
	if err == nil {
		told.held = checks
	} else if refused, is := errors.AsType[*recipes.Refusal](err); is {
		err = refused.Err
		first := min(refused.Index, len(checks))
		told = answer{held: checks[:first], refused: checks[first:min(first+1, len(checks))], why: err}
	}
	return told, err
}
