package goclient

import (
	"errors"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	"github.com/sidekeeper/sidekeeper/sidekeepertest"
)

func TestAPermitBearsANumberUntilItIsReleasedOrLost(t *testing.T) {
	sidecar, ctx := sidekeepertest.Start(t, sidekeepertest.Options{}), t.Context()
	client := sidecar.Client()
	if err := client.CreateSemaphore(ctx, "ids", 3); err != nil {
		t.Fatal(err)
	}
	acquire := func(options sidekeeper.PermitsOptions, want int) *sidekeeper.Permits {
		t.Helper()
		permits, err := client.AcquirePermits(ctx, "ids", options)
		if err != nil {
			t.Fatal(err)
		}
		if permits.Number() != want || !permits.Valid() {
			t.Fatalf("number %d, not %d; valid: %v", permits.Number(), want, permits.Valid())
		}
		return permits
	}
	numbered := sidekeeper.PermitsOptions{Numbered: true}
	first := acquire(numbered, 0)
	second := acquire(numbered, 1)
	acquire(sidekeeper.PermitsOptions{}, -1)
	if err := first.Release(ctx); err != nil {
		t.Fatal(err)
	}
	third := acquire(numbered, 0)
	view, err := client.GetSemaphore(ctx, "ids")
	if err != nil || len(view.Holders) != 3 || *view.Holders[0].Number != 1 || view.Holders[1].Number != nil {
		t.Errorf("%+v, %v", view, err)
	}
	if err := errors.Join(second.Release(ctx), third.Release(ctx)); err != nil {
		t.Fatal(err)
	}

	lost := acquire(sidekeeper.PermitsOptions{Numbered: true, Quarantine: new(time.Hour)}, 0)
	if _, err := sidecar.ExpireAll(ctx); err != nil {
		t.Fatal(err)
	}
	<-lost.Done()
	_ = lost.Release(ctx)
	acquire(numbered, 1)
	view, err = client.GetSemaphore(ctx, "ids")
	if err != nil || len(view.Quarantines) != 1 || view.Quarantines[0].Number != 0 || time.Until(view.Quarantines[0].Until) < 59*time.Minute {
		t.Errorf("%+v, %v", view, err)
	}
}
