package service_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

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

// claims claims a lock of this number, with an id of this number.
func (s *scene) claims(from callers, number int) string {
	_, err := from.Claim(s.context(), claimOf(func(r *lockv1.ClaimRequest) {
		r.Name, r.ClaimId = fmt.Sprint("claimed-", number), fmt.Sprintf("%032x", number)
	}))
	return outcome(err)
}

func (s *scene) releasesClaim(number int) string {
	_, err := s.Release(s.context(), &lockv1.ReleaseRequest{ClaimId: fmt.Sprintf("%032x", number)})
	return outcome(err)
}

func mayClaim(most int) func(*service.Options) {
	return func(o *service.Options) { o.ClaimShare = func(string) int { return most } }
}

func TestOneCallerCannotHaveAllClaims(t *testing.T) {
	t.Parallel()
	s := newScene(t, mayClaim(2))
	same(t, "the first", s.claims(s.callers, 1), "OK")
	same(t, "the second", s.claims(s.callers, 2), "OK")
	same(t, "a third", s.claims(s.callers, 3), "ResourceExhausted QUOTA_EXCEEDED")
	view, err := s.Get(s.context(), &lockv1.GetRequest{Name: "claimed-3"})
	s.must(err)
	same(t, "its holders", len(view.GetView().GetHolders()), 0)
	same(t, "another caller's", s.claims(s.others, 3), "OK")
	same(t, "the first again", s.claims(s.callers, 1), "OK")
	same(t, "released", s.releasesClaim(2), "OK")
	same(t, "one more in its place", s.claims(s.callers, 4), "OK")
}

// What one caller claims or releases through other sidecars counts once the sidecar has looked, and so does what has run out.
func TestClaimsAreCountedOverAllSidecars(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		living, stop := context.WithCancel(context.Background())
		defer synctest.Wait()
		defer stop()
		go s.services.Tend(living)
		elsewhere := s.besideWithin()
		same(t, "here", s.claims(s.callers, 1), "OK")
		same(t, "elsewhere", elsewhere.claims(elsewhere.callers, 2), "OK")
		time.Sleep(70 * time.Second)
		same(t, "a third", s.claims(s.callers, 3), "ResourceExhausted QUOTA_EXCEEDED")
		same(t, "released elsewhere", elsewhere.releasesClaim(2), "OK")
		s.claims(s.callers, 3)
		time.Sleep(20 * time.Second)
		same(t, "one more", s.claims(s.callers, 3), "OK")
		time.Sleep(4 * time.Minute)
		same(t, "when all have run out", s.claims(s.callers, 4), "OK")
		same(t, "and one more", s.claims(s.callers, 5), "OK")
		same(t, "and a third", s.claims(s.callers, 6), "ResourceExhausted QUOTA_EXCEEDED")
	}, mayClaim(2))
}
