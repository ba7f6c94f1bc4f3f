package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/support/ensemble"
	"github.com/sidekeeper/sidekeeper/test/support/link"
)

// An outsider sees and changes what the sessions do whose replies are cut: it has another way to the server.
type outsider struct {
	*testing.T
	*Client
}

func newOutsider(t *testing.T, e *ensemble.Ensemble) outsider {
	t.Helper()
	return outsider{t, newClient(t, e, func(c *Config) { c.Servers = []string{e.Server(1).RealAddress()} })}
}

// sees is what lies in a directory now: names, data and owners.
func (o outsider) sees(dir string) string {
	o.Helper()
	if err := o.CatchUp(o.Context()); err != nil {
		o.Fatal(err)
	}
	names, err := o.Children(o.Context(), dir)
	if err != nil && !errors.Is(err, recipes.ErrNoNode) {
		o.Fatal(err)
	}
	slices.Sort(names)
	var seen []string
	for _, name := range names {
		node, err := o.Get(o.Context(), dir+"/"+name)
		if err != nil {
			o.Fatal(err)
		}
		seen = append(seen, fmt.Sprintf("%s %s %x", name, node.Data, node.Owner))
	}
	return strings.Join(seen, ", ")
}

func (o outsider) expect(dir, want string) {
	o.Helper()
	if got := o.sees(dir); got != want {
		o.Fatalf("there is %q, want %q", got, want)
	}
}

// cutIn is one of the ways to cut, of requests of this kind about what lies in a directory.
func cutIn(l *link.Link, way int, opcode link.Opcode, dir string, times int) *link.Trap {
	cut := l.CutReply
	if way%4 == 3 {
		cut = l.CutRequest
	}
	match := link.Is(opcode)
	return cut(func(f link.Frame) bool { return match(f) && strings.HasPrefix(f.Path(), dir+"/") }, times)
}

// guard is the place of a session of the outsider's below a directory. Another place keeps the ensemble from deleting what is empty.
func (o outsider) guard(dir string) recipes.Guard {
	o.Helper()
	holder, err := o.Open(o.Context(), 0)
	if err != nil {
		o.Fatal(err)
	}
	o.Cleanup(func() { holder.Close(context.Background()) })
	var places [2]recipes.Enqueued
	for i := range places {
		if places[i], err = holder.Enqueue(o.Context(), dir+"/locks", "-lock-", nil); err != nil {
			o.Fatal(err)
		}
	}
	return recipes.Guard{Path: dir + "/locks/" + places[1].Name}
}

// testGuardedCuts has the guard of a member go while a session does not know what became of the joining. Whoever was made before is a member,
// and known to be one; nobody is made after.
func testGuardedCuts(t *testing.T, e *ensemble.Ensemble, c *Client) {
	const dir = "/sidekeeper/guarded-cuts"
	o, s := newOutsider(t, e), openSession(t, c)
	for way := range 4 { // three cut the reply, one the request
		guard := o.guard(dir)
		cut, held := cutAndHold(e.Server(1).ClientLink(), way, link.Multi, dir)
		answer := make(chan error, 1)
		go func() {
			_, _, err := s.Create(t.Context(), dir+"/m", []byte("mine"), guard)
			answer <- err
		}()
		await(t, "the cut", patience, cut.Sprung())
		if _, err := o.Commit(t.Context(), recipes.Delete(guard.Path, -1)); err != nil {
			t.Fatal(err)
		}
		held.Release()
		if err := <-answer; way%4 < 3 && err != nil || way%4 == 3 && !errors.Is(err, recipes.ErrGuardLost) {
			t.Errorf("way %d: %v", way, err)
		}
		want := map[bool]string{true: fmt.Sprintf("locks  0, m mine %x", s.id), false: "locks  0"}[way%4 < 3]
		o.expect(dir, want)
		s.Delete(t.Context(), dir+"/m")
	}
}

// testPlacesCuts cuts replies and requests while a session takes places in several queues at once. It has all of them then, and no others stand.
func testPlacesCuts(t *testing.T, e *ensemble.Ensemble, c *Client) {
	const dir = "/sidekeeper/places-cuts"
	o, s := newOutsider(t, e), openSession(t, c)
	cuts := 0
	for round := 0; cuts < 40; round++ {
		var ends []recipes.QueueEnd
		for i := range 1 + round%16 {
			ends = append(ends, recipes.QueueEnd{Dir: fmt.Sprintf("%s/%s-%d", dir, strings.Repeat("long", 200), i), Marker: "-lock-"})
		}
		trap := cutIn(e.Server(1).ClientLink(), round, link.Multi, dir, 1+round%3)
		made, err := s.EnqueueAll(t.Context(), ends, []byte("1"))
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		for i, end := range ends {
			o.expect(end.Dir, fmt.Sprintf("%s 1 %x", made[i].Name, s.id))
			if place, before := made[i].Name, made[0].Name; place[:len(place)-sequenceSize+1] != before[:len(before)-sequenceSize+1] {
				t.Fatalf("round %d: %s beside %s", round, place, before)
			}
		}
		for i, end := range ends {
			s.Dequeue(t.Context(), end.Dir+"/"+made[i].Name)
			o.expect(end.Dir, "")
		}
		trap.Release()
		cuts += trap.Count()
	}
	if s.Err() != nil || s.bytes != 0 || len(s.places) != 0 {
		t.Errorf("the session: %v, %d bytes", s.Err(), s.bytes)
	}
}

// testMemberCuts cuts replies and requests of each kind, a thousand in all, while a member comes, changes and goes.
func testMemberCuts(t *testing.T, e *ensemble.Ensemble, c *Client) {
	const dir = "/sidekeeper/member-cuts"
	kinds := []link.Opcode{link.Multi, link.SetData, link.Delete, link.Exists, link.CreateContainer}
	o, s := newOutsider(t, e), openSession(t, c)
	guard := o.guard(dir)
	cuts := 0
	for round := 0; cuts < 1000; round++ {
		trap := cutIn(e.Server(1).ClientLink(), round/len(kinds), kinds[round%len(kinds)], dir, 1+round%3)
		group := dir + "/group"
		if kinds[round%len(kinds)] == link.CreateContainer {
			group = fmt.Sprintf("%s/made-%d/group", dir, round)
		}
		guards := []recipes.Guard{guard}[:round/2%2]
		made, gone, err := s.Create(t.Context(), group+"/m", []byte("1"), guards...)
		if err != nil || made.Owner != s.id {
			t.Fatalf("round %d: created %+v, %v", round, made, err)
		}
		o.expect(group, fmt.Sprintf("m 1 %x", s.id))
		updated, err := s.Update(t.Context(), group+"/m", []byte("2"), made.Version, guards...)
		for done := made.Version + 1; errors.Is(err, recipes.ErrBadVersion); done++ { // the reply was lost
			updated, err = s.Update(t.Context(), group+"/m", []byte("2"), done, guards...)
		}
		if err != nil || updated.Version <= made.Version || updated.Czxid != made.Czxid {
			t.Fatalf("round %d: updated %+v to %+v, %v", round, made, updated, err)
		}
		o.expect(group, fmt.Sprintf("m 2 %x", s.id))
		select {
		case <-gone.Done():
			t.Fatalf("round %d: gone", round)
		default:
		}
		s.Delete(t.Context(), group+"/m")
		o.expect(group, "")
		trap.Release()
		cuts += trap.Count()
	}
	if s.Err() != nil || s.bytes != 0 || len(s.places) != 0 {
		t.Errorf("the session: %v, %d bytes", s.Err(), s.bytes)
	}
	t.Logf("%d cuts", cuts)
}

// testStolenNames has a name be another session's while a session does not know what became of its own request.
func testStolenNames(t *testing.T, e *ensemble.Ensemble, c *Client) {
	const dir, path = "/sidekeeper/stolen", "/sidekeeper/stolen/m"
	o := newOutsider(t, e)
	thief, err := o.Open(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer thief.Close(t.Context())
	for round, theft := range thefts {
		t.Run(theft.name, func(t *testing.T) {
			for way := range 4 { // three cut the reply, one the request
				s := openSession(t, c)
				if theft.opcode != link.Multi {
					if _, _, err := s.Create(t.Context(), path, []byte("mine")); err != nil {
						t.Fatal(err)
					}
				}
				cut, held := cutAndHold(e.Server(1).ClientLink(), way+3*(round%2), theft.opcode, dir)
				answer := make(chan error, 1)
				go func() { answer <- theft.try(t.Context(), s, path) }()
				await(t, "the cut", patience, cut.Sprung())
				if _, err := o.Commit(t.Context(), recipes.Delete(path, -1)); err != nil && !errors.Is(err, recipes.ErrNoNode) {
					t.Fatal(err)
				}
				stolen, _, err := thief.Create(t.Context(), path, []byte("theirs"))
				if err != nil {
					t.Fatal(err)
				}
				held.Release()
				if err := <-answer; !errors.Is(err, theft.want) {
					t.Errorf("%v, want %v", err, theft.want)
				}
				s.Close(t.Context())
				o.expect(dir, fmt.Sprintf("m theirs %x", thief.id))
				if node, err := o.Get(t.Context(), path); err != nil || node.Czxid != stolen.Czxid || node.Version != stolen.Version {
					t.Errorf("it was %+v, and is %+v, %v", stolen, node, err)
				}
				thief.Delete(t.Context(), path)
				o.expect(dir, "")
			}
		})
	}
}

var thefts = []struct {
	name   string
	opcode link.Opcode
	try    func(ctx context.Context, s *Session, path string) error
	want   error
}{
	{"a member that may have been created", link.Multi, func(ctx context.Context, s *Session, path string) error {
		_, _, err := s.Create(ctx, path, []byte("mine"))
		return err
	}, recipes.ErrExists},
	{"a member that may have been updated", link.SetData, func(ctx context.Context, s *Session, path string) error {
		_, err := s.Update(ctx, path, []byte("mine"), memberVersion)
		return err
	}, recipes.ErrNoNode},
	{"a member that may have been deleted", link.Delete, func(ctx context.Context, s *Session, path string) error {
		s.Delete(ctx, path)
		return nil
	}, nil},
}

// cutAndHold cuts one request of this kind, and holds the replies to all transactions after that.
func cutAndHold(l *link.Link, way int, opcode link.Opcode, dir string) (cut, held *link.Trap) {
	after, match := false, link.Is(opcode) // matching is one at a time
	matches := func(f link.Frame) bool {
		matched := match(f) && strings.HasPrefix(f.Path(), dir+"/")
		after = after || matched
		return matched
	}
	if way%4 == 3 {
		cut = l.CutRequest(matches, 1)
	} else {
		cut = l.CutReply(matches, 1)
	}
	return cut, l.HoldReply(func(f link.Frame) bool { return after && f.Opcode == link.Multi }, -1)
}
