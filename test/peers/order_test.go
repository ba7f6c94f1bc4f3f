package peers

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
)

// A lineman is one contender in a line.
type lineman struct {
	*peer

	id     string
	leaves bool
}

func TestMixedContendersAreServedInTheOrderTheyCame(t *testing.T) {
	on(t, func(t *testing.T, s stage) {
		peers, session := s.all(t), s.look(t)
		peers["zookeeper"] = s.contenders(t, "zookeeper")
		for i, crowds := range [][]crowd{everybody["mutexes"], everybody["mutexes"], withWriteLock} {
			path := fmt.Sprint(lockRoot, "line-", i)
			line := lineUp(t, peers, session, path, crowds)
			for i, one := range line {
				if one.leaves && i > 0 {
					expect(t, one.peer, "left", "leave", one.id)
				}
			}
			serve(t, slices.DeleteFunc(line, func(one lineman) bool { return one.leaves }))
		}
	})
}

// lineUp puts three contenders of each library behind a holder in an order drawn by lot, one after the other. One of each
// will leave, of the libraries that have a way to.
func lineUp(t *testing.T, peers map[string]*peer, session *zk.Conn, path string, crowds []crowd) (line []lineman) {
	t.Helper()
	for _, crowd := range crowds {
		for recipe := range crowd.recipes {
			for i := range 3 {
				one := lineman{peers[crowd.library], fmt.Sprintf("%s-%s-%d", path, crowd.library, i), i == 2 && recipe != "lock"}
				expect(t, one.peer, "made", "make", one.id, recipe, path)
				line = append(line, one)
			}
		}
	}
	rand.Shuffle(len(line), func(i, j int) { line[i], line[j] = line[j], line[i] })
	first := slices.IndexFunc(line, func(one lineman) bool { return !one.leaves })
	line[0], line[first] = line[first], line[0]
	for i, one := range line {
		expect(t, one.peer, "asked", "ask", one.id)
		awaitPlaces(t, session, path, i+1)
	}
	return line
}

// awaitPlaces returns when so many have a place.
func awaitPlaces(t *testing.T, session *zk.Conn, path string, want int) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; {
		children, _, changed, err := session.ChildrenW(path)
		if err == nil && len(children) == want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: %d places, %v; want %d", path, len(children), err, want)
		}
		select {
		case <-changed:
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// serve releases the lock of each in turn, and looks that nobody else has it meanwhile.
func serve(t *testing.T, line []lineman) {
	t.Helper()
	for i, one := range line {
		expect(t, one.peer, "held", "granted", one.id, patience.Milliseconds())
		for _, later := range line[i+1:] {
			expect(t, later.peer, "waits", "granted", later.id, 0)
		}
		expect(t, one.peer, "released", "release", one.id)
	}
}
