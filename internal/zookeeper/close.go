package zookeeper

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/go-zookeeper/zk"

	"github.com/sidekeeper/sidekeeper/internal/trace"
)

// Close gives up all the session owns and ends it. It returns when that is confirmed, or when the session has ended. What was made last goes
// first, since it may stand on what was made before: a delivery on the item that was taken for it, a member on the lock that guards it. What the
// ensemble refuses to delete goes with the session. One that was lost, or whose end cannot be told, is closed at the ensemble as soon as
// that can be reached, which is not waited for: so Close it once nobody takes what it owned for his own.
func (s *Session) Close(ctx context.Context) {
	defer s.closeLost()
	for _, alike := range s.ownedPaths() {
		if alike.members {
			for _, member := range alike.paths {
				_ = s.deleteOwn(ctx, member)
			}
			continue
		}
		for places := alike.paths; len(places) > 0; {
			n := fitting(places)
			s.deleteAll(ctx, places[:n])
			places = places[n:]
		}
	}
	select {
	case <-s.over.Done():
	default:
		s.hangUp()
	}
}

// A run is places that were made one after the other, or members.
type run struct {
	paths   []string
	members bool
}

// ownedPaths begins the end: the session may own nothing new. What was made last is first.
func (s *Session) ownedPaths() (runs []run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closing = true
	s.part()
	trace.Tell(trace.Step{Kind: trace.Closing, Session: s.id})
	paths := slices.SortedFunc(maps.Keys(s.places), func(a, b string) int { return cmp.Compare(s.places[b].number, s.places[a].number) })
	for _, path := range paths {
		member := s.places[path].member
		if !member {
			trace.Tell(trace.Step{Kind: trace.Leaving, Session: s.id, Place: path})
		}
		if last := len(runs) - 1; last < 0 || runs[last].members != member {
			runs = append(runs, run{members: member})
		}
		last := &runs[len(runs)-1]
		last.paths = append(last.paths, path)
	}
	return runs
}

// fitting is how many of the places one request of bounded size names, at least one.
func fitting(places []string) int {
	size := 0
	for i, place := range places {
		size += len(place)
		if i > 0 && size > maxPlaceData {
			return i
		}
	}
	return len(places)
}

// deleteAll deletes in one transaction, and one by one where that does not go.
func (s *Session) deleteAll(ctx context.Context, places []string) {
	if len(places) > 1 {
		operations := make([]operation, len(places))
		for i, place := range places {
			operations[i] = operation{kind: opDelete, path: place, number: anyVersion}
		}
		_, err := call(ctx, s, "multi", func(*zk.Conn) ([]result, error) { return s.multi(operations...) })
		if err == nil {
			places = nil
		}
	}
	for _, place := range places {
		_ = s.delete(ctx, place)
	}
}

// hangUp tells the ensemble that the session is over, if there is a connection to tell it on.
func (s *Session) hangUp() {
	s.mu.Lock()
	connected := s.connected
	s.mu.Unlock()
	if connected {
		s.quit()
	}
	s.lose(errClosed)
}

// quit closes the library's connection.
func (s *Session) quit() {
	if s.quitting.Swap(true) {
		<-s.quitted // and not on a mutex, for which virtual time does not wait
		return
	}
	defer close(s.quitted)
	s.conn.Close()
}
