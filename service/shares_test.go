package service_test

import (
	"testing"

	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	"github.com/sidekeeper/sidekeeper/service"
)

func TestOneCallerCannotTakeAllLeases(t *testing.T) {
	t.Parallel()
	s := newScene(t, func(o *service.Options) { o.MostLeases, o.LeaseShare = 4, func(string) int { return 3 } })
	first := s.open(s.callers, &leasev1.OpenRequest{})
	for range 2 {
		s.open(s.callers, &leasev1.OpenRequest{})
	}
	s.acquire(s.callers, &lockv1.AcquireRequest{Name: "orders"}).sees("ResourceExhausted QUOTA_EXCEEDED")
	s.hold(s.others, &lockv1.AcquireRequest{Name: "orders"})
	s.acquire(s.others, &lockv1.AcquireRequest{Name: "bills"}).sees("ResourceExhausted LEASE_LIMIT")
	first.cancel()
	for next := ""; next != "granted"; { // what a lease had counts until after its status
		s.must(s.context().Err())
		next = s.acquire(s.callers, &lockv1.AcquireRequest{Name: "bills"}).next()
	}
}

func TestOneCallerCannotHaveAllWatched(t *testing.T) {
	t.Parallel()
	s := newScene(t, func(o *service.Options) { o.MostWatched, o.WatchShare = 100, func(string) int { return 4 } })
	s.joined(s.callers, "a")
	s.watchGroup(s.callers, "shop").sees("a: +a") // three nodes
	s.watchGroup(s.callers, "others").sees(":")
	s.watchGroup(s.callers, "more").sees("ResourceExhausted QUOTA_EXCEEDED")
	watch := s.watchGroup(s.others, "shop")
	watch.sees("a: +a")
	s.watchGroup(s.others, "more").sees(":")
}
