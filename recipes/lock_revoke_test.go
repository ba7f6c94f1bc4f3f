package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/embedded"
	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/support/standin"
)

func owners(contenders []recipes.Contender) []string {
	var owners []string
	for _, c := range contenders {
		owners = append(owners, c.Owner)
	}
	return owners
}

func (w world) revoke(grace *time.Duration) {
	w.Helper()
	w.revokeThrough(w.NewReader(), grace, 1)
}

func (w world) revokeThrough(store recipes.Store, grace *time.Duration, want int) {
	w.Helper()
	asked, err := orders.Revoke(w.Context(), store, "ann", "upgrade", grace)
	if err != nil || asked != want {
		w.Fatalf("asked %d, %v; want %d", asked, err, want)
	}
	synctest.Wait()
}

func TestAHolderIsAskedInAnyOfTheThreeForms(t *testing.T) {
	for _, data := range []string{"unlock", "__REVOKE__", `{"sidekeeper":1,"revoke":{"by":"ann"}}`} {
		inBubble(t, func(w world) {
			holder, waiter := w.join(recipes.Exclusive), w.join(recipes.Exclusive)
			if err := w.Set(w.pathOf(holder), []byte(data)); err != nil {
				w.Fatal(err)
			}
			w.expect("asked, waiting", holder, waiter)
		})
	}
}

func TestRevokeAsksEveryHolderAndNoWaiter(t *testing.T) {
	inBubble(t, func(w world) {
		r1, r2, w3, r4 := w.join(recipes.Read), w.join(recipes.Read), w.join(recipes.Write), w.join(recipes.Read)
		w.revokeThrough(w.NewReader(), new(time.Minute), 2)
		w.expect("asked, asked, waiting, waiting", r1, r2, w3, r4)
		asked, _, err := r2.hold.Look(w.Context())
		if got := fmt.Sprint(asked.By, " ", asked.Reason, " ", *asked.Grace, asked.Break, err); got != "ann upgrade 1m0s false <nil>" {
			w.Error(got)
		}
		r1.quit()
		r2.quit()
		w.expect("holding", w3)
	})
}

func TestAskingNobodyIsNoError(t *testing.T) {
	inBubble(t, func(w world) { w.revokeThrough(w.NewReader(), nil, 0) })
}

func TestAForeignHolderIsAskedInCuratorsForm(t *testing.T) {
	inBubble(t, func(w world) {
		path := w.foreign("_c_"+hex32+"-lock-", embedded.EphemeralSequential, "10.0.0.1")
		for range 2 {
			w.revoke(nil)
			if node, err := w.Read(path); err != nil || string(node.Data) != "__REVOKE__" {
				w.Errorf("data %q, %v", node.Data, err)
			}
		}
	})
}

func TestARevocationMeetsAnotherWriter(t *testing.T) {
	inBubble(t, func(w world) {
		holder := w.join(recipes.Exclusive)
		reader, raced := w.NewReader(), false
		reader.Before(func(o standin.Operation) error {
			if o.Name == "Commit" && !raced {
				raced = true
				return w.Set(o.Path, []byte(`{"sidekeeper":1,"owner":"renamed"}`))
			}
			return nil
		})
		w.revokeThrough(reader, nil, 1)
		w.expect("asked", holder)
		if view, err := orders.View(w.Context(), reader); err != nil || view.Holders[0].Owner != "renamed" {
			w.Errorf("%+v, %v", view, err)
		}
	})
}

func TestALostReplyIsLookedInto(t *testing.T) {
	inBubble(t, func(w world) {
		holder := w.join(recipes.Exclusive)
		reader, lost := w.NewReader(), 1
		reader.After(func(o standin.Operation) error {
			if o.Name == "Commit" && reader.Count("Commit") <= lost {
				return recipes.ErrOutcomeUnknown
			}
			return nil
		})
		w.revokeThrough(reader, new(time.Minute), 1)
		w.expect("asked", holder)
		if got := reader.Count("Commit"); got != 1 {
			w.Errorf("set %d times", got)
		}
		holder.quit()
		path := w.foreign("_c_"+hex32+"-lock-", embedded.EphemeralSequential, "10.0.0.1")
		node, err := w.Read(path)
		if err != nil {
			w.Fatal(err)
		}
		lost = 3 // it is asked, and removed, and both replies are lost; it is removed again
		forced, err := orders.Break(w.Context(), reader, node.Czxid, "ann", "stuck", after(time.Second))
		if !forced || err != nil || reader.Count("Commit") != 4 {
			w.Errorf("forced %v, %v, %d writes", forced, err, reader.Count("Commit"))
		}
	})
}

func TestBreakWithAnotherTokenTouchesNobody(t *testing.T) {
	inBubble(t, func(w world) {
		holder := w.join(recipes.Exclusive)
		_, err := orders.Break(w.Context(), w.NewReader(), holder.hold.Token+1, "ann", "stuck", after(time.Second))
		if !errors.Is(err, recipes.ErrTokenMismatch) {
			w.Errorf("%v", err)
		}
		w.expect("holding", holder)
	})
}

func TestBreakEndsExactlyThatContender(t *testing.T) {
	inBubble(t, func(w world) {
		holder, waiter, last := w.join(recipes.Exclusive), w.join(recipes.Exclusive), w.join(recipes.Exclusive)
		view, err := orders.View(w.Context(), w.NewReader())
		if err != nil {
			w.Fatal(err)
		}
		for i, want := range []string{"holding, broken, waiting", "broken, broken, holding"} {
			token := []int64{view.Waiters[0].Token, holder.hold.Token}[i]
			forced, err := orders.Break(w.Context(), w.NewReader(), token, "ann", "stuck", after(time.Minute))
			if forced || err != nil {
				w.Errorf("forced %v, %v", forced, err)
			}
			w.expect(want, holder, waiter, last)
		}
	})
}

func TestBreakFindsAContenderThatAReaderHasNotHeardOf(t *testing.T) {
	inBubble(t, func(w world) {
		reader := w.NewReader()
		reader.Lag()
		holder := w.join(recipes.Exclusive)
		done := make(chan error)
		go func() {
			_, err := orders.Break(w.living, reader, holder.hold.Token, "ann", "stuck", after(time.Minute))
			done <- err
		}()
		w.expect("broken", holder)
		reader.KeepUp()
		if err := <-done; err != nil {
			w.Error(err)
		}
	})
}

func TestBreakRemovesAPlaceByForceWhenItsTimeIsOver(t *testing.T) {
	inBubble(t, func(w world) {
		path := w.foreign("_c_"+hex32+"-lock-", embedded.EphemeralSequential, "10.0.0.1")
		waiter := w.join(recipes.Exclusive)
		node, err := w.Read(path)
		if err != nil {
			w.Fatal(err)
		}
		started := time.Now()
		forced, err := orders.Break(w.Context(), w.NewReader(), node.Czxid, "ann", "stuck", after(17*time.Second))
		if !forced || err != nil || time.Since(started) != 17*time.Second {
			w.Errorf("forced %v, %v, after %v", forced, err, time.Since(started))
		}
		w.expect("holding", waiter)
	})
}

// Whatever ends a session from outside leaves it the time for which its owner may still count on it.
func TestAPlaceIsLeftToItsSidecarUntilItsSessionMustHaveExpired(t *testing.T) {
	for data, want := range map[string]time.Duration{
		`{"sidekeeper":1,"timeout_ms":60000}`:                  62 * time.Second,
		`{"sidekeeper":1}`:                                     42 * time.Second,
		`{"timeout_ms":1}`:                                     42 * time.Second,
		`{"sidekeeper":1,"timeout_ms":-5}`:                     42 * time.Second,
		`{"sidekeeper":1,"timeout_ms":9223372036854775807}`:    24*time.Hour + 2*time.Second,
		`{"sidekeeper":1,"timeout_ms":9223372036854775808000}`: 42 * time.Second,
	} {
		inBubble(t, func(w world) {
			until := recipes.ForceAfter{Timeout: 40 * time.Second, Tick: 2 * time.Second}
			path := w.foreign("_c_"+hex32+"-lock-", embedded.EphemeralSequential, data)
			node, err := w.Read(path)
			if err != nil {
				w.Fatal(err)
			}
			w.foreignMember("a", data)
			began := time.Now()
			forced, err := orders.Break(w.Context(), w.NewReader(), node.Czxid, "ann", "stuck", until)
			if took := time.Since(began); !forced || err != nil || took != want {
				w.Errorf("%s: a place is ended after %v: %v %v", data, took, forced, err)
			}
			began = time.Now()
			forced, err = shop.Evict(w.Context(), w.NewReader(), "a", recipes.Eviction{ForceAfter: until})
			if took := time.Since(began); !forced || err != nil || took != want {
				w.Errorf("%s: a member is ended after %v: %v %v", data, took, forced, err)
			}
		})
	}
}

func TestBreakEndsWithItsContext(t *testing.T) {
	inBubble(t, func(w world) {
		path := w.foreign("_c_"+hex32+"-lock-", embedded.EphemeralSequential, "")
		node, err := w.Read(path)
		if err != nil {
			w.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(w.living, time.Second)
		defer cancel()
		if _, err := orders.Break(ctx, w.NewReader(), node.Czxid, "", "", after(time.Hour)); !errors.Is(err, context.DeadlineExceeded) {
			w.Error(err)
		}
	})
}

func TestAHolderWhoseDataOthersReplacedIsBrokenWithoutForce(t *testing.T) {
	inBubble(t, func(w world) {
		holder := w.join(recipes.Exclusive)
		if err := w.Set(w.pathOf(holder), []byte("__REVOKE__")); err != nil {
			w.Fatal(err)
		}
		forced, err := orders.Break(w.Context(), w.NewReader(), holder.hold.Token, "ann", "stuck", after(time.Minute))
		if forced || err != nil {
			w.Errorf("forced %v, %v", forced, err)
		}
		w.expect("broken", holder)
	})
}
