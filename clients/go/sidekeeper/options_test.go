package sidekeeper_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
)

// TestATimeBelowZeroIsRefusedAtOnce has no sidecar: what is refused is not sent.
func TestATimeBelowZeroIsRefusedAtOnce(t *testing.T) {
	client, err := sidekeeper.Dial("unix:///nowhere/s.sock")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	ctx, below := t.Context(), new(-time.Second)
	for want, call := range map[string]func() error{
		"lease: Wait": func() error {
			_, err := client.OpenLease(ctx, sidekeeper.LeaseOptions{Wait: below})
			return err
		},
		"lock a: Wait": func() error {
			_, err := client.Acquire(ctx, "a", sidekeeper.LockOptions{Wait: below})
			return err
		},
		"lock a: SuspensionGrace": func() error {
			return client.WithLock(ctx, "a", sidekeeper.LockOptions{SuspensionGrace: below}, func(context.Context, *sidekeeper.Lock) error {
				t.Error("nothing is held")
				return nil
			})
		},
		"locks a: Wait": func() error {
			_, err := client.AcquireAll(ctx, []sidekeeper.WantedLock{{Name: "a"}}, sidekeeper.AllOptions{Wait: below})
			return err
		},
		"permits of a: Wait": func() error {
			_, err := client.AcquirePermits(ctx, "a", sidekeeper.PermitsOptions{Wait: below})
			return err
		},
		"work a b: Wait": func() error {
			_, err := client.Begin(ctx, "a", "b", sidekeeper.OnceOptions{Wait: below})
			return err
		},
		"entry of barrier a: Wait": func() error {
			_, err := client.EnterBarrier(ctx, "a", 2, sidekeeper.BarrierOptions{Wait: below})
			return err
		},
		"leadership of a: Wait": func() error {
			_, err := client.Campaign(ctx, "a", sidekeeper.CampaignOptions{Candidate: "b", Wait: below})
			return err
		},
		"join a/b: Wait": func() error {
			_, err := client.Join(ctx, "a", "b", sidekeeper.JoinOptions{Wait: below})
			return err
		},
	} {
		err := call()
		what, option, _ := strings.Cut(want, ": ")
		said := fmt.Sprintf(`%s: InvalidArgument (INVALID_FIELD): invalid field: %s is "-1s": a duration from 0s`, what, option)
		if !errors.Is(err, sidekeeper.ErrInvalidField) || err.Error() != said {
			t.Errorf("got %v, want %s", err, said)
		}
	}
}
