package service_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	membershipv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/membership/v1"
)

func (s *scene) drain(timeout time.Duration) <-chan error {
	drained := make(chan error, 1)
	go func() { drained <- s.services.Drain(s.t.Context(), timeout) }()
	return drained
}

func TestDrainEndsWaitersAtOnceAndHoldersAtTheDeadline(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		lease := s.open(s.callers, &leasev1.OpenRequest{})
		holder := s.hold(s.callers, &lockv1.AcquireRequest{Name: "orders", LeaseId: lease.id})
		alone := s.hold(s.callers, &lockv1.AcquireRequest{Name: "others"})
		waiter := s.acquire(s.callers, &lockv1.AcquireRequest{Name: "orders"})
		waiter.sees("queued 1")
		watch := s.watch("orders")
		watch.sees("1 + 1")

		drained := s.drain(10 * time.Second)
		waiter.sees("Unavailable SIDECAR_STOPPING")
		watch.skips("1 + 0", "Unavailable SIDECAR_STOPPING")
		for _, held := range []*acquiring{holder, alone} {
			held.sees("asked by sidekeeper the sidecar is stopping")
			grace := held.last.GetRevocationRequested().GetGrace().AsDuration()
			if grace <= 0 || grace > 10*time.Second {
				t.Errorf("grace %v of a drain of 10 s", grace)
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
	}, short)
}

func TestDrainIsOverWhenAllHoldersHaveLetGo(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		lease := s.open(s.callers, &leasev1.OpenRequest{})
		holder := s.hold(s.callers, &lockv1.AcquireRequest{Name: "orders", LeaseId: lease.id})
		drained := s.drain(time.Hour)
		holder.sees("asked by sidekeeper the sidecar is stopping")
		_, err := s.Release(s.context(), &lockv1.ReleaseRequest{HoldId: holder.hold})
		s.must(err)
		holder.sees("OK")
		lease.sees("Aborted SIDECAR_STOPPING")
		s.must(<-drained)
	})
}

// A caller that lets go when it is asked has lost nothing, though its lease ends next.
func TestADrainIsNotOverBeforeWhatWasGivenUpIsSaidToBeGone(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		const locks = 50
		c := s.carryOpened(s.callers)
		for id := range uint64(locks) {
			c.start(id+1, fmt.Sprint("orders", id))
			c.sees(fmt.Sprint(id+1, " granted"))
		}
		c.startWith(&leasev1.Start{RequestId: 99, Request: &leasev1.Start_Join{Join: &membershipv1.JoinRequest{Group: "shop", Member: "m"}}})
		c.sees("99 joined")
		c.session.Delay(time.Second)
		drained := s.drain(time.Hour)
		for range locks {
			_, asked, _ := strings.Cut(c.next(), " ")
			same(t, "message", asked, "asked")
		}
		for _, id := range append(slices.Collect(maps.Keys(c.holds)), 99) {
			c.stop(id)
		}
		for range locks + 1 {
			_, ended, _ := strings.Cut(c.next(), " ")
			same(t, "message", ended, "ended 0")
		}
		c.sees("Aborted SIDECAR_STOPPING")
		s.must(<-drained)
		same(t, "contenders", s.contenders("orders0"), 0)
	})
}

func TestAMemberHoldsNoDrainUp(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		lease := s.open(s.callers, &leasev1.OpenRequest{})
		member := s.join(s.callers, &membershipv1.JoinRequest{Member: "a", LeaseId: lease.id})
		member.sees("joined")
		began := time.Now()
		_, err := s.leases.Check(s.context(), &leasev1.CheckRequest{LeaseId: lease.id}) // as clients do
		s.must(err)
		holder := s.hold(s.callers, &lockv1.AcquireRequest{Name: "orders"})
		drained := s.drain(time.Hour)
		holder.sees("asked by sidekeeper the sidecar is stopping")
		same(t, "members while somebody holds a lock", s.inside(), "a")
		holder.cancel()
		member.sees("Aborted SIDECAR_STOPPING")
		s.must(<-drained)
		same(t, "members", s.inside(), "")
		if lasted := time.Since(began); lasted > 10*time.Second {
			t.Errorf("the drain lasted %v", lasted)
		}
	}, long)
}

func TestDrainGivesUpWhenItsContextEnds(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		silent, fallSilent := s.dialSilent()
		a := s.hold(silent, &lockv1.AcquireRequest{Name: "orders"})
		fallSilent()
		s.awaitEnd(a.hold)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		same(t, "Drain while a silent caller may still count on its lock", s.services.Drain(ctx, 0), context.DeadlineExceeded)
		same(t, "contenders", s.contenders("orders"), 1)
		s.ensemble.memory.Close() // nobody waits for the silent one here
	}, long)
}

// A caller that is frozen when its sidecar stops finds its lock valid when it goes on: it has been told so.
func TestASidecarThatStopsKeepsTheLocksOfThoseWhoMayNotHaveHeard(t *testing.T) {
	t.Parallel()
	for _, single := range []bool{true, false} {
		t.Run(fmt.Sprint("with a lease of its own: ", single), func(t *testing.T) {
			s := newScene(t, short)
			frozen, freeze := s.dialFrozen()
			request := &lockv1.AcquireRequest{Name: "orders"}
			if !single {
				request.LeaseId = s.open(frozen, &leasev1.OpenRequest{}).id
			}
			held := s.hold(frozen, request)
			counts := s.toldValid(frozen, held.hold)
			freeze()
			stopped := make(chan error, 1)
			go func() { stopped <- s.stop() }()
			s.awaitContenders("orders", 0)
			if left := time.Until(counts); left > 0 {
				t.Errorf("given to others while the caller may count on it for %v more", left)
			}
			s.must(<-stopped)
		})
	}
}

func TestASidecarThatStopsWaitsForNobodyWhoHasHeard(t *testing.T) {
	t.Parallel()
	for name, heard := range map[string]func(s *scene, held *acquiring){
		"acknowledged, with the connection open": func(s *scene, held *acquiring) { s.acknowledge(s.callers, held.hold, "SIDECAR_STOPPING") },
		"left":                                   func(_ *scene, held *acquiring) { held.cancel() },
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, long)
			leaving, leave := s.dialLeaving()
			from := s.callers
			if name == "left" {
				from = leaving
			}
			lease := s.open(s.callers, &leasev1.OpenRequest{})
			held := s.hold(from, &lockv1.AcquireRequest{Name: "orders", LeaseId: lease.id})
			alone := s.hold(from, &lockv1.AcquireRequest{Name: "others"})
			counts := s.toldValid(from, held.hold)
			s.toldValid(from, alone.hold)
			stopped := make(chan error, 1)
			go func() { stopped <- s.stop() }()
			for _, held := range []*acquiring{held, alone} {
				held.skips("asked by sidekeeper the sidecar is stopping", "Aborted SIDECAR_STOPPING")
				heard(s, held)
			}
			leave()
			s.must(<-stopped)
			if left := time.Until(counts); left < 10*time.Second {
				t.Errorf("stopped as if somebody counted on the lock: %v before the end of what was told", left)
			}
			same(t, "contenders", s.contenders("orders")+s.contenders("others"), 0)
		})
	}
}
