package service

import (
	"context"
	"fmt"
	"testing"
	"time"

	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
)

func (s *scene) drain(timeout time.Duration) <-chan error {
	drained := make(chan error, 1)
	go func() { drained <- s.services.Drain(s.t.Context(), timeout, func() {}) }()
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
	same(t, "Drain while a silent caller may still count on its lock", s.services.Drain(ctx, 0, func() {}), context.DeadlineExceeded)
	same(t, "contenders", s.contenders("orders"), 1)
}

// validFor is for how long a hold is valid, and from when on that counts.
func (s *scene) validFor(hold string) (from time.Time, validity time.Duration) {
	s.t.Helper()
	from = time.Now()
	answer, err := s.callers.Check(s.context(), &lockv1.CheckRequest{HoldIds: []string{hold}})
	s.must(err)
	return from, answer.GetHolds()[0].GetValidFor().AsDuration()
}

// A caller that is frozen when its sidecar stops finds its lock valid when it goes on: it has been told so.
func TestASidecarThatStopsKeepsTheLocksOfThoseWhoMayNotHaveHeard(t *testing.T) {
	for _, single := range []bool{true, false} {
		t.Run(fmt.Sprint("with a lease of its own: ", single), func(t *testing.T) {
			s := newScene(t)
			frozen, freeze := s.dialSilent()
			request := &lockv1.AcquireRequest{Name: "orders"}
			if !single {
				request.LeaseId = s.open(frozen, &leasev1.OpenRequest{}).id
			}
			held := s.hold(frozen, request)
			from, validity := s.validFor(held.hold)
			if validity < 500*time.Millisecond {
				t.Fatalf("valid for %v", validity)
			}
			freeze()
			stopped := make(chan error, 1)
			go func() { stopped <- s.stop() }()
			s.awaitContenders("orders", 0)
			if lasted := time.Since(from); lasted < validity {
				t.Errorf("given to others %v after it was told to be valid for %v", lasted, validity)
			}
			s.must(<-stopped)
		})
	}
}

func TestASidecarThatStopsWaitsForNobodyWhoHasHeard(t *testing.T) {
	s := newScene(t, func(o *Options) { o.SessionTimeout = time.Minute })
	lease := s.open(s.callers, &leasev1.OpenRequest{})
	held := s.hold(s.callers, &lockv1.AcquireRequest{Name: "orders", LeaseId: lease.id})
	alone := s.hold(s.callers, &lockv1.AcquireRequest{Name: "others"})
	from, validity := s.validFor(held.hold)
	s.must(s.stop())
	held.skips("asked by sidekeeper the sidecar is stopping", "Aborted SIDECAR_STOPPING")
	alone.skips("asked by sidekeeper the sidecar is stopping", "Aborted SIDECAR_STOPPING")
	if lasted := time.Since(from); lasted > validity/2 {
		t.Errorf("stopped after %v, as if somebody counted on %v", lasted, validity)
	}
	same(t, "contenders", s.contenders("orders")+s.contenders("others"), 0)
}
