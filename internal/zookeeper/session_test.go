package zookeeper

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/support/ensemble"
	"github.com/sidekeeper/sidekeeper/test/support/link"
)

func TestASession(t *testing.T) {
	e := startEnsemble(t, ensemble.Options{Servers: 1, ContainerCheck: 100 * time.Millisecond, MaxClientConnections: 70})
	link1 := e.Server(1).ClientLink()
	c := newClient(t, e)

	t.Run("owns what it enqueues, until it dequeues it", func(t *testing.T) {
		s := openSession(t, c)
		path := enqueue(t, s, "/sidekeeper/a/b")
		node, changed, err := s.Watch(t.Context(), path)
		if err != nil || !s.Owns(node) || node.Czxid == 0 || string(node.Data) != "{}" {
			t.Fatalf("node %+v, %v", node, err)
		}
		s.Dequeue(t.Context(), path)
		await(t, "the watch", 5*time.Second, changed.Done())
		if _, err := s.Get(t.Context(), path); !errors.Is(err, recipes.ErrNoNode) {
			t.Errorf("after Dequeue: %v", err)
		}
	})
	t.Run("drops everything when it is closed", func(t *testing.T) {
		s := openSession(t, c)
		var paths []string
		for range 40 {
			paths = append(paths, enqueue(t, s, "/sidekeeper/closing"))
		}
		s.Close(t.Context())
		for _, path := range paths {
			if _, err := c.Get(t.Context(), path); !errors.Is(err, recipes.ErrNoNode) {
				t.Errorf("%s: %v", path, err)
			}
		}
		if s.ValidFor() != 0 || !errors.Is(s.Err(), recipes.ErrSessionEnded) {
			t.Errorf("valid for %v, %v", s.ValidFor(), s.Err())
		}
	})
	t.Run("gives up what it made last first when it is closed", func(t *testing.T) {
		look := openSession(t, c)
		changed := func(dir string) int64 {
			stat, err := look.inspect(t.Context(), dir)
			if err != nil {
				t.Fatal(err)
			}
			return stat.Pzxid
		}
		join := func(s *Session, dir string) {
			if _, _, err := s.Create(t.Context(), dir+"/member", []byte("{}")); err != nil {
				t.Fatal(err)
			}
		}
		taken, place, guarded := "/sidekeeper/taken", "/sidekeeper/delivery", "/sidekeeper/guarded"
		for _, dir := range []string{taken, place, guarded} {
			enqueue(t, look, dir) // so that the ensemble keeps it
		}
		s := openSession(t, c)
		join(s, taken)
		enqueue(t, s, place)
		join(s, guarded)
		s.Close(t.Context())
		if order := []int64{changed(guarded), changed(place), changed(taken)}; !slices.IsSorted(order) {
			t.Errorf("the member, the place and what that stands on went in this order: %v", order)
		}
	})
	t.Run("does not end when somebody takes it over and goes", func(t *testing.T) {
		s := openSession(t, c)
		path := enqueue(t, s, "/sidekeeper/moved")
		for range 5 {
			takeOver(t, e.Server(1).RealAddress(), s.id, false)
			if err := s.flush(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if node, err := s.Get(t.Context(), path); err != nil || !s.Owns(node) {
			t.Errorf("own node: %+v, %v", node, err)
		}
	})
	t.Run("ends once when it is expired by force, and never comes back", func(t *testing.T) {
		s := openSession(t, c)
		path := enqueue(t, s, "/sidekeeper/expired")
		id := s.id
		for range 10 { // it may take itself back before it is closed
			takeOver(t, e.Server(1).RealAddress(), id, true)
			if s.flush(t.Context()) != nil {
				break
			}
		}
		await(t, "the end", 5*time.Second, s.Done())
		if !errors.Is(s.Err(), errExpired) || s.ValidFor() != 0 {
			t.Errorf("ended with %v, valid for %v", s.Err(), s.ValidFor())
		}
		if _, err := s.Enqueue(t.Context(), "/sidekeeper/expired", "-lock-", nil); !errors.Is(err, recipes.ErrSessionEnded) {
			t.Errorf("Enqueue afterwards: %v", err)
		}
		s.Dequeue(t.Context(), path) // returns
		if got := s.conn.SessionID(); got != id && got != 0 {
			t.Errorf("the library opened session %x", got)
		}
	})
	t.Run("learns that somebody deleted its place", func(t *testing.T) {
		s := openSession(t, c)
		made, err := s.Enqueue(t.Context(), "/sidekeeper/broken", "-lock-", nil)
		if err != nil {
			t.Fatal(err)
		}
		name, gone := made.Name, made.Gone
		if _, err := c.Commit(t.Context(), recipes.Delete("/sidekeeper/broken/"+name, -1)); err != nil {
			t.Fatal(err)
		}
		await(t, "gone", 5*time.Second, gone.Done())
	})
	t.Run("refuses to own more bytes of paths than are safe", func(t *testing.T) {
		small := newClient(t, e, func(c *Config) { c.EphemeralBytes = 500 })
		s := openSession(t, small)
		var err error
		for range 10 {
			if _, err = s.Enqueue(t.Context(), "/sidekeeper/bytes", "-lock-", nil); err != nil {
				break
			}
		}
		if !errors.Is(err, recipes.ErrTooManyBytes) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("refuses what is too long for a lease", func(t *testing.T) {
		s := openSession(t, c)
		for size := maxPlaceData + 1; size < 2*maxPlaceData; size += maxPlaceData / 16 {
			if _, err := s.Enqueue(t.Context(), "/sidekeeper/x", "-lock-", make([]byte, size)); err == nil {
				t.Errorf("data of %d bytes: accepted", size)
			}
			if _, err := s.Enqueue(t.Context(), "/"+strings.Repeat("x", size), "-lock-", nil); err == nil {
				t.Errorf("path of %d bytes: accepted", size)
			}
		}
	})
	t.Run("leaves no orphan and no duplicate when replies are cut", func(t *testing.T) { testCuts(t, c, link1) })
	t.Run("makes a guarded member once or not at all when replies are cut", func(t *testing.T) { testGuardedCuts(t, e, c) })
	t.Run("takes several places or none when replies are cut", func(t *testing.T) { testPlacesCuts(t, e, c) })
	t.Run("keeps its members as they are when replies are cut", func(t *testing.T) { testMemberCuts(t, e, c) })
	t.Run("lets alone what others make of a name while replies are lost", func(t *testing.T) { testStolenNames(t, e, c) })
	t.Run("commits what it says when replies are cut", func(t *testing.T) { testCommitCuts(t, e, c) })
	t.Run("says that nothing was sent only if nothing was", func(t *testing.T) { testCommitsOutOfContact(t, e, c) })
	t.Run("is told of what happens to a node from the moment in which it was read", func(t *testing.T) { testWatchesMissNothing(t, e, c) })
	t.Run("is told that a watch can be relied upon no longer", func(t *testing.T) { testLostWatchesAreTold(t, e, c) })
	t.Run("is refused clearly when the ensemble has enough connections", func(t *testing.T) {
		awaitReachable(t, c, true) // without its reader, what is refused may be an election
		var last error
		var sessions []*Session
		for range 80 {
			s, err := c.Open(t.Context(), 0)
			if last = err; err != nil {
				break
			}
			sessions = append(sessions, s)
		}
		if !errors.Is(last, recipes.ErrConnectionLimit) || len(sessions) < 50 {
			t.Errorf("after %d sessions: %v", len(sessions), last)
		}
		for _, s := range sessions {
			s.Close(t.Context())
			if !errors.Is(s.Err(), errClosed) {
				t.Errorf("another session ended with %v", s.Err())
			}
		}
	})
	t.Run("is suspended while its heartbeats are not answered, and goes on", func(t *testing.T) {
		s := openSession(t, c)
		path := enqueue(t, s, "/sidekeeper/suspended")
		link1.Stall(link.ToServer)
		awaitSuspended(t, s, true)
		if left := s.ValidFor(); left <= 0 || left > s.Timeout() {
			t.Errorf("suspended, and valid for %v", left)
		}
		link1.Heal()
		awaitSuspended(t, s, false)
		if node, err := s.Get(t.Context(), path); err != nil || !s.Owns(node) {
			t.Errorf("own node: %+v, %v", node, err)
		}
	})
	t.Run("ends in time on a server that accepts and never answers", func(t *testing.T) {
		s := openSession(t, c)
		enqueue(t, s, "/sidekeeper/hung")
		link1.Stall(link.ToServer)
		t.Cleanup(func() { link1.Heal() })
		began := time.Now()
		if _, err := s.Enqueue(t.Context(), "/sidekeeper/hung", "-lock-", nil); !errors.Is(err, recipes.ErrSessionEnded) {
			t.Errorf("Enqueue: %v", err)
		}
		if took := time.Since(began); took > s.Timeout() {
			t.Errorf("took %v of a timeout of %v", took, s.Timeout())
		}
		if !errors.Is(s.Err(), errUnproved) {
			t.Errorf("ended with %v", s.Err())
		}
		if _, err := c.Children(t.Context(), "/"); !errors.Is(err, recipes.ErrUnreachable) {
			t.Errorf("a list meanwhile: %v", err)
		}
		if _, err := c.Open(t.Context(), 0); !errors.Is(err, recipes.ErrUnreachable) {
			t.Errorf("another session meanwhile: %v", err)
		}
	})
}

// testCuts cuts replies and requests of each kind, a thousand in all, and looks at what is left each time.
func testCuts(t *testing.T, c *Client, l *link.Link) {
	const dir = "/sidekeeper/cuts"
	opcodes := []link.Opcode{link.Create2, link.Delete, link.Multi}
	s := openSession(t, c)
	cuts := 0
	for round := 0; cuts < 1000; round++ {
		cut := l.CutReply
		if round%4 == 3 {
			cut = l.CutRequest
		}
		match := link.Is(opcodes[round%len(opcodes)])
		trap := cut(func(f link.Frame) bool { return match(f) && strings.HasPrefix(f.Path(), dir) }, 1+round%3)
		path := enqueue(t, s, dir)
		if err := s.CatchUp(t.Context()); err != nil {
			t.Fatal(err)
		}
		names, err := s.Children(t.Context(), dir)
		if err != nil || len(names) != 1 || dir+"/"+names[0] != path {
			t.Fatalf("round %d: %v, %v instead of %s", round, names, err, path)
		}
		s.Dequeue(t.Context(), path)
		trap.Release()
		cuts += trap.Count()
	}
	names, err := c.Children(t.Context(), dir)
	if err != nil && !errors.Is(err, recipes.ErrNoNode) || len(names) != 0 {
		t.Errorf("left: %v, %v", names, err)
	}
	if s.Err() != nil {
		t.Errorf("the session ended: %v", s.Err())
	}
	t.Logf("%d cuts", cuts)
}

func TestOpenGivesUpWithItsCaller(t *testing.T) {
	c, err := New(Config{
		Servers: []string{"127.0.0.1:1"}, SessionTimeout: 4 * time.Second, TickTime: tick, SyncLimit: 5, Heartbeat: 250 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Open(ctx, 0); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
