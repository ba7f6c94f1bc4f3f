package service_test

import (
	"sync/atomic"
	"testing"

	barrierv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/barrier/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	membershipv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/membership/v1"
	"github.com/sidekeeper/sidekeeper/service"
)

// Where grants must be told, none is made that could not be. What ends does so all the same.
func TestNothingIsGrantedWhileTheAuditMustBeWrittenAndCannot(t *testing.T) {
	t.Parallel()
	var broken atomic.Bool
	s := newScene(t, func(o *service.Options) { o.AuditTakes = func() bool { return !broken.Load() } })
	first := s.hold(s.callers, &lockv1.AcquireRequest{Name: "orders"})
	waiter := s.acquire(s.others, &lockv1.AcquireRequest{Name: "orders"})
	waiter.sees("queued 1")
	broken.Store(true)
	s.acquire(s.callers, &lockv1.AcquireRequest{Name: "stock"}).sees("Unavailable NOT_RECORDED")
	same(t, "contenders for what is refused", s.contenders("stock"), 0)
	same(t, "Check", s.checked(s.callers, first.hold), "held")
	_, err := s.Release(s.context(), &lockv1.ReleaseRequest{HoldId: first.hold})
	same(t, "release", outcome(err), "OK")
	waiter.sees("Unavailable NOT_RECORDED")
	s.awaitContenders("orders", 0)
	broken.Store(false)
	s.hold(s.others, &lockv1.AcquireRequest{Name: "orders"})
}

// What counts for others as soon as it is made is refused before that, and not afterwards.
func TestWhatOthersCountOnIsNotRefusedWhenTheAuditBreaksMeanwhile(t *testing.T) {
	t.Parallel()
	var left atomic.Int32 // questions that are answered with yes
	s := newScene(t, func(o *service.Options) { o.AuditTakes = func() bool { return left.Add(-1) >= 0 } })
	agreement := s.begun(s.callers, "a", "b")
	left.Store(1)
	s.voting(s.callers, agreement, "a", "").sees("voted")
	left.Store(1)
	s.enter(s.callers, &barrierv1.EnterRequest{Name: "load", Size: 1}).sees("entered")
	left.Store(1)
	s.join(s.callers, &membershipv1.JoinRequest{Member: "a"}).sees("joined")
	left.Store(1)
	s.acquire(s.callers, &lockv1.AcquireRequest{Name: "orders"}).sees("Unavailable NOT_RECORDED")
	s.voting(s.callers, agreement, "b", "").sees("Unavailable NOT_RECORDED")
}
