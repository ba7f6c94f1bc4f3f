package service_test

import (
	"context"
	"maps"
	"strings"
	"testing"
	"time"

	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	membershipv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/membership/v1"
	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/service"
	"github.com/sidekeeper/sidekeeper/test/support/standin"
)

func TestAMemberIsThereForAsLongAsItsStream(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		first, second := s.joined(s.callers, "a"), s.joined(s.callers, "b")
		same(t, "members", s.inside(), "a b")
		if first.incarnation <= 0 || second.incarnation <= first.incarnation {
			t.Errorf("incarnations %d, then %d", first.incarnation, second.incarnation)
		}
		first.cancel()
		first.ends("Canceled")
		s.awaitInside("b")
		again := s.joined(s.callers, "a")
		if again.incarnation <= second.incarnation {
			t.Errorf("incarnation %d after %d", again.incarnation, second.incarnation)
		}
	})
}

func TestAJoinEndsWithTheReason(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, want string
		happen     func(s *scene, lease *opening)
	}{
		{"the session expires", "Aborted LEASE_LOST", func(_ *scene, lease *opening) { lease.session.Expire() }},
		{"the session can no longer be proved", "Aborted LEASE_LOST", func(_ *scene, lease *opening) { lease.session.Suspend() }},
		{"the lease is closed", "Aborted LEASE_CLOSED", func(s *scene, lease *opening) {
			_, err := s.leases.Close(s.context(), &leasev1.CloseRequest{LeaseId: lease.id})
			s.must(err)
		}},
		{"somebody replaces it", "Aborted MEMBER_REPLACED", func(s *scene, _ *opening) {
			s.join(s.callers, &membershipv1.JoinRequest{Member: "a", OnConflict: replaces}).sees("joined")
		}},
		{"the node is deleted by hand", "Aborted MEMBER_REMOVED", func(s *scene, _ *opening) {
			s.must(s.ensemble.memory.Delete(shopPath + "/a"))
		}},
		{"the group is deleted", "Aborted MEMBER_REMOVED", func(s *scene, _ *opening) {
			response, err := s.operators.groups.Delete(s.context(), &membershipv1.DeleteRequest{Group: "shop", Force: true, Reason: "moved"})
			s.must(err)
			same(s.t, "forced", response.GetForced(), 0)
		}},
		{"the sidecar stops", "Aborted SIDECAR_STOPPING", func(s *scene, _ *opening) { s.must(<-s.drain(0)) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScene(t, short)
			lease := s.open(s.callers, &leasev1.OpenRequest{})
			j := s.join(s.callers, &membershipv1.JoinRequest{Member: "a", LeaseId: lease.id})
			j.sees("joined")
			c.happen(s, lease)
			j.ends(c.want)
		})
	}
}

func TestWhoReplacedAMemberIsTold(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	j := s.joined(s.callers, "a")
	s.join(s.callers, &membershipv1.JoinRequest{Member: "a", Owner: "pod-7", OnConflict: replaces}).sees("joined")
	_, err := j.stream.Recv()
	for _, part := range []string{"MEMBER_REPLACED: ", "uid:", "pod-7"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("the replaced member is told %v", err)
		}
	}
}

func TestAJoinThatCannotBeginSaysWhy(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, want string
		request    *membershipv1.JoinRequest
		before     func(s *scene)
	}{
		{"the name is in use", "AlreadyExists MEMBER_EXISTS", &membershipv1.JoinRequest{}, nil},
		{"the name is in use by others", "AlreadyExists MEMBER_EXISTS", &membershipv1.JoinRequest{Member: "b"}, func(s *scene) {
			s.foreigner("b", "")
		}},
		{"the name stays in use", "DeadlineExceeded WAIT_TIMEOUT", &membershipv1.JoinRequest{
			OnConflict: waits, WaitTimeout: lasting(50 * time.Millisecond),
		}, nil},
		{"no such lease", "NotFound LEASE_NOT_FOUND", &membershipv1.JoinRequest{LeaseId: strings.Repeat("0", 32)}, nil},
		{"no ensemble", "Unavailable ENSEMBLE_UNREACHABLE", &membershipv1.JoinRequest{}, func(s *scene) {
			s.ensemble.answer(recipes.ErrUnreachable, false)
		}},
		{"stopping", "Unavailable SIDECAR_STOPPING", &membershipv1.JoinRequest{}, func(s *scene) {
			s.drain(time.Hour)
			<-service.Stopping(s.services)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScene(t)
			s.joined(s.callers, "a")
			if c.before != nil {
				c.before(s)
			}
			if c.request.GetMember() == "" {
				c.request.Member = "a"
			}
			s.join(s.callers, c.request).sees(c.want)
		})
	}
}

func TestAMemberThatWaitsIsInWhenTheNameIsFree(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		first := s.joined(s.callers, "a")
		<-s.ensemble.opened
		second := s.join(s.callers, &membershipv1.JoinRequest{Member: "a", OnConflict: waits})
		s.awaitWatched(<-s.ensemble.opened)
		first.cancel()
		second.sees("joined")
		same(t, "members", s.inside(), "a")
	})
}

// awaitWatched returns when a session that joins has met the member that is there.
func (s *scene) awaitWatched(session *standin.Session) {
	s.t.Helper()
	for deadline := time.Now().Add(patient); session.Count("Create") == 0; {
		if time.Now().After(deadline) {
			s.t.Fatal("it does not try to join")
		}
		time.Sleep(time.Millisecond)
	}
}

func TestAForeignMemberIsReplacedWhenItsLeaseMustHaveExpired(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		s.foreigner("a", "theirs")
		began := time.Now()
		j := s.join(s.callers, &membershipv1.JoinRequest{Member: "a", OnConflict: replaces})
		j.sees("joined")
		if took := time.Since(began); took < 500*time.Millisecond {
			t.Errorf("joined after %v", took)
		}
	}, func(o *service.Options) { o.SessionTimeout, o.TickTime = 400*time.Millisecond, 100*time.Millisecond })
}

func TestAJoinThatIsCancelledLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		request *membershipv1.JoinRequest
		want    string
	}{
		{"while it waits", &membershipv1.JoinRequest{Member: "a", OnConflict: waits}, "a"},
		{"while it replaces", &membershipv1.JoinRequest{Member: "foreign", OnConflict: replaces}, "a foreign"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newScene(t)
			s.joined(s.callers, "a")
			if strings.Contains(c.want, "foreign") {
				s.foreigner("foreign", "")
			}
			<-s.ensemble.opened
			j := s.join(s.callers, c.request)
			session := <-s.ensemble.opened
			s.awaitWatched(session)
			j.cancel()
			<-session.Done()
			same(t, "members", s.inside(), c.want)
		})
	}
	t.Run("while it creates", func(t *testing.T) {
		s := newScene(t)
		lease := s.open(s.callers, &leasev1.OpenRequest{})
		creating, proceed := make(chan struct{}), make(chan struct{})
		lease.session.Before(func(operation standin.Operation) error {
			if operation.Name == "Create" {
				close(creating)
				<-proceed
			}
			return nil
		})
		j := s.join(s.callers, &membershipv1.JoinRequest{Member: "a", LeaseId: lease.id})
		<-creating
		j.cancel()
		j.ends("Canceled")
		close(proceed)
		lease.session.Before(nil)
		s.join(s.callers, &membershipv1.JoinRequest{Member: "a", LeaseId: lease.id, OnConflict: waits}).sees("joined")
		lease.cancel()
		s.awaitInside("")
	})
}

func TestOneLeaseIsOneMemberOfAName(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		lease := s.open(s.callers, &leasev1.OpenRequest{})
		request := func(conflict membershipv1.OnConflict) *membershipv1.JoinRequest {
			return &membershipv1.JoinRequest{Member: "a", LeaseId: lease.id, OnConflict: conflict}
		}
		first := s.join(s.callers, request(0))
		first.sees("joined")
		for _, conflict := range []membershipv1.OnConflict{0, waits, replaces} {
			s.join(s.callers, request(conflict)).sees("AlreadyExists MEMBER_EXISTS")
		}
		s.join(s.callers, &membershipv1.JoinRequest{Member: "b", LeaseId: lease.id}).sees("joined")
		for range 20 {
			first.cancel()
			first.ends("Canceled")
			again := s.join(s.callers, request(waits))
			again.sees("joined")
			if again.incarnation <= first.incarnation {
				t.Errorf("incarnation %d after %d", again.incarnation, first.incarnation)
			}
			first = again
		}
		same(t, "members", s.inside(), "a b")
	})
}

func TestALeaseTellsWhatItIsAMemberOf(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		lease := s.open(s.callers, &leasev1.OpenRequest{Owner: "pod-7", Metadata: map[string]string{"port": "1"}})
		s.join(s.callers, &membershipv1.JoinRequest{Group: "team/shop", Member: "a", LeaseId: lease.id}).sees("joined")
		response, err := s.leases.List(s.context(), &leasev1.ListRequest{})
		s.must(err)
		same(t, "possessions", response.GetLeases()[0].GetPossessions(), []*leasev1.Possession{
			{Kind: "member", Name: "team/shop/a", Held: true},
		})
		view, err := s.groups.Get(s.context(), &membershipv1.GetRequest{Group: "team/shop"})
		s.must(err)
		member := view.GetView().GetMembers()[0]
		if member.GetOwner() != "pod-7" || !maps.Equal(member.GetMetadata(), map[string]string{"port": "1"}) {
			t.Errorf("the member says %v", member)
		}
	})
}

func TestASuspendedMemberIsToldAndStaysUntilItsValidityIsOver(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	j := s.joined(s.callers, "a")
	session := <-s.ensemble.opened
	session.Suspend()
	j.sees("suspended")
	if remaining := j.last.GetSuspended().GetRemaining().AsDuration(); remaining <= 0 || remaining > 30*time.Second {
		t.Errorf("remaining %v", remaining)
	}
	session.Resume()
	for next := j.next(); next != "resumed"; next = j.next() {
		same(t, "event before contact is back", next, "suspended")
	}

	s = newScene(t, short)
	j = s.joined(s.callers, "a")
	(<-s.ensemble.opened).Suspend()
	j.sees("suspended")
	for next := j.next(); next != "Aborted LEASE_LOST"; next = j.next() {
		same(t, "event before the loss", next, "suspended")
	}
}

func TestACallerThatDiesIsOutAtOnceAndOneThatFellSilentWhenItsValidityIsOver(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		silent, fallSilent := s.dialSilent()
		s.joined(silent, "a")
		began := time.Now()
		fallSilent()
		s.awaitInside("")
		if stayed := time.Since(began); stayed < 1900*time.Millisecond {
			t.Errorf("a silent caller's member stayed for %v", stayed)
		}
	}, short)
}

func TestMembersStayUntilTheDrainIsOver(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		lease := s.open(s.callers, &leasev1.OpenRequest{})
		first := s.join(s.callers, &membershipv1.JoinRequest{Member: "a", LeaseId: lease.id})
		first.sees("joined")
		second := s.joined(s.callers, "b")
		s.hold(s.callers, &lockv1.AcquireRequest{Name: "orders"})
		waiter := s.join(s.callers, &membershipv1.JoinRequest{Member: "a", OnConflict: waits})
		watch := s.watchGroup(s.callers, "shop")
		watch.sees("a b: +a +b")
		drained := s.drain(10 * time.Second)
		waiter.sees("Unavailable SIDECAR_STOPPING")
		watch.sees("Unavailable SIDECAR_STOPPING")
		same(t, "members", s.inside(), "a b")
		first.sees("Aborted SIDECAR_STOPPING")
		second.sees("Aborted SIDECAR_STOPPING")
		s.must(<-drained)
		same(t, "members", s.inside(), "")
	})
}

func TestDrainIsOverWhenAllMembersHaveLeft(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		j := s.joined(s.callers, "a")
		drained := s.drain(time.Hour)
		j.cancel()
		s.must(<-drained)
	})
}

func TestAnUpdateIsStoredAndTold(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		j := s.joined(s.callers, "a")
		watch := s.watchGroup(s.callers, "shop")
		watch.sees("a: +a")
		response, err := s.groups.Update(s.context(), &membershipv1.UpdateRequest{
			Group: "shop", Member: "a", Metadata: map[string]string{"port": "2"},
		})
		s.must(err)
		same(t, "incarnation", response.GetIncarnation(), j.incarnation)
		j.sees("[port:2]")
		watch.sees("a: ~a")
		same(t, "metadata", watch.last.GetView().GetMembers()[0].GetMetadata(), map[string]string{"port": "2"})
	})
}

func TestOnlyItsCallerUpdatesAMember(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	lease, other := s.open(s.callers, &leasev1.OpenRequest{}), s.open(s.callers, &leasev1.OpenRequest{})
	j := s.join(s.callers, &membershipv1.JoinRequest{Member: "a", LeaseId: lease.id})
	j.sees("joined")
	update := func(from callers, request *membershipv1.UpdateRequest) string {
		request.Group = "shop"
		if request.GetMember() == "" {
			request.Member = "a"
		}
		_, err := from.groups.Update(s.context(), request)
		return outcome(err)
	}
	s.foreigner("theirs", "")
	same(t, "with its lease", update(s.callers, &membershipv1.UpdateRequest{LeaseId: lease.id}), "OK")
	same(t, "without a lease", update(s.callers, &membershipv1.UpdateRequest{}), "OK")
	same(t, "with another lease", update(s.callers, &membershipv1.UpdateRequest{LeaseId: other.id}), "NotFound MEMBER_NOT_FOUND")
	same(t, "from somebody else", update(s.others, &membershipv1.UpdateRequest{}), "NotFound MEMBER_NOT_FOUND")
	same(t, "with somebody else's lease", update(s.others, &membershipv1.UpdateRequest{LeaseId: lease.id}), "NotFound LEASE_NOT_FOUND")
	same(t, "of a foreign member", update(s.callers, &membershipv1.UpdateRequest{Member: "theirs"}), "NotFound MEMBER_NOT_FOUND")
	same(t, "of nobody", update(s.callers, &membershipv1.UpdateRequest{Member: "b"}), "NotFound MEMBER_NOT_FOUND")
	j.cancel()
	j.ends("Canceled")
	s.awaitInside("theirs")
	same(t, "after its end", update(s.callers, &membershipv1.UpdateRequest{}), "NotFound MEMBER_NOT_FOUND")
}

func TestAnUpdateWhoseLeaseIsLostSaysSo(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		s.joined(s.callers, "a")
		session := <-s.ensemble.opened
		session.Suspend()
		_, err := s.groups.Update(s.context(), &membershipv1.UpdateRequest{Group: "shop", Member: "a"})
		same(t, "Update", outcome(err), "Aborted LEASE_LOST")
	}, short)
}

func TestAnUpdateThatNobodyWaitsForGoesOn(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		s.joined(s.callers, "a")
		session := <-s.ensemble.opened
		waiting, goOn := context.WithCancel(s.context())
		defer goOn()
		ctx, cancel := context.WithCancel(s.context())
		session.Before(func(operation standin.Operation) error {
			if operation.Name == "Update" {
				cancel()
				<-waiting.Done()
			}
			return nil
		})
		_, err := s.groups.Update(ctx, &membershipv1.UpdateRequest{
			Group: "shop", Member: "a", Metadata: map[string]string{"port": "2"},
		})
		same(t, "Update", outcome(err), "Canceled")
		watch := s.watchGroup(s.callers, "shop")
		watch.sees("a: +a")
		goOn()
		watch.sees("a: ~a")
	})
}
