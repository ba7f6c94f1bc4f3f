package service_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"google.golang.org/grpc/status"

	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	"github.com/sidekeeper/sidekeeper/service"
	"github.com/sidekeeper/sidekeeper/test/support/standin"
)

func TestASuspendedHolderIsToldHowLongItStillHasAndThenThatItIsLost(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		a := s.hold(s.callers, &lockv1.AcquireRequest{Name: "orders"})
		session := <-s.ensemble.opened
		session.Suspend()
		a.sees("suspended")
		first := a.last.GetSuspended().GetRemaining().AsDuration()
		a.sees("suspended")
		second := a.last.GetSuspended().GetRemaining().AsDuration()
		if first <= second || second <= 0 {
			t.Errorf("remaining %v, then %v", first, second)
		}
		a.skips("suspended", "Aborted LEASE_LOST")
		same(t, "Check", s.checked(s.callers, a.hold), "LEASE_LOST")
	}, func(o *service.Options) { o.SessionTimeout, o.TickTime = 4*time.Second, 200*time.Millisecond })
}

func TestContactThatComesBackIsToldAndNothingIsLost(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		a := s.hold(s.callers, &lockv1.AcquireRequest{Name: "orders"})
		session := <-s.ensemble.opened
		session.Suspend()
		a.sees("suspended")
		session.Resume()
		a.skips("suspended", "resumed")
		same(t, "Check", s.checked(s.callers, a.hold), "held")
	})
}

func TestALostLockEndsBeforeTheNextIsGranted(t *testing.T) {
	t.Parallel()
	s := newScene(t, func(o *service.Options) { o.SessionTimeout, o.TickTime = 4*time.Second, time.Second }) // a second lies between
	a := s.hold(s.callers, &lockv1.AcquireRequest{Name: "orders"})
	session := <-s.ensemble.opened
	b := s.acquire(s.callers, &lockv1.AcquireRequest{Name: "orders"})
	b.sees("queued 1")
	granted := make(chan time.Time, 1)
	go func() { b.next(); granted <- time.Now() }()
	session.Suspend()
	a.skips("suspended", "Aborted LEASE_LOST")
	lost := time.Now()
	if margin := (<-granted).Sub(lost); margin <= 0 {
		t.Errorf("the next was granted %v before the first knew", -margin)
	}
	same(t, "the next holder", s.checked(s.callers, b.hold), "held")
}

func TestRevocationIsToldWithWhoAndWhy(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	a := s.hold(s.callers, &lockv1.AcquireRequest{Name: "orders"})
	response, err := s.Revoke(s.context(), &lockv1.RevokeRequest{Name: "orders", Reason: "please"})
	s.must(err)
	same(t, "asked", response.GetAsked(), 1)
	identity := "uid:" + uid()
	a.sees("asked by " + identity + " please")
	if grace := a.last.GetRevocationRequested().GetGrace(); grace != nil {
		t.Errorf("grace %v, though none was given", grace)
	}
}

func TestAGraceEndsTheHoldAndIsNotProlonged(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	a := s.hold(s.callers, &lockv1.AcquireRequest{Name: "orders"})
	by := "asked by " + "uid:" + uid()
	_, err := s.operators.Revoke(s.context(), &lockv1.RevokeRequest{
		Name: "orders", Reason: "one", Grace: lasting(3 * time.Second),
	})
	s.must(err)
	a.sees(by + " one")
	_, err = s.operators.Revoke(s.context(), &lockv1.RevokeRequest{Name: "orders", Reason: "two", Grace: lasting(time.Hour)})
	s.must(err)
	a.sees(by + " two")
	if grace := a.last.GetRevocationRequested().GetGrace().AsDuration(); grace > 3*time.Second {
		t.Errorf("the grace was prolonged to %v", grace)
	}
	a.sees("Aborted LOCK_REVOKED")
	same(t, "Check", s.checked(s.callers, a.hold), "LOCK_REVOKED")
	s.awaitContenders("orders", 0)
}

func TestRevocationsOfOthersAreUnderstood(t *testing.T) {
	t.Parallel()
	for _, form := range []string{"unlock", "__REVOKE__"} {
		s := newScene(t)
		a := s.hold(s.callers, &lockv1.AcquireRequest{Name: "orders"})
		s.must(s.ensemble.memory.Set("/locks/orders/"+s.ensemble.memory.Names("/locks/orders")[0], []byte(form)))
		a.sees("asked by")
	}
}

func TestBreakEndsTheHoldAndAnswersWhenItIsGone(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		a := s.hold(s.callers, &lockv1.AcquireRequest{Name: "orders"})
		_, err := s.operators.Break(s.context(), &lockv1.BreakRequest{Name: "orders", FencingToken: a.token + 1, Reason: "stuck"})
		same(t, "Break with a wrong token", outcome(err), "FailedPrecondition FENCING_TOKEN_MISMATCH")
		response, err := s.operators.Break(s.context(), &lockv1.BreakRequest{Name: "orders", FencingToken: a.token, Reason: "stuck"})
		s.must(err)
		same(t, "forced", response.GetForced(), false)
		same(t, "contenders", s.contenders("orders"), 0)
		a.sees("Aborted LOCK_BROKEN")
		same(t, "Check", s.checked(s.callers, a.hold), "LOCK_BROKEN")
	})
}

func TestBreakEndsAWaiterToo(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		s.hold(s.callers, &lockv1.AcquireRequest{Name: "orders"})
		b := s.acquire(s.callers, &lockv1.AcquireRequest{Name: "orders"})
		b.sees("queued 1")
		view, err := s.Get(s.context(), &lockv1.GetRequest{Name: "orders"})
		s.must(err)
		token := view.GetView().GetWaiters()[0].GetToken()
		_, err = s.operators.Break(s.context(), &lockv1.BreakRequest{Name: "orders", FencingToken: token, Reason: "stuck"})
		s.must(err)
		b.sees("Aborted LOCK_BROKEN")
	})
}

func TestBreakByForceRemovesThePlaceOfAHolderThatDoesNotHear(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		path, err := s.ensemble.memory.Create("/locks/orders/_c_x-lock-", nil, 3, 7)
		s.must(err)
		node, err := s.ensemble.memory.Read(path)
		s.must(err)
		response, err := s.operators.Break(s.context(), &lockv1.BreakRequest{
			Name: "orders", FencingToken: node.Czxid, Reason: "stuck", ForceAfter: lasting(10 * time.Millisecond),
		})
		s.must(err)
		same(t, "forced", response.GetForced(), true)
		same(t, "contenders", s.contenders("orders"), 0)
	})
}

func TestNodesTellHowLongTheirSessionsLast(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		s.hold(s.callers, &lockv1.AcquireRequest{Name: "orders"})
		s.joined(s.callers, "a")
		for _, directory := range []string{"/locks/orders", "/sidekeeper/groups/shop"} {
			node, err := s.ensemble.memory.Read(directory + "/" + s.ensemble.memory.Names(directory)[0])
			s.must(err)
			var told struct {
				Timeout int64 `json:"timeout_ms"`
			}
			s.must(json.Unmarshal(node.Data, &told))
			same(t, directory, time.Duration(told.Timeout)*time.Millisecond, 30*time.Second)
		}
	})
}

func TestAPlaceThatSomebodyRemovesByHandIsBroken(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		a := s.hold(s.callers, &lockv1.AcquireRequest{Name: "orders"})
		s.must(s.ensemble.memory.Delete("/locks/orders/" + s.ensemble.memory.Names("/locks/orders")[0]))
		a.sees("Aborted LOCK_BROKEN")
	})
}

// A session that the ensemble ends takes its places with it: whichever a stream sees first, it knows of both.
func TestAPlaceThatIsGoneWithItsSessionIsALostLease(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		for range 50 {
			lease := s.open(s.callers, &leasev1.OpenRequest{})
			a := s.hold(s.callers, &lockv1.AcquireRequest{Name: "orders", LeaseId: lease.id})
			lease.session.Expire()
			a.sees("Aborted LEASE_LOST")
			lease.sees("Aborted LEASE_LOST")
		}
	})
}

// A session layer may hear of the deletion first, and of the session's end by force later. The stream does not wait for that, since
// another may be granted the lock by now.
func TestAPlaceThatIsGoneEndsItsStreamAtOnceThoughItsSessionMayBeOverToo(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		lease := s.open(s.callers, &leasev1.OpenRequest{})
		a := s.hold(s.callers, &lockv1.AcquireRequest{Name: "orders", LeaseId: lease.id})
		b := s.hold(s.callers, &lockv1.AcquireRequest{Name: "others", LeaseId: lease.id})
		s.must(s.ensemble.memory.Delete("/locks/orders/" + s.ensemble.memory.Names("/locks/orders")[0]))
		a.sees("Aborted LOCK_BROKEN")
		same(t, "the session when the stream has ended", lease.session.Err(), nil)
		lease.session.Expire()
		b.sees("Aborted LEASE_LOST")
		lease.sees("Aborted LEASE_LOST")
		same(t, "Check", s.checked(s.callers, a.hold)+" "+s.checked(s.callers, b.hold), "LOCK_BROKEN LEASE_LOST")
	})
}

func TestOperatorMethodsAreForOperators(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	_, err := s.Break(s.context(), &lockv1.BreakRequest{Name: "orders", FencingToken: 1, Reason: "stuck"})
	same(t, "Break", outcome(err), "PermissionDenied OPERATOR_ONLY")
	_, err = s.Revoke(s.context(), &lockv1.RevokeRequest{Name: "orders", Grace: lasting(0)})
	same(t, "Revoke with a grace", outcome(err), "PermissionDenied OPERATOR_ONLY")
	_, err = s.operators.Break(s.context(), &lockv1.BreakRequest{Name: "orders"})
	same(t, "Break of no token", outcome(err), "InvalidArgument INVALID_FIELD fencing_token")
	_, err = s.operators.Revoke(s.context(), &lockv1.RevokeRequest{Name: "orders", Grace: lasting(25 * time.Hour)})
	same(t, "Revoke with too long a grace", outcome(err), "InvalidArgument INVALID_FIELD grace")
}

func TestABreakNeedsAReasonAndWritesNothingWithoutOne(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	a := s.hold(s.callers, &lockv1.AcquireRequest{Name: "orders"})
	place := "/locks/orders/" + s.ensemble.memory.Names("/locks/orders")[0]
	before, err := s.ensemble.memory.Read(place)
	s.must(err)
	const needed = "1 to 256 bytes, not only spaces"
	for _, c := range [][2]string{{"", needed}, {" \u00a0", needed}, {"a\nb", "no control characters"}} {
		reason, rule := c[0], c[1]
		_, err := s.operators.Break(s.context(), &lockv1.BreakRequest{Name: "orders", FencingToken: a.token, Reason: reason, ForceAfter: lasting(0)})
		same(t, "Break", outcome(err), "InvalidArgument INVALID_FIELD reason")
		same(t, "message", status.Convert(err).Message(), fmt.Sprintf("INVALID_FIELD: invalid field: reason is %q: %s", reason, rule))
	}
	after, err := s.ensemble.memory.Read(place)
	s.must(err)
	same(t, "version of the place", after.Version, before.Version)
	same(t, "Check", s.checked(s.callers, a.hold), "held")
}

func TestASilentCallerKeepsItsPlaceUntilItsTimeIsOver(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		silent, fallSilent := s.dialSilent()
		s.hold(silent, &lockv1.AcquireRequest{Name: "orders"})
		b := s.acquire(s.callers, &lockv1.AcquireRequest{Name: "orders"})
		b.sees("queued 1")
		began := time.Now()
		fallSilent()
		b.sees("granted")
		if kept := time.Since(began); kept < 1900*time.Millisecond {
			t.Errorf("the next was granted %v after a caller fell silent that may count on 1.9 s", kept)
		}
	}, short)
}

func TestASilentCallersLeaseIsKeptUntilItsTimeIsOver(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		silent, fallSilent := s.dialSilent()
		lease := s.open(silent, &leasev1.OpenRequest{})
		s.hold(silent, &lockv1.AcquireRequest{Name: "orders", LeaseId: lease.id})
		b := s.acquire(s.callers, &lockv1.AcquireRequest{Name: "orders"})
		b.sees("queued 1")
		began := time.Now()
		fallSilent()
		b.sees("granted")
		if kept := time.Since(began); kept < 1900*time.Millisecond {
			t.Errorf("the next was granted %v after a caller fell silent that may count on 1.9 s", kept)
		}
	}, short)
}

// awaitEnd asks until Check says that a hold has ended, and returns when that was.
func (s *scene) awaitEnd(hold string) time.Time {
	s.t.Helper()
	ctx := s.context()
	for range time.Tick(10 * time.Millisecond) {
		if s.checked(s.callers, hold) != "held" {
			break
		}
		s.must(ctx.Err())
	}
	return time.Now()
}

func TestEveryDeliberateEndComesBeforeTheHandOver(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		end           func(s *scene, a *acquiring) error
		status, check string
	}{
		"Release": {func(s *scene, a *acquiring) error {
			_, err := s.Release(s.context(), &lockv1.ReleaseRequest{HoldId: a.hold})
			return err
		}, "OK", "RELEASED"},
		"Break": {func(s *scene, a *acquiring) error {
			_, err := s.operators.Break(s.context(), &lockv1.BreakRequest{Name: "orders", FencingToken: a.token, Reason: "stuck"})
			return err
		}, "Aborted LOCK_BROKEN", "LOCK_BROKEN"},
		"Revoke": {func(s *scene, a *acquiring) error {
			_, err := s.operators.Revoke(s.context(), &lockv1.RevokeRequest{Name: "orders", Grace: lasting(0)})
			return err
		}, "Aborted LOCK_REVOKED", "LOCK_REVOKED"},
		"cancel": {func(_ *scene, a *acquiring) error {
			a.cancel()
			return nil
		}, "Canceled", "RELEASED"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			lease := s.open(s.callers, &leasev1.OpenRequest{})
			a := s.hold(s.callers, &lockv1.AcquireRequest{Name: "orders", LeaseId: lease.id})
			removed := make(chan string, 1)
			lease.session.Before(func(operation standin.Operation) error {
				if operation.Name == "Dequeue" { // the place is still there, and its caller knows already
					removed <- a.end() + ", Check " + s.checked(s.callers, a.hold)
				}
				return nil
			})
			s.must(test.end(s, a))
			same(t, "before the place is removed", <-removed, test.status+", Check "+test.check)
			s.awaitContenders("orders", 0)
		})
	}
}
