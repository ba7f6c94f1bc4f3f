package endtoend

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"

	sidekeeperclient "github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
)

func TestSeveralLocksOutliveTheirSidecar(t *testing.T) {
	e := ensembleOf(t, quickTick)
	with := quick(e)
	other := startSidecar(t, with)
	begin := resuming(t, with)
	killed := begin()
	killed.awaitReady(t)
	first, second := fmt.Sprint("locks-a-", now()), fmt.Sprint("locks-b-", now())
	wanted := []sidekeeperclient.WantedLock{{Name: first}, {Name: second, Mode: sidekeeperclient.Write}}
	client, rival := killed.client(t), other.client(t)
	lease, err := client.OpenLease(t.Context(), sidekeeperclient.LeaseOptions{Owner: "resumer"})
	must(t, err)
	resumed, queued := make(chan struct{}, 16), make(chan struct{}, 16)
	held, err := client.AcquireAll(t.Context(), wanted, sidekeeperclient.AllOptions{
		Lease: lease, OnResumed: func() { resumed <- struct{}{} },
	})
	must(t, err)
	type turn struct {
		lock *sidekeeperclient.Lock
		err  error
	}
	awaited := make(chan turn, 1)
	go func() {
		lock, err := rival.Acquire(context.Background(), second, sidekeeperclient.LockOptions{
			Mode: sidekeeperclient.Write, OnQueued: func(sidekeeperclient.Queued) { queued <- struct{}{} },
		})
		awaited <- turn{lock, err}
	}()
	await(t, "queued", patient, queued)
	killed.kill()
	fresh := begin()
	await(t, "resumed", patient, resumed)
	if !held.Valid() || len(awaited) > 0 {
		t.Errorf("held: %v, granted to another: %d", held.Err(), len(awaited))
	}
	if _, err := client.AcquireAll(t.Context(), wanted[:1], sidekeeperclient.AllOptions{Lease: lease}); err == nil {
		t.Error("a lease has a lock twice")
	}
	ctx, cancel := context.WithTimeout(held.Guard(t.Context()), patient)
	defer cancel()
	err = sidekeeperclient.ErrHoldNotFound
	for errors.Is(err, sidekeeperclient.ErrHoldNotFound) && ctx.Err() == nil { // until the hold is known again
		_, err = client.Config().Put(ctx, first, []byte("1"))
	}
	must(t, err)
	must(t, held.Release(t.Context()))
	got := <-awaited
	must(t, got.err)
	if got.lock.FencingToken() <= held.FencingToken(second) {
		t.Errorf("token %d after %d", got.lock.FencingToken(), held.FencingToken(second))
	}
	must(t, got.lock.Release(t.Context()))
	must(t, lease.Close(t.Context()))
	fresh.signal(syscall.SIGTERM)
	if code := fresh.awaitExit(t, patient); code != 0 {
		t.Errorf("the sidecar exits with %d", code)
	}
}
