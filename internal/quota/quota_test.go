package quota_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/embedded"
	"github.com/sidekeeper/sidekeeper/internal/quota"
	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/test/support/bubble"
	"github.com/sidekeeper/sidekeeper/test/support/standin"
)

const full, other = "/app/config/full", "/app/config/other"

// A world has an ensemble that counts nothing by itself, with a Keeper of what lies below /app.
type world struct {
	*testing.T
	ensemble *standin.Ensemble
	store    *standin.Reader
	keeper   *quota.Keeper
}

func inWorld(t *testing.T, test func(world)) {
	t.Helper()
	bubble.Test(t, func(t *testing.T) {
		ensemble := standin.New(standin.Options{})
		defer ensemble.Close()
		for _, path := range []string{"/app", "/app/config", full, other} {
			if _, err := ensemble.Create(path, nil, embedded.Persistent, 0); err != nil {
				t.Fatal(err)
			}
		}
		w := world{t, ensemble, ensemble.NewReader(), quota.NewKeeper([]string{"/app"})}
		ctx, stop := context.WithCancel(t.Context())
		over := make(chan struct{})
		go func() { defer close(over); w.keeper.Run(ctx, w.store) }()
		test(w)
		stop()
		<-over
	})
}

func (w world) set(path string, nodes, bytes int64) {
	w.Helper()
	if err := quota.Set(w.Context(), w.store, path, quota.Amount{Nodes: nodes, Bytes: bytes}); err != nil {
		w.Fatal(err)
	}
}

// counts has the servers say what is used.
func (w world) counts(path, stats string) {
	w.Helper()
	if _, err := w.store.Commit(w.Context(), recipes.Set(quota.Root+path+"/zookeeper_stats", []byte(stats), -1)); err != nil {
		w.Fatal(err)
	}
}

func (w world) admits(changes ...recipes.Change) string {
	err := w.keeper.Admit(w.Context(), w.store, changes...)
	var exceeded *recipes.QuotaExceeded
	if errors.As(err, &exceeded) {
		return fmt.Sprintf("%s of %s: %d + %d > %d", exceeded.Limit, exceeded.Path, exceeded.Used, exceeded.Wanted, exceeded.Max)
	}
	return fmt.Sprint(err)
}

func (w world) same(what string, got, want any) {
	w.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		w.Errorf("%s: %v, want %v", what, got, want)
	}
}

func TestWhatWouldExceedAQuotaIsRefusedBeforehand(t *testing.T) {
	inWorld(t, func(w world) {
		w.set(full, 3, 100)
		w.counts(full, "count=2,bytes=90")
		synctest.Wait()
		create := func(size int) recipes.Change { return recipes.Create(full+"/new", make([]byte, size)) }
		w.same("as much as there may be", w.admits(create(10)), "<nil>")
		w.same("too many bytes", w.admits(create(11)), "bytes of /app/config/full: 90 + 11 > 100")
		w.same("elsewhere", w.admits(recipes.Create(other+"/new", make([]byte, 1000))), "<nil>")
		w.same("in one transaction", w.admits(create(0), recipes.Create(full+"/new2", nil)), "nodes of /app/config/full: 2 + 2 > 3")
		w.same("that also deletes", w.admits(recipes.Delete(full+"/old", -1), create(0), recipes.Create(full+"/new2", nil)), "<nil>")
		if _, err := w.store.Commit(w.Context(), recipes.Set(full, make([]byte, 80), -1)); err != nil {
			t.Fatal(err)
		}
		w.same("in place of as much", w.admits(recipes.Set(full, make([]byte, 90), -1)), "<nil>")
		w.same("in place of less", w.admits(recipes.Set(full, make([]byte, 91), -1)), "bytes of /app/config/full: 90 + 11 > 100")
		session := w.ensemble.OpenSession(10 * time.Second)
		defer session.Close(t.Context())
		if _, err := w.ensemble.Create(full+"/place", nil, embedded.Ephemeral, session.ID()); err != nil {
			t.Fatal(err)
		}
		w.same("a mark at a place", w.admits(recipes.Set(full+"/place", make([]byte, 91), -1)), "<nil>")
		w.same("made and then set", w.admits(create(0), recipes.Set(full+"/new", make([]byte, 11), 0)), "bytes of /app/config/full: 90 + 11 > 100")
	})
}

func TestAQuotaIsReadAgainEveryFewSecondsAndBeforeItRefuses(t *testing.T) {
	inWorld(t, func(w world) {
		w.set(full, 10, quota.None)
		synctest.Wait()
		create := recipes.Create(full+"/new", nil)
		w.keeper.Note(create, create, create, create, create, create, create, create, create, create)
		w.counts(full, "count=9,bytes=0")
		w.same("after others were deleted", w.admits(create), "<nil>")
		w.counts(full, "count=10,bytes=0")
		w.same("as it is known", w.admits(create), "nodes of /app/config/full: 10 + 1 > 10")
		w.set(other, 1, quota.None)
		w.counts(other, "count=1,bytes=0")
		<-time.After(6 * time.Second)
		synctest.Wait()
		w.same("that was set later", w.admits(recipes.Create(other+"/new", nil)), "nodes of /app/config/other: 1 + 1 > 1")
		if err := quota.Remove(w.Context(), w.store, other); err != nil {
			t.Fatal(err)
		}
		w.same("that is gone", w.admits(recipes.Create(other+"/new", nil)), "<nil>")
	})
}

func TestQuotasAreSetListedAndRemoved(t *testing.T) {
	inWorld(t, func(w world) {
		w.set(full, 10, quota.None)
		w.set(full, quota.None, 20)
		w.set(other, 1, 2)
		w.set("/elsewhere", 1, 2)
		w.counts(other, "count=3,bytes=4")
		soft := []byte("count=5,bytes=-1=;byteHardLimit=7;countHardLimit=6") // as zkCli writes it
		if _, err := w.store.Commit(w.Context(), recipes.Set(quota.Root+"/elsewhere/zookeeper_limits", soft, -1)); err != nil {
			t.Fatal(err)
		}
		found, err := quota.Read(w.Context(), w.store, "/app/config/other", "/app/config/full/below")
		w.same("below and above", fmt.Sprint(found, err), "[{/app/config/full {-1 20} {0 0}} {/app/config/other {1 2} {3 4}}] <nil>")
		found, err = quota.Read(w.Context(), w.store, "/elsewhere")
		w.same("soft and hard", fmt.Sprint(found, err), "[{/elsewhere {5 7} {0 0}}] <nil>")
		for _, nested := range []string{"/app", full + "/below"} {
			if err := quota.Set(w.Context(), w.store, nested, quota.Amount{Nodes: 1}); !errors.Is(err, quota.ErrNested) {
				t.Errorf("%s: %v", nested, err)
			}
		}
		for _, path := range []string{full, other, "/elsewhere"} {
			w.same("removed", quota.Remove(w.Context(), w.store, path), nil)
			w.same("removed again", quota.Remove(w.Context(), w.store, path), quota.ErrNone)
		}
		names, err := w.store.Children(w.Context(), quota.Root)
		w.same("left", fmt.Sprint(names, err), "[] <nil>")
	})
}
