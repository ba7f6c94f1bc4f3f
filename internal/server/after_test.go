package server_test

import (
	"context"
	"testing"

	"google.golang.org/grpc"

	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	"github.com/sidekeeper/sidekeeper/internal/caller"
	"github.com/sidekeeper/sidekeeper/recipes"
)

func TestWhatIsToBeDoneAfterTheStatusIsDoneInOrderWhenTheCallerHasIt(t *testing.T) {
	t.Parallel()
	p := newProbe(t)
	told, steps := make(chan struct{}), make(chan string, 2)
	p.acquire = func(stream grpc.ServerStreamingServer[lockv1.AcquireResponse]) error {
		caller.AfterStatus(stream.Context(), func() { <-told; steps <- "first" })
		caller.AfterStatus(stream.Context(), func() { steps <- "second" })
		return recipes.ErrSessionEnded
	}
	stream, err := lockv1.NewLockServiceClient(p.dial(p.address())).Acquire(within(t), &lockv1.AcquireRequest{})
	must(t, err)
	_, err = stream.Recv()
	same(t, "end of the stream, while what comes after it waits", outcome(err), "Aborted LEASE_LOST")
	close(told)
	same(t, "steps", receive(t, steps)+" "+receive(t, steps), "first second")
}

func TestWhatIsToBeDoneAfterTheStatusIsDoneForUnaryCallsAndAfterPanicsToo(t *testing.T) {
	t.Parallel()
	p := newProbe(t)
	done := make(chan string, 1)
	p.get = func(ctx context.Context) error {
		caller.AfterStatus(ctx, func() { done <- "done" })
		panic("a bug")
	}
	_, err := lockv1.NewLockServiceClient(p.dial(p.address())).Get(within(t), &lockv1.GetRequest{})
	same(t, "answer", outcome(err), "Internal INTERNAL")
	same(t, "afterwards", receive(t, done), "done")
}
