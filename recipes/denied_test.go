package recipes_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/support/standin"
)

// denying refuses to read these nodes, as the access control of another program's would.
func denying(paths ...string) standin.Hook {
	return func(operation standin.Operation) error {
		if (operation.Name == "Get" || operation.Name == "Watch") && slices.Contains(paths, operation.Path) {
			return recipes.ErrDenied
		}
		return nil
	}
}

func TestAContenderThatMayNotBeReadHidesNoOther(t *testing.T) {
	inBubble(t, func(w world) {
		secret, other := w.join(recipes.Exclusive), w.join(recipes.Exclusive)
		reader := w.NewReader()
		reader.Before(denying(w.pathOf(secret)))
		view, err := orders.View(w.Context(), reader)
		w.must(err)
		watched, _, err := orders.WatchView(w.Context(), reader)
		w.must(err)
		for _, v := range []recipes.View{view, watched} {
			if len(v.Holders) != 1 || len(v.Waiters) != 1 || v.Holders[0].Owner != "" || !v.Holders[0].Foreign || v.Waiters[0].Owner == "" {
				t.Errorf("holders %+v, waiters %+v", v.Holders, v.Waiters)
			}
		}
		_, err = orders.Guard(w.Context(), reader, secret.hold.Token)
		if !errors.Is(err, recipes.ErrDenied) || !errors.Is(view.Readable(), recipes.ErrDenied) {
			t.Errorf("the holder may not be read: %v, %v", err, view.Readable())
		}
		_, err = orders.Break(w.Context(), reader, secret.hold.Token, "", "why", recipes.ForceAfter{})
		if !errors.Is(err, recipes.ErrDenied) {
			t.Errorf("break: %v", err)
		}
		other.quit()
		secret.quit()
	})
}

func TestWhoWaitsBehindAContenderThatMayNotBeReadIsGrantedTheLock(t *testing.T) {
	inBubble(t, func(w world) {
		secret, session := w.join(recipes.Exclusive), w.session()
		session.Before(denying(w.pathOf(secret)))
		waiter, last := w.joinWith(session, orders, recipes.Exclusive), w.join(recipes.Exclusive)
		w.expect("holding, waiting, waiting", secret, waiter, last)
		last.quit()
		w.expect("holding, waiting, left", secret, waiter, last)
		secret.quit()
		w.expect("left, holding", secret, waiter)
		waiter.quit()
		w.empty()
	})
}

// A predecessor that goes before the list is watched is not waited for.
func TestWhoFindsAContenderGoneThatMightNotBeReadIsGrantedTheLock(t *testing.T) {
	inBubble(t, func(w world) {
		secret, session := w.join(recipes.Exclusive), w.session()
		path := w.pathOf(secret)
		session.Before(func(operation standin.Operation) error {
			if operation.Name == "Watch" && operation.Path == path {
				if len(w.Names(orders.Path)) > 1 {
					w.must(w.Delete(path))
				}
				return recipes.ErrDenied
			}
			return nil
		})
		waiter := w.joinWith(session, orders, recipes.Exclusive)
		w.expect("gone, holding", secret, waiter)
		waiter.quit()
	})
}

func TestPermitsThatMayNotBeReadAreTakenAllTheSame(t *testing.T) {
	inBubble(t, func(w world) {
		store := w.NewReader()
		w.must(calls.Create(w.living, store, 3))
		for _, owner := range []string{"secret", "other"} {
			_, granted := w.permits(1, recipes.About{Owner: owner})
			if !granted {
				t.Fatal(owner, "is not granted a permit")
			}
		}
		var secret string
		for _, name := range w.Names(calls.Path + "/leases") {
			node, err := w.Read(calls.Path + "/leases/" + name)
			w.must(err)
			if strings.Contains(string(node.Data), "secret") {
				secret = calls.Path + "/leases/" + name
			}
		}
		store.Before(denying(secret))
		view, err := calls.View(w.living, store)
		w.must(err)
		owners := []string{view.Holders[0].Owner, view.Holders[1].Owner}
		slices.Sort(owners)
		if view.Taken != 2 || !slices.Equal(owners, []string{"", "other"}) {
			t.Errorf("%d taken, holders %+v", view.Taken, view.Holders)
		}
	})
}
