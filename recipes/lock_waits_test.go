package recipes_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/support/standin"
)

var waits = recipes.Waits{Path: "/waits", Lock: func(name string) (recipes.Lock, bool) {
	return recipes.Lock{Path: "/locks/" + name}, true
}}

// A knot is sessions in the queues of locks.
type knot struct {
	world
	sessions []*standin.Session
	queues   map[string][]knotted
}

// A knotted is one session in a queue.
type knotted struct {
	session int
	mode    recipes.Mode
}

func (k *knot) stands(session int, lock string, mode recipes.Mode) {
	k.Helper()
	for len(k.sessions) <= session {
		k.sessions = append(k.sessions, k.session())
	}
	_, err := recipes.Lock{Path: "/locks/" + lock}.Join(k.living, k.sessions[session], mode, recipes.About{Owner: fmt.Sprint(session)})
	if err != nil {
		k.Fatal(err)
	}
	k.queues[lock] = append(k.queues[lock], knotted{session, mode})
}

func (k *knot) publishes(session int, locks ...string) {
	k.Helper()
	of := k.sessions[session]
	waiting := recipes.Waiting{Lease: fmt.Sprintf("%08x", session), Locks: locks, Asks: locks}
	if _, err := waits.Publish(k.living, of, of.Key().ID, waiting); err != nil {
		k.Fatal(err)
	}
}

func (k *knot) explained(names ...string) *recipes.Explanation {
	k.Helper()
	explained, err := waits.Explain(k.living, k.NewReader(), names)
	if err != nil {
		k.Fatal(err)
	}
	return explained
}

func circlesIn(explained *recipes.Explanation) string {
	var all []string
	for _, circle := range explained.Cycles {
		var links []string
		for i := range circle {
			link := &circle[i]
			links = append(links, link.Contender.Owner+" for "+link.Lock)
		}
		all = append(all, strings.Join(links, ", "))
	}
	return strings.Join(all, "; ")
}

func TestACircleIsWhoeverWaitsForOneAheadThatWaitsForItInTurn(t *testing.T) {
	const exclusive, read, write = recipes.Exclusive, recipes.Read, recipes.Write
	for _, test := range []struct {
		name string
		tie  func(*knot)
		want string
	}{
		{"two that each hold what the other waits for", func(k *knot) {
			k.stands(0, "a", exclusive)
			k.stands(1, "b", exclusive)
			k.stands(0, "b", exclusive)
			k.stands(1, "a", exclusive)
			k.publishes(0, "b")
			k.publishes(1, "a")
		}, "0 for b, 1 for a"},
		{"readers do not wait for each other", func(k *knot) {
			k.stands(0, "a", read)
			k.stands(1, "b", exclusive)
			k.stands(0, "b", exclusive)
			k.stands(1, "a", read)
			k.publishes(0, "b")
			k.publishes(1, "a")
		}, ""},
		{"a writer waits for readers, and readers for it", func(k *knot) {
			k.stands(0, "a", read)
			k.stands(1, "b", write)
			k.stands(0, "b", read)
			k.stands(1, "a", write)
			k.publishes(0, "b")
			k.publishes(1, "a")
		}, "0 for b, 1 for a"},
		{"one that waits behind another that waits", func(k *knot) {
			k.stands(0, "a", exclusive)
			k.stands(1, "b", exclusive)
			k.stands(2, "b", exclusive)
			k.stands(0, "b", exclusive) // behind 2, which waits for a
			k.stands(2, "a", exclusive)
			k.publishes(0, "b")
			k.publishes(2, "a", "b")
		}, "0 for b, 2 for a"},
		{"what was published and is not so any more", func(k *knot) {
			k.stands(0, "a", exclusive)
			k.stands(1, "b", exclusive)
			k.stands(1, "a", exclusive)
			k.publishes(0, "b")
			k.publishes(1, "a")
		}, ""},
		{"one that somebody else has published", func(k *knot) {
			k.stands(0, "a", exclusive)
			k.stands(1, "b", exclusive)
			k.stands(0, "b", exclusive)
			k.stands(1, "a", exclusive)
			k.publishes(0, "b")
			waiting := recipes.Waiting{Lease: "00000001", Locks: []string{"a"}}
			if _, err := waits.Publish(k.living, k.sessions[0], k.sessions[1].Key().ID, waiting); err != nil {
				k.Fatal(err)
			}
		}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			inBubble(t, func(w world) {
				k := &knot{world: w, queues: map[string][]knotted{}}
				test.tie(k)
				if got := circlesIn(k.explained("a")); got != test.want {
					t.Errorf("got %q, want %q", got, test.want)
				}
			})
		})
	}
}

func TestACircleIsFoundExactlyWhereOneIs(t *testing.T) {
	found := 0
	for seed := range uint64(200) {
		inBubble(t, func(w world) {
			k := &knot{world: w, queues: map[string][]knotted{}}
			names := k.tieAtRandom(rand.New(rand.NewPCG(seed, 0)))
			explained := k.explained(names...)
			inCircle := map[int64]bool{}
			for _, circle := range explained.Cycles {
				found++
				for i := range circle {
					link := &circle[i]
					inCircle[link.Session] = true
					if next := circle[(i+1)%len(circle)].Session; next != link.Next {
						t.Fatalf("seed %d: a link leads to %x and not to %x", seed, link.Next, next)
					}
				}
			}
			for i, session := range k.sessions {
				id := session.Key().ID
				circle, err := waits.CircleOf(k.living, k.NewReader(), id, names)
				if want := k.waitsForItself(i); err != nil || want != inCircle[id] || want != (circle != nil) {
					t.Errorf("seed %d: in a circle %v, explained as %v, found for itself %v, %v", seed, want, inCircle[id], circle != nil, err)
				}
			}
		})
	}
	t.Logf("%d circles", found)
	if found < 50 {
		t.Error("too little happens")
	}
}

// tieAtRandom has six sessions stand in some of five queues each.
func (k *knot) tieAtRandom(dice *rand.Rand) (names []string) {
	waiting := map[int][]string{}
	for range 14 {
		session, lock := dice.IntN(6), fmt.Sprint(dice.IntN(5))
		queue := k.queues[lock]
		for _, other := range queue {
			if other.session == session {
				session = -1
			}
		}
		if session < 0 {
			continue
		}
		k.stands(session, lock, recipes.Exclusive)
		if len(queue) > 0 {
			waiting[session] = append(waiting[session], lock)
		}
	}
	for session, locks := range waiting {
		k.publishes(session, locks...)
	}
	for name := range k.queues {
		names = append(names, name)
	}
	return names
}

// waitsForItself follows from queue to queue, by the queues as they were made.
func (k *knot) waitsForItself(session int) bool {
	reached, next := map[int]bool{}, []int{session}
	for ; len(next) > 0; next = next[1:] {
		for _, queue := range k.queues {
			for own, of := range queue {
				for _, ahead := range queue[:own] {
					if of.session == next[0] && !reached[ahead.session] {
						reached[ahead.session] = true
						next = append(next, ahead.session)
					}
				}
			}
		}
	}
	return reached[session]
}

func TestOfACircleWhoeverAskedAndBeganToWaitLastClosesIt(t *testing.T) {
	circle := []recipes.Link{
		{Session: 1, Contender: recipes.Contender{Token: 7}, Asks: true},
		{Session: 2, Contender: recipes.Contender{Token: 9}},
		{Session: 3, Contender: recipes.Contender{Token: 8}, Asks: true},
	}
	for session, want := range map[int64]bool{1: false, 2: false, 3: true} {
		if got := recipes.Closes(session, circle); got != want {
			t.Errorf("session %d closes it: %v", session, got)
		}
	}
	changed := append([]recipes.Link(nil), circle...)
	changed[1].Contender.Token = 10
	if !recipes.Same(circle, circle) || recipes.Same(circle, changed) || recipes.Same(nil, circle) {
		t.Error("circles are told apart wrongly")
	}
}
