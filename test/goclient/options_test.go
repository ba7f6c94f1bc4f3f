package goclient

import (
	"errors"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	"github.com/sidekeeper/sidekeeper/sidekeepertest"
)

// TestWhatOnlyTheSidecarKnowsToBeWrongNamesItsRule has the options that the Go client does not check itself.
func TestWhatOnlyTheSidecarKnowsToBeWrongNamesItsRule(t *testing.T) {
	client, ctx := sidekeepertest.Start(t, sidekeepertest.Options{}).Client(), t.Context()
	lock := func(options sidekeeper.LockOptions) error {
		_, err := client.Acquire(ctx, "orders", options)
		return err
	}
	_, permits := client.AcquirePermits(ctx, "reports", sidekeeper.PermitsOptions{Permits: -1})
	_, size := client.EnterBarrier(ctx, "load-test", -1, sidekeeper.BarrierOptions{})
	_, conflict := client.Join(ctx, "workers", "one", sidekeeper.JoinOptions{OnConflict: 7})
	_, ttl := client.OpenLease(ctx, sidekeeper.LeaseOptions{TTL: -time.Second})
	_, grace := client.Revoke(ctx, "orders", sidekeeper.RevokeOptions{Grace: new(-time.Second)})
	for want, err := range map[string]error{
		`lock_delay is "-1s": a duration from 0s to 1m0s`: lock(sidekeeper.LockOptions{LockDelay: -time.Second}),
		`mode is "7": EXCLUSIVE, READ or WRITE`:           lock(sidekeeper.LockOptions{Mode: 7}),
		`permits is "-1": from 0 to 64`:                   permits,
		`size is "-1": from 1 to 1000`:                    size,
		`on_conflict is "7": REJECT, WAIT or REPLACE`:     conflict,
		`ttl is "-1s": a duration from 1ms to 24h0m0s`:    ttl,
		`grace is "-1s": a duration from 0s to 24h0m0s`:   grace,
	} {
		var told *sidekeeper.Error
		if !errors.As(err, &told) || told.Message != "invalid field: "+want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}
