package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sidekeeper/sidekeeper/internal/embedded"
	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/support/standin"
)

func TestAGroupsViewShowsItsMembersByName(t *testing.T) {
	inBubble(t, func(w world) {
		b := w.enlist("b", "port", "1")
		w.foreignMember("c", "their host")
		w.foreignMember("binary", "\xff")
		w.foreignMember("long", strings.Repeat("é", 1000))
		w.foreignMember("claims", `{"sidekeeper":1,"owner":"`+strings.Repeat("x", 20000)+`"}`)
		w.foreignMember(strings.Repeat("n", 1025), "")
		if _, err := w.Create(shop.Path+"/persistent", nil, embedded.Persistent, 0); err != nil {
			w.Fatal(err)
		}
		<-time.After(time.Minute)
		a := w.enlist("a")
		got, err := shop.View(w.Context(), w.NewReader())
		if err != nil {
			w.Fatal(err)
		}
		var lines []string
		for _, m := range got.Members {
			lines = append(lines, fmt.Sprintf("%s %q %v %v foreign=%t %d", m.Name, m.Owner, m.Metadata, m.Age, m.Foreign, len(m.Text)))
		}
		want := []string{
			`a "of a" map[] 0s foreign=false 0`, `b "of b" map[port:1] 1m0s foreign=false 0`,
			`binary "" map[] 1m0s foreign=true 0`, `c "" map[] 1m0s foreign=true 10`,
			`claims "" map[] 1m0s foreign=true 1024`, `long "" map[] 1m0s foreign=true 1024`,
		}
		if diff := cmp.Diff(want, lines); diff != "" || len(got.Omitted) != 1 || got.Permanent {
			w.Error(diff, got.Omitted, got.Permanent)
		}
		if got.Members[0].Incarnation != a.Incarnation || got.Members[1].Incarnation != b.Incarnation {
			w.Error("the incarnations are others than the members'")
		}
	})
}

func TestAMemberThatMayNotBeReadIsLeftOut(t *testing.T) {
	inBubble(t, func(w world) {
		w.enlist("a")
		w.enlist("b")
		if err := w.Deny(shop.Path+"/a", true); err != nil {
			w.Fatal(err)
		}
		view, err := shop.View(w.Context(), w.NewReader())
		if err != nil || len(view.Members) != 1 || len(view.Omitted) != 1 {
			w.Errorf("%d members, %v omitted, %v", len(view.Members), view.Omitted, err)
		}
	})
}

func TestAGroupThatIsNotThereHasAnEmptyView(t *testing.T) {
	inBubble(t, func(w world) {
		view, err := shop.View(w.Context(), w.NewReader())
		if diff := cmp.Diff(recipes.GroupView{}, view); diff != "" || err != nil {
			w.Error(diff, err)
		}
	})
}

func TestAGroupsViewLeavesOutWhatWouldMakeItTooLarge(t *testing.T) {
	inBubble(t, func(w world) {
		session := w.session()
		for i := range 4000 {
			path := fmt.Sprintf("%s/%04d", shop.Path, i)
			if _, err := w.Create(path, []byte(strings.Repeat("x", 1000)), embedded.Ephemeral, session.ID()); err != nil {
				w.Fatal(err)
			}
		}
		view, err := shop.View(w.Context(), w.NewReader())
		size := 0
		for _, m := range view.Members {
			size += len(m.Name) + len(m.Text)
		}
		for i, name := range view.Omitted {
			if want := fmt.Sprintf("%04d", len(view.Members)+i); name != want || !view.Omits(name) {
				w.Fatalf("%s is omitted, want %s", name, want)
			}
		}
		if last := view.Members[len(view.Members)-1].Name; view.Omits(last) {
			w.Errorf("%s is shown and omitted", last)
		}
		if err != nil || len(view.Members)+len(view.Omitted) != 4000 || size > 3<<20 || size < 2<<20 {
			w.Errorf("%d members of %d bytes, %d omitted, %v", len(view.Members), size, len(view.Omitted), err)
		}
	})
}

func TestAWatchedGroupTellsWhatChangesInIt(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(w world, a member)
		want   string
	}{
		{"nothing", func(world, member) {}, "the same"},
		{"another member", func(w world, _ member) { w.enlist("b") }, "a b"},
		{"metadata", func(w world, a member) { _ = a.Update(w.living, map[string]string{"port": "2"}) }, "a[port:2]"},
		{"leaving", func(w world, a member) { a.Leave(w.living) }, ""},
		{"somebody who left and came again", func(w world, a member) {
			a.Leave(w.living)
			w.enlist("a", "port", "3")
		}, "a[port:3]"},
		{"the group made to stay when it is empty", func(w world, a member) {
			a.Leave(w.living)
			if err := shop.Make(w.Context(), w.NewReader()); err != nil {
				w.Error(err)
			}
		}, "permanent"},
	} {
		t.Run(c.name, func(t *testing.T) {
			inBubble(t, func(w world) {
				a := w.enlist("a")
				reader := w.NewReader()
				_, changes, err := shop.WatchView(w.Context(), reader)
				if err != nil {
					w.Fatal(err)
				}
				c.change(w, a)
				synctest.Wait()
				if got := w.afterChange(reader, changes); got != c.want {
					w.Errorf("shows %q, want %q", got, c.want)
				}
			})
		})
	}
}

func (w world) afterChange(reader *standin.Reader, changes recipes.Changes) string {
	w.Helper()
	ctx, cancel := context.WithTimeout(w.Context(), time.Second)
	defer cancel()
	if changes.Wait(ctx) != nil {
		return "the same"
	}
	view, _, err := shop.WatchView(w.Context(), reader)
	if err != nil {
		w.Fatal(err)
	}
	if view.Permanent {
		return "permanent"
	}
	var members []string
	for _, m := range view.Members {
		members = append(members, m.Name+strings.TrimPrefix(strings.TrimSuffix(fmt.Sprint(m.Metadata), "map[]"), "map"))
	}
	return strings.Join(members, " ")
}

func TestOneMemberMoreCostsTwoRequestsHoweverLargeTheGroup(t *testing.T) {
	inBubble(t, func(w world) {
		for i := range 100 {
			w.enlist(fmt.Sprint("m", i))
		}
		reader := w.NewReader()
		look := func() (requests int) {
			before := reader.Count("WatchChildren") + reader.Count("Watch")
			if _, _, err := shop.WatchView(w.Context(), reader); err != nil {
				w.Fatal(err)
			}
			return reader.Count("WatchChildren") + reader.Count("Watch") - before
		}
		if first := look(); first != 102 {
			w.Errorf("%d requests for a group of 100", first)
		}
		m := w.enlist("another")
		synctest.Wait()
		if more := look(); more != 2 {
			w.Errorf("%d requests for one member more", more)
		}
		m.Leave(w.living)
		synctest.Wait()
		if less := look(); less != 1 {
			w.Errorf("%d requests for one member less", less)
		}
	})
}

func TestAGroupVanishesWithItsLastMemberUnlessItIsMadeToStay(t *testing.T) {
	inBubble(t, func(w world) {
		w.enlist("a").Leave(w.living)
		w.Reap()
		if names := w.Names("/groups"); len(names) != 0 {
			w.Errorf("left behind: %q", names)
		}
		store := w.NewReader()
		for range 2 {
			if err := shop.Make(w.Context(), store); err != nil {
				w.Fatal(err)
			}
		}
		w.enlist("a").Leave(w.living)
		w.Reap()
		members, permanent, err := shop.Size(w.Context(), store)
		if err != nil || members != 0 || !permanent {
			w.Errorf("%d members, permanent %t, %v", members, permanent, err)
		}
	})
}

func TestAnEmptyGroupCanBeMadeToStayAndOneWithMembersCannot(t *testing.T) {
	inBubble(t, func(w world) {
		a := w.enlist("a")
		store := w.NewReader()
		if err := shop.Make(w.Context(), store); !errors.Is(err, recipes.ErrGroupNotEmpty) {
			w.Errorf("made with %v", err)
		}
		w.wantInside("a")
		a.Leave(w.living)
		if err := shop.Make(w.Context(), store); err != nil {
			w.Error(err)
		}
		w.Reap()
		if names := w.Names("/groups"); len(names) != 1 {
			w.Errorf("there are %q", names)
		}
	})
}

func TestAGroupIsMadeWhateverRepliesAreLost(t *testing.T) {
	for _, name := range []string{"none", "Commit"} {
		inBubble(t, func(w world) {
			store := w.NewReader()
			lose(store, name)
			if err := shop.Make(w.Context(), store); err != nil {
				w.Error(err)
			}
			if _, permanent, err := shop.Size(w.Context(), store); err != nil || !permanent {
				w.Errorf("permanent %t, %v", permanent, err)
			}
		})
	}
}

func TestAGroupIsDeletedOnlyWhenItIsEmpty(t *testing.T) {
	inBubble(t, func(w world) {
		store := w.NewReader()
		var got []string
		try := func() {
			err := shop.Delete(w.Context(), store)
			got = append(got, fmt.Sprint(err))
		}
		try()
		a := w.enlist("a")
		try()
		a.Leave(w.living)
		try()
		try()
		want := []string{
			recipes.ErrNoGroup.Error(), recipes.ErrGroupNotEmpty.Error(), "<nil>", recipes.ErrNoGroup.Error(),
		}
		if diff := cmp.Diff(want, got); diff != "" {
			w.Error(diff)
		}
	})
}
