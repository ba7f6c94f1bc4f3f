package service_test

import (
	"strings"
	"testing"
	"time"

	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	"github.com/sidekeeper/sidekeeper/recipes"
)

func (s *scene) checkedLease(id string) string {
	response, err := s.leases.Check(s.context(), &leasev1.CheckRequest{LeaseId: id})
	if err == nil && response.GetValidFor().AsDuration() <= 0 {
		return "not valid"
	}
	return outcome(err)
}

func TestCloseEndsTheLocksOfALeaseAndItsStreams(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		lease := s.open(s.callers, &leasev1.OpenRequest{})
		a := s.hold(s.callers, &lockv1.AcquireRequest{Name: "orders", LeaseId: lease.id})
		same(t, "Check", s.checkedLease(lease.id), "OK")
		for range 2 {
			_, err := s.leases.Close(s.context(), &leasev1.CloseRequest{LeaseId: lease.id})
			same(t, "Close", outcome(err), "OK")
			same(t, "contenders", s.contenders("orders"), 0)
		}
		lease.sees("OK")
		a.sees("Aborted LEASE_CLOSED")
		same(t, "Check of the hold", s.checked(s.callers, a.hold), "LEASE_CLOSED")
		same(t, "Check of the lease", s.checkedLease(lease.id), "Aborted LEASE_CLOSED")
		s.acquire(s.callers, &lockv1.AcquireRequest{Name: "orders", LeaseId: lease.id}).sees("Aborted LEASE_CLOSED")
	})
}

func TestCancellingOpenEndsTheLocksOfALease(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		lease := s.open(s.callers, &leasev1.OpenRequest{})
		a := s.hold(s.callers, &lockv1.AcquireRequest{Name: "orders", LeaseId: lease.id})
		lease.cancel()
		a.sees(over("Aborted LEASE_CLOSED", "Canceled"))
		s.awaitContenders("orders", 0)
	})
}

func TestALostLeaseEndsEveryStreamItCarries(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		lease := s.open(s.callers, &leasev1.OpenRequest{})
		a := s.hold(s.callers, &lockv1.AcquireRequest{Name: "a", LeaseId: lease.id})
		b := s.hold(s.callers, &lockv1.AcquireRequest{Name: "b", LeaseId: lease.id})
		lease.session.Suspend()
		lease.sees("suspended")
		lease.session.Resume()
		lease.sees("resumed")
		lease.session.Expire()
		lease.sees("Aborted LEASE_LOST")
		a.ends("Aborted LEASE_LOST")
		b.ends("Aborted LEASE_LOST")
		same(t, "Check", s.checkedLease(lease.id), "Aborted LEASE_LOST")
		_, err := s.leases.Close(s.context(), &leasev1.CloseRequest{LeaseId: lease.id})
		same(t, "Close", outcome(err), "Aborted LEASE_LOST")
	})
}

func TestOpenSaysWhichTimeoutWasGranted(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		lease := s.open(s.callers, &leasev1.OpenRequest{Ttl: lasting(time.Hour)})
		same(t, "ttl", lease.last.GetOpened().GetTtl().AsDuration(), 30*time.Second)
	})
}

func TestOpenRefusesWhatItCannotKeep(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		for want, request := range map[string]*leasev1.OpenRequest{
			"InvalidArgument INVALID_FIELD owner":    {Owner: strings.Repeat("x", 129)},
			"InvalidArgument INVALID_FIELD metadata": {Metadata: map[string]string{"k": strings.Repeat("x", 1024)}},
			"InvalidArgument INVALID_FIELD ttl":      {Ttl: lasting(-time.Second)},
		} {
			stream, err := s.leases.Open(s.context(), request)
			s.must(err)
			_, err = stream.Recv()
			same(t, "Open", outcome(err), want)
		}
		for refusal, want := range map[error]string{
			recipes.ErrUnreachable:   "Unavailable ENSEMBLE_UNREACHABLE",
			recipes.ErrDenied:        "PermissionDenied ENSEMBLE_DENIED",
			recipes.ErrUnsafeTimeout: "InvalidArgument INVALID_FIELD ttl",
		} {
			s.ensemble.answer(refusal, false)
			stream, err := s.leases.Open(s.context(), &leasev1.OpenRequest{Ttl: lasting(time.Second)})
			s.must(err)
			_, err = stream.Recv()
			same(t, "Open", outcome(err), want)
		}
	})
}

func TestLeasesOfNobodyAreNotFound(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		nobody := strings.Repeat("0", 32)
		same(t, "Check", s.checkedLease(nobody), "NotFound LEASE_NOT_FOUND")
		same(t, "Check", s.checkedLease(""), "InvalidArgument INVALID_FIELD lease_id")
		_, err := s.leases.Close(s.context(), &leasev1.CloseRequest{LeaseId: nobody})
		same(t, "Close", outcome(err), "NotFound LEASE_NOT_FOUND")
		_, err = s.leases.Close(s.context(), &leasev1.CloseRequest{LeaseId: "x"})
		same(t, "Close", outcome(err), "InvalidArgument INVALID_FIELD lease_id")
	})
}

func TestListShowsLeasesOldestFirstInPagesAndNeverTheirIDs(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		lease := s.open(s.callers, &leasev1.OpenRequest{Owner: "first", Metadata: map[string]string{"pod": "a"}})
		s.hold(s.callers, &lockv1.AcquireRequest{Name: "held", LeaseId: lease.id})
		s.hold(s.callers, &lockv1.AcquireRequest{Name: "wanted", Owner: "second"})
		s.acquire(s.callers, &lockv1.AcquireRequest{Name: "wanted", LeaseId: lease.id}).sees("queued 1")
		lease.session.Suspend()
		lease.sees("suspended")

		page, err := s.leases.List(s.context(), &leasev1.ListRequest{PageSize: 1})
		s.must(err)
		first := page.GetLeases()[0]
		same(t, "owner", first.GetOwner(), "first")
		same(t, "metadata", first.GetMetadata(), map[string]string{"pod": "a"})
		same(t, "state", first.GetState(), "STATE_SUSPENDED")
		same(t, "possessions", len(first.GetPossessions()), 2)
		same(t, "first possession", first.GetPossessions()[0].GetName(), "held")
		same(t, "which is held", first.GetPossessions()[0].GetHeld(), true)
		same(t, "and the other", first.GetPossessions()[1].GetHeld(), false)
		if strings.Contains(page.String(), lease.id) {
			t.Error("the lease's id is in the list")
		}
		page, err = s.leases.List(s.context(), &leasev1.ListRequest{PageToken: page.GetNextPageToken()})
		s.must(err)
		same(t, "owner of the second page", page.GetLeases()[0].GetOwner(), "second")
		same(t, "next page", page.GetNextPageToken(), "")
		_, err = s.leases.List(s.context(), &leasev1.ListRequest{PageToken: "?"})
		same(t, "a bad token", outcome(err), "InvalidArgument INVALID_FIELD page_token")
		_, err = s.leases.List(s.context(), &leasev1.ListRequest{PageSize: 1001})
		same(t, "a bad size", outcome(err), "InvalidArgument INVALID_FIELD page_size")
		lease.session.Resume()
	})
}
