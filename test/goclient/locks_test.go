package goclient

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	"github.com/sidekeeper/sidekeeper/sidekeepertest"
)

// accounts are two locks.
var accounts = []sidekeeper.WantedLock{{Name: "accounts/7"}, {Name: "accounts/9", Mode: sidekeeper.Read}}

func TestSeveralLocksAreOneHold(t *testing.T) {
	client := sidekeepertest.Start(t, sidekeepertest.Options{}).Client()
	held, err := client.AcquireAll(t.Context(), accounts, sidekeeper.AllOptions{Owner: "transfer"})
	if err != nil {
		t.Fatal(err)
	}
	if held.FencingToken("accounts/7") == 0 || held.FencingToken("other") != 0 {
		t.Errorf("tokens %d, %d", held.FencingToken("accounts/7"), held.FencingToken("other"))
	}
	if !held.Valid() {
		t.Error(held.Err())
	}
	if _, got, err := client.TryLock(t.Context(), "accounts/7", sidekeeper.LockOptions{}); got || err != nil {
		t.Errorf("one of them: %v, %v", got, err)
	}
	_, err = client.AcquireAll(t.Context(), accounts, sidekeeper.AllOptions{Wait: new(time.Duration)})
	if !errors.Is(err, sidekeeper.ErrLockHeld) {
		t.Errorf("all of them: %v", err)
	}
	if err := held.Release(t.Context()); err != nil {
		t.Error(err)
	}
	if err := held.Release(t.Context()); err != nil || held.Err() != nil {
		t.Error(err, held.Err())
	}
}

func TestWhoeverWaitsForSeveralLocksIsToldForWhich(t *testing.T) {
	client := sidekeepertest.Start(t, sidekeepertest.Options{}).Client()
	first, err := client.Acquire(t.Context(), "accounts/9", sidekeeper.LockOptions{Mode: sidekeeper.Write})
	if err != nil {
		t.Fatal(err)
	}
	told := make(chan map[string]int, 10)
	options := sidekeeper.AllOptions{OnQueued: func(ahead map[string]int) { told <- ahead }}
	granted := make(chan error, 1)
	go func() {
		held, err := client.AcquireAll(t.Context(), accounts, options)
		if err == nil {
			err = held.Release(t.Context())
		}
		granted <- err
	}()
	if ahead := <-told; len(ahead) != 1 || ahead["accounts/9"] != 1 {
		t.Errorf("ahead: %v", ahead)
	}
	if err := first.Release(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-granted; err != nil {
		t.Error(err)
	}
}

func TestWhatIsWrittenUnderSeveralLocksIsGuardedByEach(t *testing.T) {
	sidecar := sidekeepertest.Start(t, sidekeepertest.Options{})
	client := sidecar.Client()
	err := client.WithLocks(t.Context(), accounts, sidekeeper.AllOptions{}, func(ctx context.Context, held *sidekeeper.Locks) error {
		if _, err := client.Config().Put(ctx, "balance", []byte("1")); err != nil {
			t.Errorf("while held: %v", err)
		}
		if tickets := sidekeeper.Tickets(ctx); !slices.Equal(tickets, held.Tickets()[:1]) {
			t.Errorf("tickets %v of %v", tickets, held.Tickets())
		}
		if err := sidecar.ExpireLock(t.Context(), "accounts/9"); err != nil { // ctx ends by it
			t.Error(err)
		}
		<-ctx.Done()
		_, err := client.Config().Put(context.WithoutCancel(ctx), "balance", []byte("2"))
		if !errors.Is(err, sidekeeper.ErrGuardLost) {
			t.Errorf("when they were lost: %v", err)
		}
		return nil
	})
	if !errors.Is(err, sidekeeper.ErrLost) {
		t.Error(err)
	}
}
