package recipes_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/support/standin"
)

func TestAClaimThatASlowLeaderHasWrittenDoesNotEndEarly(t *testing.T) {
	inBubble(t, func(w world) {
		claim, waiter := w.claims("deploy"), w.join(recipes.Exclusive)
		time.Sleep(time.Minute)
		w.sweeps(skewed{w.NewReader(), -time.Hour, 0}, &recipes.ClaimBook{})
		w.expect("waiting", waiter)
		claim.checks("59m0s 58s")
		waiter.quit()
	})
}

func TestAClaimThatALeaderAheadHasWrittenBlocksItsLockForItsOwnTime(t *testing.T) {
	inBubble(t, func(w world) {
		claim, waiter, store := w.claims("deploy"), w.join(recipes.Exclusive), w.NewReader()
		time.Sleep(30 * time.Minute)
		w.sweeps(skewed{store, 365 * 24 * time.Hour, 0}, &recipes.ClaimBook{})
		claim.checks("1h0m0s 58s") // it counts from now on
		var book recipes.ClaimBook
		time.Sleep(time.Hour)
		w.sweeps(store, &book)
		w.expect("waiting", waiter)
		time.Sleep(6 * time.Second)
		w.sweeps(store, &book)
		w.expect("holding", waiter)
		waiter.quit()
	})
}

func TestACallThatGivesUpLeavesTheClaimToAnotherThatWaits(t *testing.T) {
	inBubble(t, func(w world) {
		first := w.join(recipes.Exclusive)
		one := w.claims("deploy")
		time.Sleep(5 * time.Second)
		two := w.claims("deploy")
		time.Sleep(time.Second)
		close(one.late)
		one.stands("late")
		two.stands("waiting")
		first.quit()
		two.stands("ok")
	})
}

func TestAClaimThatIsReleasedWhileItWaitsDoesNotComeBack(t *testing.T) {
	inBubble(t, func(w world) {
		first := w.join(recipes.Exclusive)
		reader := w.NewReader()
		claim := &claimer{world: w, store: reader, id: "deploy", late: make(chan struct{}), state: "waiting"}
		go claim.claim(w.living)
		synctest.Wait()
		reader.Lag()
		owner := &claimer{world: w, store: w.NewReader(), id: "deploy"}
		owner.releases("ok")
		time.Sleep(20 * time.Second) // it says that it waits
		reader.KeepUp()
		claim.stands("over")
		w.told("records and places", w.standing(), "0 1")
		first.quit()
	})
}

func TestAClaimIsOneOfItsMode(t *testing.T) {
	inBubble(t, func(w world) {
		w.claims("deploy").stands("ok")
		_, err := claims.Claim(w.living, w.NewReader(), orders, recipes.ClaimRequest{ID: "deploy", Mode: recipes.Read, For: time.Hour}, nil)
		w.told("as a reader", claimWord(err), "other")
	})
}

func TestOneClaimThatCannotBeEndedKeepsNoOtherFromIt(t *testing.T) {
	inBubble(t, func(w world) {
		for _, id := range []string{"a", "b", "c", "d"} {
			_, err := claims.Claim(w.living, w.NewReader(), recipes.Lock{Path: "/locks/" + id}, recipes.ClaimRequest{ID: id, For: time.Minute}, nil)
			w.told("claim", claimWord(err), "ok")
		}
		time.Sleep(2 * time.Minute)
		store, denied := w.NewReader(), ""
		store.Before(func(of standin.Operation) error {
			if of.Name == "Get" && strings.HasPrefix(of.Path, claims.Path+"/") && denied == "" {
				denied = of.Path
			}
			if of.Path == denied || strings.HasPrefix(of.Path, "/locks/b") {
				return recipes.ErrDenied
			}
			return nil
		})
		_, err := claims.Sweep(w.living, store, &recipes.ClaimBook{})
		if !errors.Is(err, recipes.ErrDenied) || !strings.Contains(err.Error(), denied) {
			t.Error(err)
		}
		left := 0
		for _, id := range []string{"a", "b", "c", "d"} {
			names, _ := w.NewReader().Children(w.living, "/locks/"+id)
			left += len(names)
		}
		if left > 2 {
			t.Errorf("%d claims stand", left)
		}
	})
}

func TestARecordOfAClaimThatAnotherProgramHasWrittenIsLeftAlone(t *testing.T) {
	inBubble(t, func(w world) {
		claim, store := w.claims("deploy"), w.NewReader()
		names, err := store.Children(w.living, claims.Path)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if name == "=clock" {
				continue
			}
			node, err := store.Get(w.living, claims.Path+"/"+name)
			if err != nil {
				t.Fatal(err)
			}
			text := strings.Replace(string(node.Data), `"span_ns"`, `"least":"0000-01-01T00:00:00+01:00","span_ns"`, 1)
			if _, err := store.Commit(w.living, recipes.Set(claims.Path+"/"+name, []byte(text), -1)); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(2 * time.Hour)
		w.sweeps(store, &recipes.ClaimBook{})
		claim.checks(recipes.ErrMalformedRecord.Error())
	})
}

func TestTheRecordOfABrokenClaimGoesBeforeTheClaimsTime(t *testing.T) {
	inBubble(t, func(w world) {
		claim, store := w.claims("deploy"), w.NewReader()
		var book recipes.ClaimBook
		w.sweeps(store, &book)
		claim.extends(30*24*time.Hour, "ok")
		if _, err := orders.Break(w.living, store, claim.is.Token, "root", "leaked", recipes.ForceAfter{}); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			time.Sleep(time.Hour)
			w.sweeps(store, &book)
		}
		time.Sleep(25 * time.Hour)
		w.sweeps(store, &book)
		w.told("records and places", w.standing(), "0 0")
	})
}
