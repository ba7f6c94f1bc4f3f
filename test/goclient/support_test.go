package goclient

import (
	"context"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long a test waits for what must happen.
const patience = 10 * time.Second

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
