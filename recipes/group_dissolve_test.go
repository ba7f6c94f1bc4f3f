package recipes_test

import (
	"errors"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/embedded"
	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/support/standin"
)

// dissolve removes the group with its members.
func (w world) dissolve() (forced int, took time.Duration, err error) {
	began := time.Now()
	forced, err = shop.Dissolve(w.Context(), w.NewReader(), recipes.Eviction{By: "uid:0", Reason: "moved", ForceAfter: after(forceAfter)})
	return forced, time.Since(began), err
}

func TestAGroupIsDissolvedWithAllItsMembersAtOnce(t *testing.T) {
	inBubble(t, func(w world) {
		var all []member
		for _, name := range []string{"a", "b", "c"} {
			m := w.enlist(name)
			w.attend(m)
			all = append(all, m)
		}
		forced, took, err := w.dissolve()
		if forced != 0 || took != 0 || err != nil {
			w.Errorf("%d forced after %v, %v", forced, took, err)
		}
		if names := w.Names("/groups"); len(names) != 0 {
			w.Errorf("left behind: %q", names)
		}
		for i, m := range all {
			if got := w.stands(m); got != "removed by hand" {
				w.Errorf("member %d sees %s", i, got)
			}
		}
	})
}

func TestThoseThatDoNotAttendAreRemovedTogetherWhenTheTimeIsOver(t *testing.T) {
	inBubble(t, func(w world) {
		w.enlist("a")
		w.attend(w.enlist("b"))
		w.foreignMember("c", "")
		forced, took, err := w.dissolve()
		if forced != 2 || took != forceAfter || err != nil {
			w.Errorf("%d forced after %v, %v", forced, took, err)
		}
	})
}

func TestAMemberIsToldWhoDissolvesItsGroup(t *testing.T) {
	inBubble(t, func(w world) {
		m := w.enlist("a")
		go func() {
			<-time.After(time.Second)
			if got := w.stands(m); got != "removed by uid:0: moved" {
				w.Errorf("it sees %s", got)
			}
			m.Leave(w.living)
		}()
		if _, _, err := w.dissolve(); err != nil {
			w.Error(err)
		}
	})
}

func TestAGroupOfOtherThingsThanMembersIsNotDissolved(t *testing.T) {
	inBubble(t, func(w world) {
		w.attend(w.enlist("a"))
		path, err := w.Create(shop.Path+"/theirs", nil, embedded.Persistent, 0)
		if err != nil {
			w.Fatal(err)
		}
		if _, _, err := w.dissolve(); !errors.Is(err, recipes.ErrGroupNotEmpty) {
			w.Errorf("dissolved with %v", err)
		}
		if _, err := w.Read(path); err != nil {
			w.Error(err)
		}
	})
}

func TestMembersThatKeepComingBackKeepTheirGroup(t *testing.T) {
	inBubble(t, func(w world) {
		w.attend(w.enlist("first"))
		store := w.NewReader()
		store.Before(func(operation standin.Operation) error {
			if operation.Name == "Commit" && operation.Path == shop.Path {
				w.attend(w.enlist(time.Now().Format("m150405.000000000")))
				<-time.After(time.Millisecond)
			}
			return nil
		})
		_, err := shop.Dissolve(w.Context(), store, recipes.Eviction{ForceAfter: after(forceAfter)})
		if !errors.Is(err, recipes.ErrGroupNotEmpty) {
			w.Errorf("dissolved with %v", err)
		}
	})
}

// A real ensemble deletes the directory of a group that has become empty.
func TestAGroupThatGoesWithItsLastMemberIsDissolved(t *testing.T) {
	inBubble(t, func(w world) {
		w.attend(w.enlist("a"))
		store, attempts := w.NewReader(), 0
		store.Before(func(operation standin.Operation) error {
			if operation.Name == "Commit" && operation.Path == shop.Path {
				if attempts++; attempts == 2 {
					return w.Delete(shop.Path)
				}
			}
			return nil
		})
		_, err := shop.Dissolve(w.Context(), store, recipes.Eviction{ForceAfter: after(forceAfter)})
		if err != nil || attempts != 2 {
			w.Errorf("dissolved in %d attempts with %v", attempts, err)
		}
	})
}

func TestAGroupThatIsNotThereIsNotDissolved(t *testing.T) {
	inBubble(t, func(w world) {
		if _, _, err := w.dissolve(); !errors.Is(err, recipes.ErrNoGroup) {
			w.Errorf("dissolved with %v", err)
		}
	})
}
