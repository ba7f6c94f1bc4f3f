package sidekeeper_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"go.uber.org/goleak"

	sidekeeper "github.com/sidekeeper/sidekeeper/clients/go"
	"github.com/sidekeeper/sidekeeper/clients/go/scripted"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what must happen.
const patience = 10 * time.Second

// dial makes a client of the server on a clock that only the test moves.
func dial(t *testing.T, server *scripted.Server) (*sidekeeper.Client, *sidekeeper.FakeClock) {
	t.Helper()
	clock := &sidekeeper.FakeClock{}
	return dialWith(t, server, sidekeeper.WithClock(clock)), clock
}

func dialWith(t *testing.T, server *scripted.Server, options ...sidekeeper.Option) *sidekeeper.Client {
	t.Helper()
	client, err := sidekeeper.Dial(server.Target, options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

type acquired struct {
	lock *sidekeeper.Lock
	err  error
}

// acquiring calls Acquire, whose result the test takes from the channel.
func acquiring(
	ctx context.Context, client *sidekeeper.Client, name string, options sidekeeper.LockOptions,
) <-chan acquired {
	result := make(chan acquired, 1)
	go func() {
		lock, err := client.Acquire(ctx, name, options)
		result <- acquired{lock, err}
	}()
	return result
}

// hold acquires a lock that the server grants at once, with the token 7.
func hold(
	t *testing.T, client *sidekeeper.Client, server *scripted.Server, options sidekeeper.LockOptions,
) (*sidekeeper.Lock, *scripted.Acquire) {
	t.Helper()
	result := acquiring(t.Context(), client, "orders", options)
	call := server.NextAcquire()
	call.Grant(7)
	got := receive(t, result)
	if got.err != nil {
		t.Fatal(got.err)
	}
	return got.lock, call
}

func receive[T any](t testing.TB, from <-chan T) T {
	t.Helper()
	select {
	case value := <-from:
		return value
	case <-time.After(patience):
		t.Fatal("what had to happen has not happened")
		panic("unreachable")
	}
}

// want compares an error's text, which is what a person sees, and the sentinels that it must match.
func want(t *testing.T, err error, text string, sentinels ...error) {
	t.Helper()
	if err == nil || err.Error() != text {
		t.Errorf("got error %v, want %s", err, text)
	}
	for _, sentinel := range sentinels {
		if !errors.Is(err, sentinel) {
			t.Errorf("error %v does not match %v", err, sentinel)
		}
	}
}
