package service

import (
	"context"
	"testing"
	"time"

	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
)

func (s *scene) drain(timeout time.Duration) <-chan error {
	drained := make(chan error, 1)
	go func() { drained <- s.services.Drain(s.t.Context(), timeout) }()
	return drained
}

func TestDrainEndsWaitersAtOnceAndHoldersAtTheDeadline(t *testing.T) {
	s := newScene(t)
	lease := s.open(s.callers, &leasev1.OpenRequest{})
	holder := s.hold(s.callers, &lockv1.AcquireRequest{Name: "orders", LeaseId: lease.id})
	alone := s.hold(s.callers, &lockv1.AcquireRequest{Name: "others"})
	waiter := s.acquire(s.callers, &lockv1.AcquireRequest{Name: "orders"})
	waiter.sees("queued 1")
	watch := s.watch("orders")
	watch.sees("1 + 1")

	drained := s.drain(300 * time.Millisecond)
	waiter.sees("Unavailable SIDECAR_STOPPING")
	watch.skips("1 + 0", "Unavailable SIDECAR_STOPPING")
	for _, held := range []*acquiring{holder, alone} {
		held.sees("asked by sidekeeper the sidecar is stopping")
		grace := held.last.GetRevocationRequested().GetGrace().AsDuration()
		if grace <= 0 || grace > 300*time.Millisecond {
			t.Errorf("grace %v of a drain of 300 ms", grace)
		}
	}
	s.acquire(s.callers, &lockv1.AcquireRequest{Name: "more"}).sees("Unavailable SIDECAR_STOPPING")
	s.acquire(s.callers, &lockv1.AcquireRequest{Name: "more", LeaseId: lease.id}).sees("Unavailable SIDECAR_STOPPING")
	same(t, "Check", s.checked(s.callers, holder.hold), "held")
	holder.sees("Aborted SIDECAR_STOPPING")
	alone.sees("Aborted SIDECAR_STOPPING")
	lease.sees("Aborted SIDECAR_STOPPING")
	s.must(<-drained)
	same(t, "contenders", s.contenders("orders")+s.contenders("others"), 0)
	same(t, "Check", s.checked(s.callers, holder.hold), "SIDECAR_STOPPING")
	same(t, "Check of the lease", s.checkedLease(lease.id), "Aborted SIDECAR_STOPPING")
}

func TestDrainIsOverWhenAllHoldersHaveLetGo(t *testing.T) {
	s := newScene(t)
	lease := s.open(s.callers, &leasev1.OpenRequest{})
	holder := s.hold(s.callers, &lockv1.AcquireRequest{Name: "orders", LeaseId: lease.id})
	drained := s.drain(time.Hour)
	holder.sees("asked by sidekeeper the sidecar is stopping")
	_, err := s.Release(s.context(), &lockv1.ReleaseRequest{HoldId: holder.hold})
	s.must(err)
	holder.sees("OK")
	lease.sees("Aborted SIDECAR_STOPPING")
	s.must(<-drained)
}

func TestDrainGivesUpWhenItsContextEnds(t *testing.T) {
	s := newScene(t)
	silent, fallSilent := s.dialSilent()
	a := s.hold(silent, &lockv1.AcquireRequest{Name: "orders"})
	fallSilent()
	s.awaitEnd(a.hold)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	same(t, "Drain while a silent caller may still count on its lock", s.services.Drain(ctx, 0), context.DeadlineExceeded)
	same(t, "contenders", s.contenders("orders"), 1)
}
