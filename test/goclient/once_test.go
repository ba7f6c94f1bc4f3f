package goclient

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	oncev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/once/v1"
	"github.com/sidekeeper/sidekeeper/sidekeepertest"
)

var errNoDisk = errors.New("no\tdisk " + strings.Repeat("é", 200))

func TestOnceDoesWorkUntilItHasSucceeded(t *testing.T) {
	client := sidekeepertest.Start(t, sidekeepertest.Options{}).Client()
	attempts := 0
	once := func(result error) (bool, error) {
		return client.Once(t.Context(), "mail", "order-7", sidekeeper.OnceOptions{Owner: "me"},
			func(ctx context.Context, attempt *sidekeeper.Attempt) error {
				if attempts++; attempt.Number() != attempts || attempt.Ticket().Lock != "mail/order-7" {
					t.Errorf("attempt %d of %s is the attempt %d", attempt.Number(), attempt.Ticket().Lock, attempts)
				}
				if _, err := client.Config().Put(ctx, "sent", []byte("x")); err != nil {
					t.Error(err)
				}
				return result
			})
	}
	if done, err := once(errNoDisk); done || !errors.Is(err, errNoDisk) {
		t.Errorf("one that fails: %v, %v", done, err)
	}
	if done, err := once(nil); !done || err != nil {
		t.Errorf("one that succeeds: %v, %v", done, err)
	}
	if done, err := once(nil); done || err != nil || attempts != 2 {
		t.Errorf("done before: %v, %v, after %d attempts", done, err, attempts)
	}
	_, err := client.Begin(t.Context(), "mail", "order-7", sidekeeper.OnceOptions{})
	if told := (*sidekeeper.Error)(nil); !errors.As(err, &told) || told.Metadata["owner"] != "me" {
		t.Errorf("done before: %v", err)
	}
}

func TestAnAttemptThatPanicsHasFailed(t *testing.T) {
	client := sidekeepertest.Start(t, sidekeepertest.Options{}).Client()
	func() {
		defer func() {
			if recover() == nil {
				t.Error("no panic")
			}
		}()
		_, _ = client.Once(t.Context(), "mail", "k", sidekeeper.OnceOptions{}, func(context.Context, *sidekeeper.Attempt) error { panic("x") })
	}()
	if _, err := client.Begin(t.Context(), "mail", "k", sidekeeper.OnceOptions{SkipFailed: true}); !errors.Is(err, sidekeeper.ErrNotRepeated) {
		t.Error(err)
	}
}

func TestAnAttemptIsFinishedThoughItsLockWasLost(t *testing.T) {
	sidecar := sidekeepertest.Start(t, sidekeepertest.Options{})
	client := sidecar.Client()
	begin := func(options sidekeeper.OnceOptions) *sidekeeper.Attempt {
		t.Helper()
		options.PerName = true
		attempt, err := client.Begin(t.Context(), "nightly", "k", options)
		if err != nil {
			t.Fatal(err)
		}
		return attempt
	}
	first := begin(sidekeeper.OnceOptions{Keep: time.Hour})
	if err := sidecar.ExpireLock(t.Context(), "nightly"); err != nil {
		t.Fatal(err)
	}
	<-first.Done()
	second := begin(sidekeeper.OnceOptions{})
	if second.Number() != 2 || second.FencingToken() <= first.FencingToken() {
		t.Errorf("attempt %d with token %d after %d", second.Number(), second.FencingToken(), first.FencingToken())
	}
	if err := first.Finish(t.Context(), sidekeeper.Succeeded, ""); !errors.Is(err, sidekeeper.ErrSuperseded) {
		t.Errorf("the first: %v", err)
	}
	if err := sidecar.ExpireLock(t.Context(), "nightly"); err != nil {
		t.Fatal(err)
	}
	<-second.Done()
	for range 2 {
		if err := second.Finish(t.Context(), sidekeeper.Succeeded, "late"); err != nil {
			t.Errorf("the second: %v", err)
		}
	}
	if _, err := client.Begin(t.Context(), "nightly", "k", sidekeeper.OnceOptions{PerName: true}); !errors.Is(err, sidekeeper.ErrAlreadyDone) {
		t.Error(err)
	}
}

func TestWorkThatLosesItsLockIsLostAndHasNotFailed(t *testing.T) {
	sidecar := sidekeepertest.Start(t, sidekeepertest.Options{})
	client := sidecar.Client()
	options := sidekeeper.OnceOptions{PerName: true, SkipLost: true}
	done, err := client.Once(t.Context(), "nightly", "k", options, func(ctx context.Context, _ *sidekeeper.Attempt) error {
		if err := sidecar.ExpireLock(t.Context(), "nightly"); err != nil {
			t.Error(err)
		}
		<-ctx.Done()
		return ctx.Err()
	})
	if done || !errors.Is(err, context.Canceled) || !errors.Is(err, sidekeeper.ErrLost) {
		t.Errorf("done: %v, %v", done, err)
	}
	if _, err := client.Begin(t.Context(), "nightly", "k", options); !errors.Is(err, sidekeeper.ErrNotRepeated) {
		t.Error(err)
	}
}

func TestFinishReturnsNothingOnlyIfItsOutcomeIsRecorded(t *testing.T) {
	sidecar := sidekeepertest.Start(t, sidekeepertest.Options{})
	client := sidecar.Client()
	lease, err := client.OpenLease(t.Context(), sidekeeper.LeaseOptions{})
	if err != nil {
		t.Fatal(err)
	}
	begin := func(key string, options sidekeeper.OnceOptions) *sidekeeper.Attempt {
		t.Helper()
		options.PerName = true
		attempt, err := client.Begin(t.Context(), "nightly", key, options)
		if err != nil {
			t.Fatal(err)
		}
		return attempt
	}
	isDone := func(key string) bool {
		t.Helper()
		_, err := client.Begin(t.Context(), "nightly", key, sidekeeper.OnceOptions{PerName: true})
		return errors.Is(err, sidekeeper.ErrAlreadyDone)
	}
	released := begin("released", sidekeeper.OnceOptions{})
	if err := released.Release(t.Context()); err != nil {
		t.Error(err)
	}
	if err := released.Finish(t.Context(), sidekeeper.Succeeded, ""); err != nil || !isDone("released") {
		t.Errorf("after Release: %v", err)
	}
	failed := begin("failed", sidekeeper.OnceOptions{})
	if err := failed.Finish(t.Context(), sidekeeper.Failed, ""); err != nil {
		t.Error(err)
	}
	if err := failed.Finish(t.Context(), sidekeeper.Succeeded, ""); !errors.Is(err, sidekeeper.ErrAlreadyDone) {
		t.Errorf("after Failed: %v", err)
	}
	late := begin("late", sidekeeper.OnceOptions{Lease: lease, Wait: new(time.Duration)})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := late.Finish(ended, sidekeeper.Succeeded, ""); !errors.Is(err, context.Canceled) {
		t.Errorf("with a context that has ended: %v", err)
	}
	other := begin("other", sidekeeper.OnceOptions{})
	if err := late.Finish(t.Context(), sidekeeper.Succeeded, ""); !errors.Is(err, sidekeeper.ErrLockHeld) {
		t.Errorf("while another caller has the lock: %v", err)
	}
	if err := other.Release(t.Context()); err != nil {
		t.Error(err)
	}
	if err := late.Finish(t.Context(), sidekeeper.Succeeded, ""); err != nil || !isDone("late") {
		t.Errorf("asked again: %v", err)
	}
}

func TestTheOutcomesAreThoseOfTheSidecar(t *testing.T) {
	for ours, wire := range map[sidekeeper.Outcome]oncev1.Outcome{
		sidekeeper.Succeeded: oncev1.Outcome_OUTCOME_SUCCEEDED, sidekeeper.Failed: oncev1.Outcome_OUTCOME_FAILED,
	} {
		if int32(ours) != int32(wire) {
			t.Errorf("%d is %v", ours, wire)
		}
	}
}
