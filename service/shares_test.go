package service_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

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
	same(t, "what is stored", len(s.ensemble.memory.Names("/locks/claimed-3")), 0)
	same(t, "another caller's", s.claims(s.others, 3), "OK")
	same(t, "the first again", s.claims(s.callers, 1), "OK")
	same(t, "released", s.releasesClaim(2), "OK")
	same(t, "one more in its place", s.claims(s.callers, 4), "ResourceExhausted QUOTA_EXCEEDED") // the record stands for a day
}

// What one caller claims through other sidecars counts once the sidecar has looked. A claim that was withdrawn does not, then, and one that has
// ended does not after a day.
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
		_, err := s.Claim(s.context(), claimOf(func(r *lockv1.ClaimRequest) {
			r.Name, r.ClaimId, r.WaitTimeout = "claimed-1", otherID, durationpb.New(0)
		}))
		same(t, "withdrawn", outcome(err), "FailedPrecondition LOCK_HELD")
		same(t, "a third", s.claims(s.callers, 3), "ResourceExhausted QUOTA_EXCEEDED") // as far as is known by now
		time.Sleep(20 * time.Second)
		same(t, "a third, once the sidecar has looked", s.claims(s.callers, 3), "ResourceExhausted QUOTA_EXCEEDED")
		same(t, "released elsewhere", elsewhere.releasesClaim(2), "OK")
		time.Sleep(20 * time.Second)
		same(t, "while its record stands", s.claims(s.callers, 3), "ResourceExhausted QUOTA_EXCEEDED")
		time.Sleep(25 * time.Hour)
		same(t, "when all have run out", s.claims(s.callers, 4), "OK")
		same(t, "and one more", s.claims(s.callers, 5), "OK")
		same(t, "and a third", s.claims(s.callers, 6), "ResourceExhausted QUOTA_EXCEEDED")
	}, mayClaim(2))
}
