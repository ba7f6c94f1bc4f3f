package sidekeeper_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/clients/go/scripted"
	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
)

// TestMain fails when a goroutine outlives the tests. The library that the other tests have for that would be one that users of the
// client see among their modules.
func TestMain(m *testing.M) {
	status := m.Run()
	for waited := time.Duration(0); status == 0 && len(left()) > 0; waited += time.Millisecond {
		<-time.After(time.Millisecond)
		if waited > patience {
			fmt.Fprintln(os.Stderr, strings.Join(left(), "\n\n"))
			status = 1
		}
	}
	os.Exit(status)
}

// left are the goroutines that are not this one nor the process's own.
func left() []string {
	stacks := make([]byte, 1<<20)
	stacks = stacks[:runtime.Stack(stacks, true)]
	others := strings.Split(string(stacks), "\n\n")[1:]
	return slices.DeleteFunc(others, func(stack string) bool {
		return strings.Contains(stack, "os/signal.")
	})
}

// patience is how long a test waits for what must happen.
const patience = 30 * time.Second

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

// away is what is told where gRPC says that it has not reached the sidecar.
func away(cause string) string {
	const look = "see that it runs, that SIDEKEEPER_ADDRESS is its address, " +
		"and that both use TLS, with trusted certificates that have not expired, or neither does"
	return "Unavailable: the sidecar is not reachable (" + cause + "): " + look
}
