package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/support/standin"
)

var claims = recipes.Claims{Path: "/claims", Clock: "/claims/=clock", Tolerance: 5 * time.Second}

// A claimer is one who claims the lock `orders`, and how far it has come.
type claimer struct {
	world
	store recipes.Store
	id    string
	late  chan struct{}

	mu    sync.Mutex
	state string
	is    recipes.ClaimState
}

// claims has one claim the lock for an hour.
func (w world) claims(id string) *claimer {
	c := &claimer{world: w, store: w.NewReader(), id: id, late: make(chan struct{}), state: "waiting"}
	go c.claim(w.living)
	synctest.Wait()
	return c
}

func (c *claimer) claim(ctx context.Context) {
	got, err := claims.Claim(ctx, c.store, orders, recipes.ClaimRequest{ID: c.id, Reason: "apply", For: time.Hour}, c.late)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.is, c.state = got, claimWord(err)
}

// claimWord is a word for what a call about a claim was told.
func claimWord(err error) string {
	for _, known := range []struct {
		err  error
		word string
	}{
		{recipes.ErrNoClaim, "none"},
		{recipes.ErrClaimEnded, "over"},
		{recipes.ErrClaimWaits, "late"},
		{recipes.ErrClaimAsked, "asked"},
		{recipes.ErrOtherClaim, "other"},
		{recipes.ErrTooManyClaims, "many"},
		{recipes.ErrGone, "gone"},
		{recipes.ErrKindMismatch, "mismatch"},
	} {
		if errors.Is(err, known.err) {
			return known.word
		}
	}
	if err != nil {
		return err.Error()
	}
	return "ok"
}

func (c *claimer) stands(want string) {
	c.Helper()
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.told("claim "+c.id, c.state, want)
}

func (c *claimer) checks(want string) {
	c.Helper()
	of, err := claims.Check(c.living, c.store, c.id)
	said := claimWord(err)
	if err == nil {
		said = fmt.Sprint(of.Reserved, " ", of.Valid)
	}
	c.told("check", said, want)
}

func (c *claimer) extends(span time.Duration, want string) {
	c.Helper()
	_, err := claims.Extend(c.living, c.store, c.id, span)
	c.told("extend", claimWord(err), want)
}

func (c *claimer) releases(want string) {
	c.Helper()
	_, err := claims.Release(c.living, c.store, c.id)
	c.told("release", claimWord(err), want)
	synctest.Wait()
}

func (w world) sweeps(store recipes.Store, book *recipes.ClaimBook) {
	w.Helper()
	if _, err := claims.Sweep(w.living, store, book); err != nil {
		w.Error(err)
	}
	synctest.Wait()
}

// standing is what stands in the directory of claims, without the clock, and in the queue.
func (w world) standing() string {
	w.Helper()
	var counts []string
	for _, directory := range []string{claims.Path, orders.Path} {
		names, err := w.NewReader().Children(w.living, directory)
		if err != nil && !errors.Is(err, recipes.ErrNoNode) {
			w.Fatal(err)
		}
		counts = append(counts, fmt.Sprint(len(names)-strings.Count(strings.Join(names, " "), "=clock")))
	}
	return strings.Join(counts, " ")
}

func TestAClaimStandsInTheQueueAsOthersDo(t *testing.T) {
	inBubble(t, func(w world) {
		first := w.join(recipes.Exclusive)
		claim := w.claims("deploy")
		claim.stands("waiting")
		last := w.join(recipes.Exclusive)
		first.quit()
		claim.stands("ok")
		w.expect("left, waiting", first, last)
		claim.checks("1h0m0s 58s")
		claim.releases("ok")
		w.expect("holding", last)
		claim.releases("ok")
		claim.checks("over")
		claim.extends(time.Minute, "over")
		if claim.is.Token <= first.hold.Token || claim.is.Token >= last.hold.Token {
			t.Errorf("tokens %d, %d, %d", first.hold.Token, claim.is.Token, last.hold.Token)
		}
		last.quit()
		w.told("records and places", w.standing(), "1 0")
	})
}

// The delay of a hold that was lost is over first, for a claim that waited and for one that comes later.
func TestAClaimOutwaitsTheDelayOfALostHold(t *testing.T) {
	for name, waits := range map[string]bool{"that waits": true, "that comes later": false} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(w world) {
				holder := w.delayed(recipes.Exclusive, 20)
				var claim *claimer
				if waits {
					claim = w.claims("deploy")
				}
				holder.session.Expire()
				<-holder.over
				if !waits {
					claim = w.claims("deploy")
				}
				time.Sleep(20*time.Second - 1)
				claim.stands("waiting")
				time.Sleep(time.Second)
				claim.stands("ok")
			})
		})
	}
}

func TestAClaimMayBeAskedForAgain(t *testing.T) {
	inBubble(t, func(w world) {
		first := w.join(recipes.Exclusive)
		calling, hangUp := context.WithCancel(w.living)
		gone := &claimer{world: w, store: w.NewReader(), id: "deploy"}
		go gone.claim(calling)
		synctest.Wait()
		hangUp()
		gone.stands(context.Canceled.Error())
		second := w.join(recipes.Exclusive)
		claim := w.claims("deploy")
		first.quit()
		claim.stands("ok")
		w.expect("waiting", second)
		again := w.claims("deploy")
		again.stands("ok")
		w.told("the same place", fmt.Sprint(again.is.Token), fmt.Sprint(claim.is.Token))
		_, err := claims.Claim(w.living, claim.store, recipes.Lock{Path: "/locks/other"}, recipes.ClaimRequest{ID: "deploy", For: time.Hour}, nil)
		w.told("of another lock", claimWord(err), "other")
		claim.releases("ok")
		w.expect("holding", second)
		w.claims("deploy").stands("over")
		second.quit()
	})
}

func TestAClaimThatIsNotGrantedInTimeIsWithdrawn(t *testing.T) {
	inBubble(t, func(w world) {
		first := w.join(recipes.Exclusive)
		claim := w.claims("deploy")
		time.Sleep(5 * time.Minute) // it says meanwhile that it waits
		var book recipes.ClaimBook
		w.sweeps(w.NewReader(), &book)
		claim.stands("waiting")
		close(claim.late)
		claim.stands("late")
		claim.checks("none")
		w.told("records and places", w.standing(), "0 1")
		first.quit()
	})
}

func TestAClaimThatNoCallerWaitsForAnyMoreGoesByItself(t *testing.T) {
	inBubble(t, func(w world) {
		first := w.join(recipes.Exclusive)
		calling, hangUp := context.WithCancel(w.living)
		gone := &claimer{world: w, store: w.NewReader(), id: "deploy"}
		go gone.claim(calling)
		synctest.Wait()
		hangUp()
		var book recipes.ClaimBook
		second := w.join(recipes.Exclusive)
		first.quit()
		w.expect("waiting", second)
		time.Sleep(34 * time.Second)
		w.sweeps(w.NewReader(), &book)
		w.expect("waiting", second)
		time.Sleep(2 * time.Second)
		w.sweeps(w.NewReader(), &book)
		w.expect("holding", second)
		second.quit()
	})
}

func TestAClaimEndsWhenBothClocksArePastItsEndAndNotBefore(t *testing.T) {
	inBubble(t, func(w world) {
		claim, waiter, store := w.claims("deploy"), w.join(recipes.Exclusive), w.NewReader()
		fresh := func() *recipes.ClaimBook { return &recipes.ClaimBook{} }
		time.Sleep(time.Hour + 4*time.Second)
		w.sweeps(store, fresh())
		w.sweeps(ahead{store, time.Hour}, fresh()) // a leader's clock alone
		w.expect("waiting", waiter)
		claim.checks("0s 0s")
		time.Sleep(2 * time.Second)
		w.sweeps(ahead{store, -time.Hour}, fresh()) // this machine's clock alone
		w.expect("waiting", waiter)
		w.sweeps(store, fresh())
		w.expect("holding", waiter)
		claim.checks("over")
		claim.releases("over")
		w.told("its record stays", w.standing(), "1 1")
		time.Sleep(25 * time.Hour)
		w.sweeps(store, fresh())
		w.told("for a day", w.standing(), "0 1")
		claim.checks("none")
		waiter.quit()
	})
}

func TestAClaimThatIsExtendedMeanwhileDoesNotEnd(t *testing.T) {
	inBubble(t, func(w world) {
		claim, waiter, store := w.claims("deploy"), w.join(recipes.Exclusive), w.NewReader()
		claim.extends(time.Minute, "ok")
		claim.checks("1h0m0s 58s") // it shortens nothing
		time.Sleep(time.Hour + time.Minute)
		claim.checks("0s 0s")
		store.Before(func(of standin.Operation) error {
			if of.Name == "Commit" && of.Path != claims.Clock {
				store.Before(nil)
				claim.extends(time.Hour, "ok")
			}
			return nil
		})
		w.sweeps(store, &recipes.ClaimBook{})
		w.expect("waiting", waiter)
		claim.checks("1h0m0s 58s")
		waiter.quit()
	})
}

func TestABrokenClaimCountsForAsLongAsItWasSaidTo(t *testing.T) {
	inBubble(t, func(w world) {
		claim, waiter := w.claims("deploy"), w.join(recipes.Exclusive)
		claim.checks("1h0m0s 58s")
		since := time.Now()
		broken := make(chan error)
		go func() {
			forced, err := orders.Break(w.living, w.NewReader(), claim.is.Token, "root", "leaked", recipes.ForceAfter{Timeout: 10 * time.Second})
			if !forced {
				w.Error("not forced")
			}
			broken <- err
		}()
		time.Sleep(58 * time.Second)
		claim.checks("59m2s 0s")
		claim.extends(time.Hour, "asked")
		w.expect("waiting", waiter)
		if err := <-broken; err != nil || time.Since(since) < 58*time.Second {
			w.Errorf("%v after %v", err, time.Since(since))
		}
		synctest.Wait()
		w.expect("holding", waiter)
		claim.checks("over")
		waiter.quit()
	})
}

func TestAClaimThatWaitsIsBrokenToo(t *testing.T) {
	inBubble(t, func(w world) {
		first := w.join(recipes.Exclusive)
		claim := w.claims("deploy")
		view, err := orders.View(w.living, w.NewReader())
		if err != nil || len(view.Waiters) != 1 || view.Waiters[0].Reserved == nil || view.Waiters[0].Reserved.Reason != "apply" {
			t.Fatalf("%+v, %v", view, err)
		}
		forced, err := orders.Break(w.living, w.NewReader(), view.Waiters[0].Token, "root", "no", recipes.ForceAfter{})
		if forced || err != nil {
			t.Error(forced, err)
		}
		claim.stands("gone")
		w.told("records and places", w.standing(), "0 1")
		_, err = orders.Revoke(w.living, w.NewReader(), "root", "please", nil)
		w.told("the holder is asked", fmt.Sprint(err), "<nil>")
		first.quit()
	})
}

func TestThereIsNoProcessToAskForAClaim(t *testing.T) {
	inBubble(t, func(w world) {
		claim := w.claims("deploy")
		asked, err := orders.Revoke(w.living, w.NewReader(), "root", "please", nil)
		if asked != 0 || !errors.Is(err, recipes.ErrNoProcess) {
			t.Error(asked, err)
		}
		claim.checks("1h0m0s 58s")
		claim.extends(2*time.Hour, "ok")
	})
}

func TestALockHasSoManyClaims(t *testing.T) {
	inBubble(t, func(w world) {
		var all []*claimer
		for i := range recipes.MaxClaimsOfLock {
			all = append(all, w.claims(fmt.Sprint("claim-", i)))
		}
		w.claims("one-more").stands("many")
		all[0].releases("ok")
		all[1].stands("ok")
		w.claims("one-more").stands("waiting")
	})
}

func TestACheckOfAClaimShowsWhatWasCommittedBefore(t *testing.T) {
	inBubble(t, func(w world) {
		claim, lagging := w.claims("deploy"), w.NewReader()
		claim.releases("ok")
		again := w.claims("again")
		if _, err := claims.Check(w.living, lagging, again.id); err != nil {
			t.Fatal(err)
		}
		lagging.Lag()
		w.claims("late") // so that the reader has something to miss
		again.releases("ok")
		again.store = lagging
		again.checks("over")
	})
}

func TestAClaimIsNotGrantedOnceItsEndIsAskedFor(t *testing.T) {
	inBubble(t, func(w world) {
		first, store, broken := w.join(recipes.Exclusive), w.NewReader(), make(chan error, 1)
		claim := &claimer{world: w, store: store, id: "deploy", late: make(chan struct{}), state: "waiting"}
		go claim.claim(w.living)
		synctest.Wait()
		view, err := orders.View(w.living, w.NewReader())
		if err != nil {
			t.Fatal(err)
		}
		store.Before(func(of standin.Operation) error {
			if of.Name == "Commit" && len(broken) == 0 {
				store.Before(nil)
				go func() {
					_, err := orders.Break(w.living, w.NewReader(), view.Waiters[0].Token, "root", "no", recipes.ForceAfter{})
					broken <- err
				}()
				time.Sleep(time.Millisecond)
			}
			return nil
		})
		first.quit()
		time.Sleep(time.Second)
		claim.stands("gone")
		if err := <-broken; err != nil {
			t.Error(err)
		}
		w.told("records and places", w.standing(), "0 0")
	})
}

func TestAClaimWhoseNodeCuratorHasOverwrittenIsBrokenLate(t *testing.T) {
	inBubble(t, func(w world) {
		claim, begun := w.claims("deploy"), time.Now()
		store := w.NewReader()
		names, err := store.Children(w.living, orders.Path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := store.Commit(w.living, recipes.Set(orders.Path+"/"+names[0], []byte("__REVOKE__"), -1)); err != nil {
			t.Fatal(err)
		}
		claim.checks("1h0m0s 0s") // it may hide that an operator ends it
		claim.extends(time.Hour, "ok")
		claim.checks("1h0m0s 58s")
		for _, text := range []string{"mine", "__REVOKE__"} {
			if _, err := store.Commit(w.living, recipes.Set(orders.Path+"/"+names[0], []byte(text), -1)); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := orders.Break(w.living, store, claim.is.Token, "root", "leaked", recipes.ForceAfter{Timeout: 10 * time.Second}); err != nil {
			t.Error(err)
		}
		if took := time.Since(begun); took < time.Minute {
			t.Errorf("removed after %v", took)
		}
		view, err := orders.View(w.living, store)
		if err != nil || len(view.Holders) > 0 {
			t.Error(view, err)
		}
	})
}
