package recipes_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/support/standin"
)

func TestAMemberIsInItsGroupFromJoinUntilItLeaves(t *testing.T) {
	inBubble(t, func(w world) {
		a, b := w.enlist("a"), w.enlist("b")
		w.wantInside("a b")
		if a.Incarnation <= 0 || b.Incarnation <= a.Incarnation {
			w.Errorf("incarnations %d and then %d", a.Incarnation, b.Incarnation)
		}
		a.Leave(w.living)
		a.Leave(w.living)
		w.wantInside("b")
		b.session.Expire()
		w.wantInside("")
	})
}

func TestANameInUseIsRefusedAndItsMemberStays(t *testing.T) {
	inBubble(t, func(w world) {
		a := w.enlist("a", "port", "1")
		_, err := shop.Join(w.living, w.session(), "a", about("a", "port", "2"))
		if !errors.Is(err, recipes.ErrMemberExists) {
			w.Errorf("joined with %v", err)
		}
		if got := w.stands(a); got != "map[port:1]" {
			w.Errorf("the member says %s", got)
		}
	})
}

func TestAMemberThatJoinsAgainIsAnotherIncarnation(t *testing.T) {
	inBubble(t, func(w world) {
		first := w.enlist("a")
		first.Leave(w.living)
		second := w.enlist("a")
		if second.Incarnation <= first.Incarnation {
			w.Errorf("incarnation %d after %d", second.Incarnation, first.Incarnation)
		}
		if got := w.stands(first); got != "removed by hand" {
			w.Errorf("the first incarnation sees %s", got)
		}
		first.Leave(w.living)
		w.wantInside("a")
	})
}

func TestAMemberSeesWhatBecomesOfItsNode(t *testing.T) {
	for _, c := range []struct {
		name   string
		happen func(w world, m member, path string)
		want   string
	}{
		{"nothing", func(world, member, string) {}, "map[port:1]"},
		{"an update", func(w world, m member, _ string) {
			if err := m.Update(w.living, map[string]string{"port": "2"}); err != nil {
				w.Error(err)
			}
		}, "map[port:2]"},
		{"an update that leaves nothing", func(w world, m member, _ string) {
			if err := m.Update(w.living, nil); err != nil {
				w.Error(err)
			}
		}, "map[]"},
		{"nonsense", func(w world, _ member, path string) { w.write(path, "{") }, "map[port:1]"}, // which it writes again
		{"a deletion", func(w world, _ member, path string) { w.delete(path) }, "removed by hand"},
		{"a deletion and somebody else", func(w world, _ member, path string) {
			w.delete(path)
			w.foreignMember("a", "")
		}, "removed by hand"},
		{"a replacement", func(w world, _ member, _ string) { w.evict("a") }, "replaced by uid:7: restarted"},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(w world) {
				m := w.enlist("a", "port", "1")
				c.happen(w, m, shop.Path+"/a")
				synctest.Wait()
				if got := w.stands(m); got != c.want {
					w.Errorf("it sees %s, want %s", got, c.want)
				}
			})
		})
	}
}

func (w world) write(path, data string) {
	w.Helper()
	if err := w.Set(path, []byte(data)); err != nil {
		w.Fatal(err)
	}
}

func TestAMemberIsNotMissedByAReaderThatIsLate(t *testing.T) {
	inBubble(t, func(w world) {
		old := w.enlist("a")
		reader := w.NewReader()
		if _, err := reader.Get(w.Context(), shop.Path+"/a"); err != nil {
			w.Fatal(err)
		}
		reader.Lag()
		old.Leave(w.living)
		session := reader.OpenSession(0)
		again, err := shop.Join(w.living, session, "a", recipes.About{})
		if err != nil {
			w.Fatal(err)
		}
		if got := w.stands(member{again, session}); got != "map[]" {
			w.Errorf("it sees %s", got)
		}
	})
}

func TestAnUpdateOfARemovedMemberChangesNobody(t *testing.T) {
	inBubble(t, func(w world) {
		m := w.enlist("a")
		path := shop.Path + "/a"
		w.delete(path)
		w.foreignMember("a", "theirs")
		if err := m.Update(w.living, map[string]string{"port": "2"}); !errors.Is(err, recipes.ErrNoMember) {
			w.Errorf("updated with %v", err)
		}
		if node, err := w.Read(path); err != nil || string(node.Data) != "theirs" {
			w.Errorf("the other's data is %q, %v", node.Data, err)
		}
	})
}

// awaitFree returns when the group has no member of the name.
func awaitFree(ctx context.Context, reader *standin.Reader, name string) error {
	for {
		changed, err := shop.WatchFree(ctx, reader, name)
		if changed == nil || err != nil {
			return err
		}
		if err := changed.Await(ctx); err != nil {
			return err
		}
	}
}

func TestWaitingForANameEndsWhenItIsFree(t *testing.T) {
	inBubble(t, func(w world) {
		if err := awaitFree(w.Context(), w.NewReader(), "a"); err != nil {
			w.Fatal(err)
		}
		m := w.enlist("a")
		late := w.NewReader()
		late.Lag()
		free := make(chan error, 2)
		for _, reader := range []*standin.Reader{w.NewReader(), late} {
			go func() { free <- awaitFree(w.living, reader, "a") }()
		}
		synctest.Wait()
		if len(free) != 0 {
			w.Fatalf("the name counts as free: %v", <-free)
		}
		late.KeepUp()
		m.Leave(w.living)
		synctest.Wait()
		if len(free) != 2 || <-free != nil || <-free != nil {
			w.Errorf("%d found the name free", len(free))
		}
	})
}

func TestWaitingForANameCanBeGivenUp(t *testing.T) {
	inBubble(t, func(w world) {
		w.enlist("a")
		ctx, cancel := context.WithTimeoutCause(w.Context(), time.Second, errBroken)
		defer cancel()
		if err := awaitFree(ctx, w.NewReader(), "a"); !errors.Is(err, errBroken) {
			w.Errorf("ended with %v", err)
		}
	})
}

func TestAMembersSessionThatOwnsTooMuchIsRefused(t *testing.T) {
	inBubbleWith(t, standin.Options{EphemeralBytes: 10}, func(w world) {
		if _, err := shop.Join(w.living, w.session(), "a", recipes.About{}); !errors.Is(err, recipes.ErrTooManyBytes) {
			w.Errorf("joined with %v", err)
		}
	})
}

func TestAGuardedUpdateWhoseReplyIsLostIsToldAsWhatItWas(t *testing.T) {
	for name, committed := range map[string]bool{"it was carried out": true, "it was not": false} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(w world) {
				holder, member := w.session(), w.enlist("a", "port", "1")
				place, err := holder.Enqueue(w.living, "/locks/orders", "-lock-", nil)
				if err != nil {
					w.Fatal(err)
				}
				guard := recipes.Guard{Path: "/locks/orders/" + place.Name}
				lose := func(o standin.Operation) error {
					if o.Name != "Update" {
						return nil
					}
					member.session.Before(nil)
					member.session.After(nil)
					holder.Expire()
					return recipes.ErrBadVersion // as the session layer has it when it has found that out
				}
				want, says := error(nil), "map[port:2]"
				if committed {
					member.session.After(lose)
				} else {
					member.session.Before(lose)
					want, says = recipes.ErrGuardLost, "map[port:1]"
				}
				if err := member.Update(w.living, map[string]string{"port": "2"}, guard); !errors.Is(err, want) {
					w.Errorf("updated with %v", err)
				}
				if got := w.stands(member); got != says {
					w.Errorf("the member says %s", got)
				}
			})
		})
	}
}
