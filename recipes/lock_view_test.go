package recipes_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sidekeeper/sidekeeper/internal/embedded"
	"github.com/sidekeeper/sidekeeper/recipes"
)

func TestAViewShowsWhoHoldsAndWhoWaits(t *testing.T) {
	inBubble(t, func(w world) {
		w.join(recipes.Read)
		w.foreign(hex32+"__rlock__", embedded.EphemeralSequential, "their host")
		w.join(recipes.Write)
		time.Sleep(time.Minute)
		w.join(recipes.Read)
		w.foreign("stranger", embedded.Persistent, "")
		w.revokeThrough(w.NewReader(), nil, 2)
		got, err := orders.View(w.Context(), w.NewReader())
		if err != nil {
			w.Fatal(err)
		}
		var lines []string
		for _, c := range append(got.Holders, got.Waiters...) {
			lines = append(lines, fmt.Sprintf("%v %q %v foreign=%v revoked=%v", c.Mode, c.Owner, c.Age, c.Foreign, c.Revoked))
		}
		want := []string{
			`read "read" 1m0s foreign=false revoked=true`, `read "" 1m0s foreign=true revoked=true`,
			`write "write" 1m0s foreign=false revoked=false`, `read "read" 0s foreign=false revoked=false`,
		}
		if diff := cmp.Diff(want, lines); diff != "" || len(got.Holders) != 2 || got.ForeignChildren != 1 {
			w.Error(diff, got.ForeignChildren)
		}
		if n, claims, err := orders.Contenders(w.Context(), w.NewReader()); n != 4 || claims != 0 || err != nil {
			w.Errorf("%d contenders, %d claims, %v", n, claims, err)
		}
	})
}

func TestALockThatNobodyHasAskedForHasAnEmptyView(t *testing.T) {
	inBubble(t, func(w world) {
		view, err := orders.View(w.Context(), w.NewReader())
		if diff := cmp.Diff(recipes.View{}, view); diff != "" || err != nil {
			w.Error(diff, err)
		}
	})
}

func TestAViewLeavesOutWhatWouldMakeItTooLarge(t *testing.T) {
	inBubble(t, func(w world) {
		session := w.session()
		for range 1700 {
			about := recipes.About{Owner: strings.Repeat("o", 128), Metadata: map[string]string{"k": strings.Repeat("v", 2000)}}
			data := fmt.Appendf(nil, `{"sidekeeper":1,"owner":%q,"metadata":{"k":%q}}`, about.Owner, about.Metadata["k"])
			if _, err := w.Create(orders.Path+"/"+hex32+"-lock-", data, embedded.EphemeralSequential, session.ID()); err != nil {
				w.Fatal(err)
			}
		}
		view, err := orders.View(w.Context(), w.NewReader())
		if err != nil || view.Omitted == 0 || len(view.Holders)+len(view.Waiters)+view.Omitted != 1700 {
			w.Errorf("%d + %d, %d omitted, %v", len(view.Holders), len(view.Waiters), view.Omitted, err)
		}
	})
}

func TestAViewIsWatchedForContendersAndForWhatHoldersAreAsked(t *testing.T) {
	inBubble(t, func(w world) {
		reader := w.NewReader()
		ctx := w.living
		var seen atomic.Int64
		go func() {
			for {
				_, changes, err := orders.WatchView(ctx, reader)
				if err == nil {
					seen.Add(1)
					err = changes.Wait(ctx)
				}
				if err != nil {
					return
				}
			}
		}()
		looked := func(what string) {
			w.Helper()
			synctest.Wait()
			if seen.Swap(0) == 0 {
				w.Errorf("%s was not seen", what)
			}
		}
		looked("an empty lock")
		place, err := orders.Join(w.living, w.session(), recipes.Read, recipes.About{})
		if err != nil {
			w.Fatal(err)
		}
		looked("the first contender")
		if _, err := orders.Join(w.living, w.session(), recipes.Read, recipes.About{}); err != nil {
			w.Fatal(err)
		}
		looked("the second contender")
		if _, err := orders.Revoke(w.Context(), w.NewReader(), "ann", "", nil); err != nil {
			w.Fatal(err)
		}
		looked("a revocation")
		place.Leave(w.living)
		looked("a release")
		time.Sleep(time.Hour)
		if got := seen.Load(); got != 0 {
			w.Errorf("looked %d times at nothing new", got)
		}
	})
}

func TestWaitingForChangesEndsWithItsContext(t *testing.T) {
	inBubble(t, func(w world) {
		_, changes, err := orders.WatchView(w.Context(), w.NewReader())
		if err != nil {
			w.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(w.living, time.Minute)
		defer cancel()
		if err := changes.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
			w.Error(err)
		}
	})
}
