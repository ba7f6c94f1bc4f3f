package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"testing"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	"github.com/sidekeeper/sidekeeper/internal/exit"
	"github.com/sidekeeper/sidekeeper/internal/supervise"
)

func TestWhatACommandWritesIsGuardedByTheLockThatItRunsUnder(t *testing.T) {
	s := newConfigScene(t)
	sequence := runSequences(t)
	sequence.address = s.sidecar.Address()
	sequence.want(0, "", "create", "numbers")
	lock, err := s.sidecar.Client().Acquire(t.Context(), "orders", sidekeeper.LockOptions{})
	if err != nil {
		t.Fatal(err)
	}
	token := strconv.FormatInt(lock.FencingToken(), 10)
	t.Setenv(supervise.GuardsVariable, "orders:"+token)
	s.wants(0, "k has version 1\n", "put", "k", "v")
	sequence.want(0, "1\n", "next", "numbers")
	if err := lock.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	lost := fmt.Sprintf("sidekeeper: a hold that guards the write has ended: lock orders is not held with fencing token %s (GUARD_LOST)\n", token)
	s.wants(exit.Lost, lost, "put", "k", "late")
	s.wants(exit.Lost, lost, "rm", "k")
	sequence.want(exit.Lost, lost, "next", "numbers")
	sequence.want(0, "2\n", "next", "numbers", "--relaxed")
	s.wants(0, "k has version 2\n", "put", "k", "w", "--guard", "")
	s.wants(exit.Usage, "sidekeeper: guard \"orders\": not a lock and its fencing token, as orders:4294967300\n",
		"put", "k", "v", "--guard", "orders")
	s.wants(exit.Usage, "sidekeeper: --guard guards one write, and not --recursive\n", "rm", "k", "-r", "--guard", "orders:"+token)
	sequence.want(exit.Usage, "sidekeeper: --guard guards one write, and not --relaxed\n",
		"next", "numbers", "--relaxed", "--guard", "orders:"+token)
}

func TestWhatIsWrittenWithLockIsGuardedByTheLock(t *testing.T) {
	t.Parallel()
	s := newConfigScene(t)
	client := s.sidecar.Client()
	if _, err := client.Sequence("numbers").Create(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	err := client.WithLock(t.Context(), "orders", sidekeeper.LockOptions{}, func(ctx context.Context, lock *sidekeeper.Lock) error {
		var members []*sidekeeper.Membership
		writes := func(ctx context.Context) (errs [6]error) {
			_, errs[0] = s.config.Put(ctx, "k", nil)
			var commit sidekeeper.Commit
			commit.Put("c", nil)
			_, errs[1] = s.config.Commit(ctx, &commit)
			_, errs[2] = client.Sequence("numbers").Next(ctx)
			errs[3] = s.config.Delete(ctx, "k")
			joined, err := client.Join(ctx, "web", fmt.Sprint("web-", len(members)), sidekeeper.JoinOptions{})
			if errs[4] = err; err == nil {
				members = append(members, joined)
			}
			errs[5] = members[0].Update(ctx, map[string]string{"port": "80"})
			return errs
		}
		if errs := writes(ctx); errs != [6]error{} {
			t.Error(errs)
		}
		defer func() { _ = members[0].Leave(t.Context()) }()
		ctx = context.WithoutCancel(ctx)
		ticket := lock.Ticket()
		if held, current, err := client.Verify(ctx, ticket); err != nil || !held || current != lock.FencingToken() {
			t.Error(held, current, err)
		}
		if err := lock.Release(ctx); err != nil {
			return err
		}
		if held, current, err := client.Verify(ctx, ticket); err != nil || held || current != 0 {
			t.Error(held, current, err)
		}
		for i, err := range writes(ctx) {
			if !errors.Is(err, sidekeeper.ErrGuardLost) {
				t.Error("after the release", i, err)
			}
		}
		if _, err := s.config.Put(ticket.Guard(sidekeeper.Unguarded(ctx)), "k", nil); !errors.Is(err, sidekeeper.ErrGuardLost) {
			t.Error("with a ticket", err)
		}
		if _, err := client.Sequence("numbers").Relaxed().Next(ctx); err != nil {
			t.Error("relaxed", err)
		}
		if err := members[0].Update(sidekeeper.Unguarded(ctx), nil); err != nil {
			t.Error("a member that joined before", err)
		}
		_, err := s.config.Put(sidekeeper.Unguarded(ctx), "k", nil)
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestTheGoClientIsToldOfCurrentTokens(t *testing.T) {
	t.Parallel()
	s := newConfigScene(t)
	client := s.sidecar.Client()
	lock, err := client.Acquire(t.Context(), "orders", sidekeeper.LockOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var told []sidekeeper.CurrentToken
	for tokens, err := range client.WatchTokens(ctx, "orders") {
		if err != nil {
			if !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			break
		}
		if told = append(told, tokens...); len(told) == 1 {
			err = lock.Release(ctx)
		} else {
			cancel()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if want := []sidekeeper.CurrentToken{{Lock: "orders", FencingToken: lock.FencingToken()}, {Lock: "orders"}}; !slices.Equal(told, want) {
		t.Error(told)
	}
}
