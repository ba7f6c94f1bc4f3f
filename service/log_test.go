package service_test

import (
	"regexp"
	"strings"
	"testing"

	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	membershipv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/membership/v1"
	"github.com/sidekeeper/sidekeeper/service"
)

// Ids are secrets: whoever reads the log must not be able to use one. All that may happen to a lease and to a hold is logged in
// full detail.
func TestNoIDStandsInTheLog(t *testing.T) {
	t.Parallel()
	book := &logbook{}
	s := newScene(t, func(o *service.Options) { o.Log = book.Logger() })
	lease := s.open(s.callers, &leasev1.OpenRequest{Owner: "somebody"})
	released := s.hold(s.callers, &lockv1.AcquireRequest{Name: "orders", LeaseId: lease.id})
	lost := s.hold(s.callers, &lockv1.AcquireRequest{Name: "stock"})
	(<-s.ensemble.opened).Expire()
	lost.sees("Aborted LEASE_LOST")
	same(t, "Check of a lost hold", s.checked(s.callers, lost.hold), "LEASE_LOST")
	same(t, "Check by somebody else", s.checked(s.others, released.hold), "NotFound HOLD_NOT_FOUND")
	s.acquire(s.others, &lockv1.AcquireRequest{Name: "orders", LeaseId: lease.id}).sees("NotFound LEASE_NOT_FOUND")
	s.acquire(s.callers, &lockv1.AcquireRequest{Name: "orders", LeaseId: lease.id}).sees("FailedPrecondition ALREADY_CONTENDING")
	_, err := s.groups.Update(s.context(), &membershipv1.UpdateRequest{Group: "g", Member: "m", LeaseId: lease.id})
	same(t, "Update of no member", outcome(err) != "OK", true)
	_, err = s.Release(s.context(), &lockv1.ReleaseRequest{HoldId: released.hold})
	s.must(err)
	_, err = s.leases.Close(s.context(), &leasev1.CloseRequest{LeaseId: lease.id})
	s.must(err)
	s.must(s.stop())

	log := book.Text()
	for _, event := range []string{"lease opened", "lease ended", "lock lost", "finished call", "LEASE_NOT_FOUND", "ALREADY_CONTENDING"} {
		same(t, event+" in the log", strings.Contains(log, event), true)
	}
	opened := regexp.MustCompile(`"lease opened","lease":"([0-9a-f]{8})".*"owner":"somebody".*"call":(\d+)`).FindStringSubmatch(log)
	same(t, "a lease and the call that opened it", len(opened), 3)
	ofCall, ofLease := `"call":`+opened[2]+`[,}]`, `"lease":"`+opened[1]+`"`
	same(t, "the line of that call", linesWith(log, `"finished call"`, `"grpc.method":"`+over("Open", "Multiplex")+`"`, ofCall, ofLease), 1)
	same(t, "lines of calls that stood on the lease", linesWith(log, `"finished call"`, `"grpc.method":"Acquire"`, `"call":`, ofLease), 2)
	for what, id := range map[string]string{"the lease's id": lease.id, "a released hold's id": released.hold, "a lost hold's id": lost.hold} {
		if id == "" || strings.Contains(log, id) {
			t.Errorf("%s (%q) stands in the log", what, id)
		}
	}
}

// linesWith counts the lines of a log that each pattern is found in.
func linesWith(log string, patterns ...string) (count int) {
	for line := range strings.Lines(log) {
		found := true
		for _, pattern := range patterns {
			found = found && regexp.MustCompile(pattern).MatchString(line)
		}
		if found {
			count++
		}
	}
	return count
}
