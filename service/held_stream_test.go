package service_test

import (
	"testing"

	"google.golang.org/protobuf/types/known/durationpb"

	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	queuev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/queue/v1"
	semaphorev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/semaphore/v1"
)

// Else the next one to try would be told that there is nothing for it, when the dying place of the one before is all that is in its way.
func TestNobodyIsRefusedOnAccountOfATryThatFailed(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		s.hold(s.callers, &lockv1.AcquireRequest{Name: "orders"})
		s.semaphore("calls", 1)
		s.permits(s.callers, &semaphorev1.AcquireRequest{Name: "calls"}).sees("granted")
		lease := s.open(s.others, &leasev1.OpenRequest{})
		never := durationpb.New(0)
		for range 20 {
			for _, leaseID := range []string{"", lease.id} {
				s.acquire(s.others, &lockv1.AcquireRequest{Name: "orders", LeaseId: leaseID, WaitTimeout: never}).
					sees("FailedPrecondition LOCK_HELD")
				same(t, "places in the lock's queue", s.contenders("orders"), 1)
				s.permits(s.others, &semaphorev1.AcquireRequest{Name: "calls", LeaseId: leaseID, WaitTimeout: never}).
					sees("FailedPrecondition SEMAPHORE_FULL")
				same(t, "places in the semaphore's queue", s.places("semaphores/calls/locks"), 0)
				same(t, "permits", s.places("semaphores/calls/leases"), 1)
				s.take(s.others, &queuev1.TakeRequest{Name: "mail", LeaseId: leaseID, WaitTimeout: never}).
					sees("FailedPrecondition QUEUE_EMPTY")
				same(t, "places of those who wait for an item", s.places("queues/mail.takers"), 0)
			}
		}
	})
}

func (s *scene) places(of string) int { return len(s.ensemble.memory.Names("/sidekeeper/" + of)) }
