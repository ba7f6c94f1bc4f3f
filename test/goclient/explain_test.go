package goclient

import (
	"errors"
	"testing"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	"github.com/sidekeeper/sidekeeper/sidekeepertest"
)

func TestWhoeverClosesACircleIsToldIfItAsksAndEverybodySeesIt(t *testing.T) {
	client := sidekeepertest.Start(t, sidekeepertest.Options{}).Client()
	names, leases := []string{"accounts/7", "accounts/9"}, make([]*sidekeeper.Lease, 2)
	for i := range leases {
		var err error
		if leases[i], err = client.OpenLease(t.Context(), sidekeeper.LeaseOptions{Owner: names[i]}); err != nil {
			t.Fatal(err)
		}
		if _, err := client.Acquire(t.Context(), names[i], sidekeeper.LockOptions{Lease: leases[i]}); err != nil {
			t.Fatal(err)
		}
	}
	queued, first := make(chan sidekeeper.Queued, 10), make(chan error, 1)
	go func() {
		_, err := client.Acquire(t.Context(), names[1], sidekeeper.LockOptions{
			Lease: leases[0], DetectDeadlock: true, OnQueued: func(ahead sidekeeper.Queued) { queued <- ahead },
		})
		first <- err
	}()
	<-queued
	last := make(chan error, 1)
	go func() {
		_, err := client.Acquire(t.Context(), names[0], sidekeeper.LockOptions{Lease: leases[1]}) // which does not ask
		last <- err
	}()
	err := <-first
	if !errors.Is(err, sidekeeper.ErrDeadlock) {
		t.Errorf("who asks: %v", err)
	}
	explained, err := client.Explain(t.Context(), names[0])
	if err != nil {
		t.Fatal(err)
	}
	lock := explained.Locks[0]
	if len(lock.Holders) != 1 || lock.Holders[0].Owner != names[0] || lock.Holders[0].Lease == "" || len(lock.Waiters) != 1 {
		t.Errorf("explained as %+v", lock)
	}
	of, err := client.ExplainLease(t.Context(), lock.Waiters[0].Lease)
	if err != nil || len(of.Locks) == 0 || of.Locks[0].Name != names[0] {
		t.Errorf("its waiter: %+v, %v", of, err)
	}
	if err := leases[0].Close(t.Context()); err != nil {
		t.Error(err)
	}
	if err := <-last; err != nil {
		t.Errorf("who waits on: %v", err)
	}
}
