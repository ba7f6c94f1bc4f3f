package zookeeper

import (
	"errors"
	"strings"
	"time"

	"github.com/sidekeeper/sidekeeper/recipes"
)

var memberContract = []clause{
	{"a member is this session's, until it is deleted", func(g ground) {
		s, other := g.open(), g.open()
		made, gone, err := s.Create(g.Context(), g.at("groups/orders/a"), []byte("1"))
		g.must(err)
		read := g.read("groups/orders/a")
		if !s.Owns(read) || other.Owns(read) || read.Czxid != made.Czxid || read.Mzxid != made.Mzxid || read.Version != made.Version ||
			made.Owner != s.ID() || string(read.Data) != "1" || made.Bare || made.Data != nil {
			g.Errorf("made %+v, read %+v", made, read)
		}
		if _, _, err := other.Create(g.Context(), g.at("groups/orders/a"), nil); !errors.Is(err, recipes.ErrExists) {
			g.Errorf("another one: %v", err)
		}
		s.Delete(g.Context(), g.at("groups/orders/a"))
		again, _, err := other.Create(g.Context(), g.at("groups/orders/a"), nil)
		if err != nil || again.Czxid <= made.Czxid || again.Owner != other.ID() || !again.Bare {
			g.Errorf("afterwards: %+v, %v", again, err)
		}
		select {
		case <-gone.Done():
			g.Error("gone, as if somebody else had deleted it")
		default:
		}
	}},
	{"an update is told in full", func(g ground) {
		s := g.open()
		made, _, err := s.Create(g.Context(), g.at("a"), []byte("1"))
		g.must(err)
		g.commit(recipes.Set(g.at("a"), []byte("a mark"), made.Version))
		if _, err := s.Update(g.Context(), g.at("a"), []byte("2"), made.Version); !errors.Is(err, recipes.ErrBadVersion) {
			g.Errorf("over a mark that was not seen: %v", err)
		}
		updated, err := s.Update(g.Context(), g.at("a"), []byte("2"), made.Version+1)
		g.must(err)
		read := g.read("a")
		if updated.Version != made.Version+2 || updated.Version != read.Version || updated.Mzxid != read.Mzxid ||
			updated.Czxid != made.Czxid || updated.Owner != s.ID() || updated.Data != nil || string(read.Data) != "2" {
			g.Errorf("updated %+v, read %+v", updated, read)
		}
	}},
	{"what is guarded is made and replaced only while the guards' places stand", func(g ground) {
		s, holder := g.open(), g.open()
		place, err := holder.Enqueue(g.Context(), g.at("locks/orders"), "-lock-", nil)
		g.must(err)
		guards := []recipes.Guard{{Path: g.at("locks/orders/" + place.Name)}, {Path: g.at("locks/none")}}
		lost := func(what string, index int, err error) {
			var of *recipes.GuardLost
			if !errors.As(err, &of) || of.Index != index {
				g.Errorf("%s: %v", what, err)
			}
		}
		made, _, err := s.Create(g.Context(), g.at("groups/a"), []byte("1"), guards[0])
		g.must(err)
		updated, err := s.Update(g.Context(), g.at("groups/a"), []byte("2"), made.Version, guards[0])
		g.must(err)
		read := g.read("groups/a")
		if made.Owner != s.ID() || updated.Version != made.Version+1 || updated.Mzxid != read.Mzxid || string(read.Data) != "2" {
			g.Errorf("made %+v, updated %+v, read %+v", made, updated, read)
		}
		_, _, err = s.Create(g.Context(), g.at("groups/b"), nil, guards...)
		lost("a member beside one that is not there", 1, err)
		_, err = s.Update(g.Context(), g.at("groups/a"), nil, updated.Version, guards...)
		lost("an update", 1, err)
		holder.Close(g.Context())
		_, _, err = s.Create(g.Context(), g.at("new/c"), nil, guards[0])
		lost("when the guard's session is over", 0, err)
		if names, err := g.Children(g.Context(), g.at("groups")); len(names) != 1 || err != nil {
			g.Errorf("there are %v, %v", names, err)
		}
	}},
	{"what has become somebody else's is let alone", func(g ground) {
		s, other := g.open(), g.open()
		_, gone, err := s.Create(g.Context(), g.at("a"), []byte("mine"))
		g.must(err)
		g.commit(recipes.Delete(g.at("a"), -1))
		await(g.T, "gone", 10*time.Second, gone.Done())
		theirs, _, err := other.Create(g.Context(), g.at("a"), []byte("theirs"))
		g.must(err)
		if _, err := s.Update(g.Context(), g.at("a"), []byte("x"), theirs.Version); !errors.Is(err, recipes.ErrNoNode) {
			g.Errorf("an update: %v", err)
		}
		s.Delete(g.Context(), g.at("a"))
		if read := g.read("a"); read.Czxid != theirs.Czxid || read.Version != theirs.Version || string(read.Data) != "theirs" {
			g.Errorf("it was %+v and is %+v", theirs, read)
		}
		g.commit(recipes.Delete(g.at("a"), -1))
		g.must(g.CatchUp(g.Context()))
		if _, err := other.Update(g.Context(), g.at("a"), nil, theirs.Version); !errors.Is(err, recipes.ErrNoNode) {
			g.Errorf("an update of what is not there: %v", err)
		}
		other.Delete(g.Context(), g.at("a")) // returns
	}},
	{"a session takes its own members with it, and nobody else's", func(g ground) {
		s, other := g.open(), g.open()
		for _, name := range []string{"a", "b", "c"} {
			_, _, err := s.Create(g.Context(), g.at(name), []byte("mine"))
			g.must(err)
		}
		_, err := s.Enqueue(g.Context(), g.at("queue"), "-lock-", nil)
		g.must(err)
		g.commit(recipes.Delete(g.at("b"), -1))
		_, _, err = other.Create(g.Context(), g.at("b"), []byte("theirs"))
		g.must(err)
		g.commit(recipes.Create(g.at("stays"), nil))
		s.Close(g.Context())
		g.must(g.CatchUp(g.Context()))
		if names, err := g.Children(g.Context(), g.at("queue")); len(names) != 0 || err != nil && !errors.Is(err, recipes.ErrNoNode) {
			g.Errorf("left in the queue: %v, %v", names, err)
		}
		g.awaitGone(g.at("queue"))
		if b := g.read("b"); b.Owner != other.ID() || string(b.Data) != "theirs" {
			g.Errorf("b is %+v", b)
		}
		names, err := g.Children(g.Context(), g.dir)
		if len(names) != 2 || err != nil {
			g.Errorf("there are %v, %v", names, err)
		}
	}},
	{"nothing is made of a session that has ended", func(g ground) {
		s := g.open()
		_, _, err := s.Create(g.Context(), g.at("a"), nil)
		g.must(err)
		s.Close(g.Context())
		if _, _, err := s.Create(g.Context(), g.at("b"), nil); !errors.Is(err, recipes.ErrSessionEnded) {
			g.Errorf("Create: %v", err)
		}
		if _, err := s.Update(g.Context(), g.at("a"), nil, 1); !errors.Is(err, recipes.ErrSessionEnded) {
			g.Errorf("Update: %v", err)
		}
		s.Delete(g.Context(), g.at("a")) // returns
		g.is("")
	}},
	{"a session owns no more bytes of paths than are safe, and counts what is deleted no more", func(g ground) {
		s := g.open()
		var made []string
		for err := error(nil); err == nil; {
			path := g.at(strings.Repeat("x", 500) + string(rune('a'+len(made))))
			if _, _, err = s.Create(g.Context(), path, nil); err == nil {
				made = append(made, path)
			} else if !errors.Is(err, recipes.ErrTooManyBytes) {
				g.Fatal(err)
			}
		}
		if len(made) != bytesPerSession/(501+len(g.at(""))) {
			g.Errorf("%d members", len(made))
		}
		s.Delete(g.Context(), made[0])
		_, _, err := s.Create(g.Context(), made[0], nil)
		g.must(err)
	}},
	{"a member's path and data are short", func(g ground) {
		s := g.open()
		for _, size := range []int{8<<10 + 1, 16<<10 - 100, 16 << 10, 20 << 10} {
			if _, _, err := s.Create(g.Context(), g.at("a"), make([]byte, size)); !errors.Is(err, recipes.ErrTooLarge) {
				g.Errorf("data of %d bytes: %v", size, err)
			}
			if _, _, err := s.Create(g.Context(), g.at(strings.Repeat("x", size)), nil); !errors.Is(err, recipes.ErrTooLarge) {
				g.Errorf("path of %d bytes: %v", size, err)
			}
		}
		path := g.at(strings.Repeat("x", 1024-len(g.at(""))))
		made, _, err := s.Create(g.Context(), path, make([]byte, 8<<10))
		g.must(err)
		if _, err := s.Update(g.Context(), path, make([]byte, 8<<10), made.Version,
			recipes.Guard{Path: path}, recipes.Guard{Path: path}, recipes.Guard{Path: path}); !errors.Is(err, recipes.ErrTooLarge) {
			g.Errorf("beside long guards: %v", err)
		}
		_, err = s.Update(g.Context(), path, make([]byte, 8<<10), made.Version)
		g.must(err)
		if _, err := s.Update(g.Context(), path, make([]byte, 8<<10+1), made.Version); !errors.Is(err, recipes.ErrTooLarge) {
			g.Errorf("an update: %v", err)
		}
	}},
}
