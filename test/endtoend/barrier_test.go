package endtoend

import (
	"context"
	"fmt"
	"sync/atomic"
	"syscall"
	"testing"

	"golang.org/x/sync/errgroup"

	sidekeeperclient "github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
)

// Callers of two sidecars go through rounds of a double barrier: none is ahead of another by more than the step they are at.
func TestCallersOfTwoSidecarsBeginAndEndEachRoundTogether(t *testing.T) {
	sidecars := quickSidecars(t, 2)
	const callers, rounds = 4, 3
	name := fmt.Sprint("rounds/", now())
	var begun, ended [rounds]atomic.Int32
	group, ctx := errgroup.WithContext(t.Context())
	for i := range callers {
		client := sidecars[i%len(sidecars)].client(t)
		group.Go(func() error {
			for round := range rounds {
				begun[round].Add(1)
				entry, err := client.EnterBarrier(ctx, name, callers, sidekeeperclient.BarrierOptions{})
				if err != nil {
					return err
				}
				if n := begun[round].Load(); n != callers {
					return fmt.Errorf("round %d is entered, and %d are there", round, n)
				}
				ended[round].Add(1)
				if err := entry.Leave(ctx); err != nil {
					return err
				}
				if n := ended[round].Load(); n != callers {
					return fmt.Errorf("round %d is left, and %d have ended", round, n)
				}
			}
			return nil
		})
	}
	must(t, group.Wait())
}

// Who is inside a double barrier, and who waits at a barrier, goes on when the sidecar has been killed and is back.
func TestABarriersEntryOutlivesItsSidecar(t *testing.T) {
	e := ensembleOf(t, quickTick)
	with := quick(e)
	other, begin := startSidecar(t, with), resuming(t, with)
	killed := begin()
	killed.awaitReady(t)
	client, rival, name := killed.client(t), other.client(t), fmt.Sprint("barrier-", now())
	lease, err := client.OpenLease(t.Context(), sidekeeperclient.LeaseOptions{Owner: "resumer"})
	must(t, err)
	must(t, rival.SetBarrier(t.Context(), name+"-gate"))
	waits, passed := make(chan struct{}, 16), make(chan error, 1)
	go func() {
		passed <- client.AwaitBarrier(context.Background(), name+"-gate", func() { waits <- struct{}{} })
	}()
	await(t, "waiting at the gate", patient, waits)
	resumed := make(chan struct{}, 16)
	type entrance struct {
		entry *sidekeeperclient.BarrierEntry
		err   error
	}
	entered := make(chan entrance, 1)
	go func() {
		entry, err := rival.EnterBarrier(context.Background(), name, 2, sidekeeperclient.BarrierOptions{})
		entered <- entrance{entry, err}
	}()
	held, err := client.EnterBarrier(t.Context(), name, 2, sidekeeperclient.BarrierOptions{
		Lease: lease, OnResumed: func() { resumed <- struct{}{} },
	})
	must(t, err)
	got := <-entered
	must(t, got.err)
	if got.entry.Round() != held.Round() {
		t.Errorf("rounds %d and %d", got.entry.Round(), held.Round())
	}
	killed.kill()
	fresh := begin()
	await(t, "resumed", patient, resumed)
	left := make(chan error, 1)
	go func() { left <- got.entry.Leave(context.Background()) }()
	if !held.Valid() || len(left) > 0 {
		t.Errorf("inside: %v, left by the other: %d", held.Err(), len(left))
	}
	must(t, held.Leave(t.Context()))
	must(t, <-left)
	must(t, lease.Close(t.Context()))
	must(t, rival.RemoveBarrier(t.Context(), name+"-gate"))
	must(t, <-passed)
	fresh.signal(syscall.SIGTERM)
	if code := fresh.awaitExit(t, patient); code != 0 {
		t.Errorf("the sidecar exits with %d", code)
	}
}
