package service_test

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"

	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	"github.com/sidekeeper/sidekeeper/service"
	"github.com/sidekeeper/sidekeeper/test/support/standin"
)

// long has sessions last so long that nobody waits for their end by mistake.
func long(o *service.Options) { o.SessionTimeout, o.TickTime = time.Minute, 3*time.Second }

// short has sessions end within the time that a test can wait for.
func short(o *service.Options) { o.SessionTimeout, o.TickTime = 2*time.Second, 100*time.Millisecond }

// toldValid asks Check as a client does, and returns until when it may count.
func (s *scene) toldValid(from callers, hold string) time.Time {
	s.t.Helper()
	asked := time.Now()
	response, err := from.Check(s.context(), &lockv1.CheckRequest{HoldIds: []string{hold}})
	s.must(err)
	validFor := response.GetHolds()[0].GetValidFor().AsDuration()
	if validFor < 500*time.Millisecond {
		s.t.Fatalf("valid for %v", validFor)
	}
	return asked.Add(validFor)
}

// acknowledge says that a hold which has ended for this reason is not counted on any more.
func (s *scene) acknowledge(from callers, hold, reason string) {
	s.t.Helper()
	_, err := from.Release(s.context(), &lockv1.ReleaseRequest{HoldId: hold})
	same(s.t, "Release of a hold that has ended", outcome(err), "Aborted "+reason)
}

// dialLeaving gives callers whose connection is closed when the function it returns is called.
func (s *scene) dialLeaving() (callers, func()) {
	connected := make(chan net.Conn, 1)
	dialer := func(ctx context.Context, _ string) (net.Conn, error) {
		socket, err := s.connect(ctx)
		connected <- socket
		return socket, err
	}
	return s.dial(within, grpc.WithContextDialer(dialer)), func() {
		select {
		case socket := <-connected:
			_ = socket.Close()
		default: // nothing was dialled
		}
	}
}

// forcedEnds are the ways in which a hold ends otherwise than by its caller's own hand, and the reasons that are told. They
// return when the place is gone.
var forcedEnds = map[string]struct {
	end    func(s *scene, lease *opening, held *acquiring) error
	reason string
}{
	"Break": {func(s *scene, _ *opening, held *acquiring) error {
		_, err := s.operators.Break(s.context(), &lockv1.BreakRequest{
			Name: "orders", FencingToken: held.token, Reason: "stuck", ForceAfter: lasting(time.Hour),
		})
		return err
	}, "LOCK_BROKEN"},
	"Revoke": {func(s *scene, _ *opening, _ *acquiring) error {
		_, err := s.operators.Revoke(s.context(), &lockv1.RevokeRequest{Name: "orders", Grace: lasting(0)})
		return err
	}, "LOCK_REVOKED"},
	"Close over another connection": {func(s *scene, lease *opening, _ *acquiring) error {
		_, err := s.operators.leases.Close(s.context(), &leasev1.CloseRequest{LeaseId: lease.id})
		return err
	}, "LEASE_CLOSED"},
	"the opener ends the lease": {func(_ *scene, lease *opening, _ *acquiring) error {
		lease.cancel()
		return nil
	}, "LEASE_CLOSED"},
	"the opener leaves": {func(_ *scene, lease *opening, _ *acquiring) error {
		lease.leave()
		return nil
	}, "LEASE_CLOSED"},
	"the sidecar stops": {func(s *scene, _ *opening, _ *acquiring) error { return s.stop() }, "SIDECAR_STOPPING"},
}

// eachForcedEnd ends a hold on a lease that was opened over another connection, in each of these ways.
func eachForcedEnd(
	t *testing.T, ttl time.Duration, test func(s *scene, held *acquiring, from callers, reason string, freeze, end func()),
) {
	t.Helper()
	for name, by := range forcedEnds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, func(o *service.Options) { o.SessionTimeout, o.TickTime = ttl, ttl/20 })
			opener, leave := s.dialLeaving()
			lease := s.open(opener, &leasev1.OpenRequest{})
			lease.leave = leave
			from, freeze := s.dialFrozen()
			held := s.hold(from, &lockv1.AcquireRequest{Name: "orders", LeaseId: lease.id})
			var ending errgroup.Group
			test(s, held, from, by.reason, freeze, func() { ending.Go(func() error { return by.end(s, lease, held) }) })
			s.must(ending.Wait())
		})
	}
}

func TestAHoldEndedByForceKeepsItsPlaceForAFrozenCaller(t *testing.T) {
	t.Parallel()
	eachForcedEnd(t, 3*time.Second, func(s *scene, held *acquiring, from callers, _ string, freeze, end func()) {
		counts := s.toldValid(from, held.hold)
		freeze()
		end()
		s.awaitContenders("orders", 0)
		if left := time.Until(counts); left > 0 {
			s.t.Errorf("the lock is free while the frozen holder may count on it for %v more", left)
		}
	})
}

func TestAnAcknowledgedEndFreesThePlaceAtOnce(t *testing.T) {
	t.Parallel()
	eachForcedEnd(t, time.Minute, func(s *scene, held *acquiring, from callers, reason string, _, end func()) {
		counts := s.toldValid(from, held.hold)
		end()
		held.ends("Aborted " + reason)
		same(s.t, "Check, which is no acknowledgment", s.checked(from, held.hold), reason)
		same(s.t, "contenders until the end is acknowledged", s.contenders("orders"), 1)
		s.acknowledge(from, held.hold, reason)
		s.awaitContenders("orders", 0)
		if left := time.Until(counts); left < 10*time.Second {
			s.t.Errorf("the lock is free only %v before the end of what the holder was told", left)
		}
	})
}

func TestWhoWasToldNothingIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	eachForcedEnd(t, time.Minute, func(s *scene, held *acquiring, _ callers, reason string, _, end func()) {
		began := time.Now()
		end()
		held.ends("Aborted " + reason)
		s.awaitContenders("orders", 0)
		if lasted := time.Since(began); lasted > 10*time.Second {
			s.t.Errorf("the lock is free after %v", lasted)
		}
	})
}

// However a caller has been told a validity, and over whichever of its connections, the place of its hold is kept until that is
// over, also if that connection was opened for the question alone.
func TestWhateverWasToldIsWaitedFor(t *testing.T) {
	t.Parallel()
	checkHold := func(s *scene, _ *opening, held *acquiring, from callers) { s.toldValid(from, held.hold) }
	for name, test := range map[string]struct {
		tell  func(s *scene, lease *opening, held *acquiring, from callers)
		leave bool // the connection, when it was told
	}{
		"Check of the hold":                             {tell: checkHold},
		"Check of the hold over a connection that left": {tell: checkHold, leave: true},
		"Check of the lease": {tell: func(s *scene, lease *opening, _ *acquiring, from callers) {
			_, err := from.leases.Check(s.context(), &leasev1.CheckRequest{LeaseId: lease.id})
			s.must(err)
		}},
		"suspended": {tell: func(s *scene, lease *opening, held *acquiring, _ callers) {
			lease.session.Suspend()
			held.sees("suspended")
			lease.session.Resume()
			held.skips("suspended", "resumed")
		}},
		"the lease is suspended": {tell: func(s *scene, lease *opening, held *acquiring, _ callers) {
			lease.session.Suspend()
			lease.sees("suspended")
			lease.session.Resume()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, func(o *service.Options) { o.SessionTimeout, o.TickTime = 3*time.Second, 300*time.Millisecond })
			lease := s.open(s.callers, &leasev1.OpenRequest{})
			held := s.hold(s.callers, &lockv1.AcquireRequest{Name: "orders", LeaseId: lease.id})
			other, leave := s.dialLeaving()
			began := time.Now()
			test.tell(s, lease, held, other)
			if test.leave {
				leave()
			}
			_, err := s.operators.Break(s.context(), &lockv1.BreakRequest{
				Name: "orders", FencingToken: held.token, Reason: "stuck", ForceAfter: lasting(time.Hour),
			})
			s.must(err)
			if kept := time.Since(began); kept < 2500*time.Millisecond {
				t.Errorf("the place was kept for %v", kept)
			}
		})
	}
}

// A caller that asked for a hold over another connection, or for its lease, counts on it, though the process that acquired it has died.
func TestWhoWasToldByAnotherConnectionThanTheDeadHoldersIsWaitedFor(t *testing.T) {
	t.Parallel()
	virtually(t, whoWasToldByAnotherConnection, func(o *service.Options) { o.SessionTimeout, o.TickTime = 10*time.Second, 500*time.Millisecond })
}

func whoWasToldByAnotherConnection(t *testing.T, s *scene) {
	t.Helper()
	asked, unasked := s.open(s.callers, &leasev1.OpenRequest{}), s.open(s.callers, &leasev1.OpenRequest{})
	dying, die := s.dialLeaving()
	held := s.hold(dying, &lockv1.AcquireRequest{Name: "orders", LeaseId: asked.id})
	s.hold(dying, &lockv1.AcquireRequest{Name: "of-the-lease", LeaseId: asked.id})
	alone := s.hold(dying, &lockv1.AcquireRequest{Name: "others", LeaseId: unasked.id})
	began := time.Now()
	told, err := s.leases.Check(s.context(), &leasev1.CheckRequest{LeaseId: asked.id})
	s.must(err)
	ofLease := began.Add(told.GetValidFor().AsDuration())
	ofHold := s.toldValid(s.callers, held.hold)
	s.toldValid(dying, alone.hold)
	die()
	s.awaitContenders("others", 0)
	if left := time.Until(ofLease); left < time.Second {
		t.Errorf("a lock that nobody else asked for is free only %v before the end of what its dead holder was told", left)
	}
	for name, counts := range map[string]time.Time{"of-the-lease": ofLease, "orders": ofHold} {
		s.awaitContenders(name, 0)
		if left := time.Until(counts); left > 0 {
			t.Errorf("lock %s is free while somebody may count on it for %v more", name, left)
		}
	}
}

func TestWhoWasToldByAnotherConnectionThanTheOneThatCancelsIsWaitedFor(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		held := s.hold(s.callers, &lockv1.AcquireRequest{Name: "orders"})
		counts := s.toldValid(s.operators, held.hold)
		held.cancel()
		s.awaitContenders("orders", 0)
		if left := time.Until(counts); left > 0 {
			t.Errorf("the lock is free while somebody may count on it for %v more", left)
		}
	}, func(o *service.Options) { o.SessionTimeout, o.TickTime = 3*time.Second, 300*time.Millisecond })
}

// Whoever learns of the end of its hold may end the stream for that alone, while what it counts on the hold for goes on.
func TestWhoCancelsBecauseItsHoldHasEndedIsWaitedFor(t *testing.T) {
	ends := cancelAtEnd{over: make(chan struct{}), cancelled: make(chan struct{})}
	s := newScene(t, func(o *service.Options) {
		o.SessionTimeout, o.TickTime, o.Events = 3*time.Second, 300*time.Millisecond, ends
	})
	held := s.hold(s.callers, &lockv1.AcquireRequest{Name: "orders"})
	counts := s.toldValid(s.callers, held.hold)
	go func() {
		<-ends.over
		same(t, "Check while the end is written down", s.checked(s.callers, held.hold), "LOCK_BROKEN")
		held.cancel()
		time.Sleep(100 * time.Millisecond) // until the sidecar has seen it
		close(ends.cancelled)
	}()
	_, err := s.operators.Break(s.context(), &lockv1.BreakRequest{
		Name: "orders", FencingToken: held.token, Reason: "stuck", ForceAfter: lasting(time.Hour),
	})
	s.must(err)
	s.awaitContenders("orders", 0)
	if left := time.Until(counts); left > 0 {
		t.Errorf("the lock is free while the caller may count on it for %v more", left)
	}
}

// cancelAtEnd takes as long to note the end of a hold as its caller does to cancel the stream.
type cancelAtEnd struct {
	service.NoEvents
	over, cancelled chan struct{}
}

func (c cancelAtEnd) HoldEnded(string, time.Duration) {
	close(c.over)
	<-c.cancelled
}

// The caller's library ends the stream at its deadline; the caller may be frozen, and count on what it was told before.
func TestADeadlineIsNotTheCallersOwnHand(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		s.hold(s.callers, &lockv1.AcquireRequest{Name: "others"}) // there is a connection
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		stream, err := s.Acquire(ctx, &lockv1.AcquireRequest{Name: "orders"})
		s.must(err)
		held := &acquiring{t: t, stream: stream, cancel: cancel}
		held.sees("granted")
		counts := s.toldValid(s.callers, held.hold)
		held.ends("DeadlineExceeded")
		s.awaitContenders("orders", 0)
		if left := time.Until(counts); left > 0 {
			t.Errorf("the lock is free while the caller may count on it for %v more", left)
		}
	}, func(o *service.Options) { o.SessionTimeout, o.TickTime = 9*time.Second, 900*time.Millisecond })
}

// What stands on a lease that has ended does not wait for those who count on something else that stands on it.
func TestOneFrozenHolderOfALeaseKeepsNothingOfTheOthers(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		lease := s.open(s.callers, &leasev1.OpenRequest{})
		frozen, freeze := s.dialFrozen()
		stuck := s.hold(frozen, &lockv1.AcquireRequest{Name: "orders", LeaseId: lease.id})
		s.toldValid(frozen, stuck.hold)
		held := s.hold(s.operators, &lockv1.AcquireRequest{Name: "others", LeaseId: lease.id})
		counts := s.toldValid(s.operators, held.hold)
		s.hold(s.others, &lockv1.AcquireRequest{Name: "third"})
		waiter := s.acquire(s.operators, &lockv1.AcquireRequest{Name: "third", LeaseId: lease.id})
		waiter.sees("queued 1")
		freeze()
		lease.cancel()
		waiter.ends("Aborted LEASE_CLOSED")
		s.awaitContenders("third", 1)
		held.ends("Aborted LEASE_CLOSED")
		s.acknowledge(s.operators, held.hold, "LEASE_CLOSED")
		s.awaitContenders("others", 0)
		if left := time.Until(counts); left < 10*time.Second {
			t.Errorf("an acknowledged lock is free only %v before the end of what its holder was told", left)
		}
		same(t, "contenders of the frozen holder's lock", s.contenders("orders"), 1)
		s.ensemble.memory.Close() // nobody waits for the frozen one here
	}, long)
}

func TestAPlaceThatIsGoneIsWaitedForByNobody(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		held := s.hold(s.callers, &lockv1.AcquireRequest{Name: "orders"})
		counts := s.toldValid(s.callers, held.hold)
		s.must(s.ensemble.memory.Delete("/locks/orders/" + s.ensemble.memory.Names("/locks/orders")[0]))
		held.ends("Aborted LOCK_BROKEN")
		s.must(s.stop())
		if left := time.Until(counts); left < 10*time.Second {
			t.Errorf("the sidecar has stopped only %v before the end of what the holder was told", left)
		}
	}, long)
}

func TestWhoClosesItsLeaseDoesNotCountOnItAnyMore(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		lease := s.open(s.callers, &leasev1.OpenRequest{})
		held := s.hold(s.callers, &lockv1.AcquireRequest{Name: "orders", LeaseId: lease.id})
		counts := s.toldValid(s.callers, held.hold)
		_, err := s.leases.Close(s.context(), &leasev1.CloseRequest{LeaseId: lease.id})
		s.must(err)
		same(t, "contenders", s.contenders("orders"), 0)
		if left := time.Until(counts); left < 10*time.Second {
			t.Errorf("the lock is free only %v before the end of what the holder was told", left)
		}
	}, long)
}

// A hold that ends while it is being checked is told to have ended, or what is told is waited for.
func TestCheckDoesNotOvertakeTheEndOfAHold(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		var slow *slowSession
		s.ensemble.wrap = func(session *standin.Session) service.Session {
			slow = &slowSession{Session: session}
			return slow
		}
		held := s.hold(s.callers, &lockv1.AcquireRequest{Name: "orders"})
		asked, answer := slow.holdBack()
		checked := make(chan string, 1)
		go func() { checked <- s.checked(s.callers, held.hold) }()
		<-asked
		_, err := s.operators.Break(s.context(), &lockv1.BreakRequest{Name: "orders", FencingToken: held.token, Reason: "stuck"})
		s.must(err)
		close(answer)
		same(t, "Check", <-checked, "LOCK_BROKEN")
	}, long)
}

// A slowSession tells its validity late once.
type slowSession struct {
	*standin.Session
	mu            sync.Mutex
	asked, answer chan struct{} // nil unless the next answer is held back
}

// holdBack has asked closed by the next question, which is answered when answer is closed.
func (s *slowSession) holdBack() (asked <-chan struct{}, answer chan<- struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked, s.answer = make(chan struct{}), make(chan struct{})
	return s.asked, s.answer
}

func (s *slowSession) ValidFor() time.Duration {
	validFor := s.Session.ValidFor()
	s.mu.Lock()
	asked, answer := s.asked, s.answer
	s.asked = nil
	s.mu.Unlock()
	if asked != nil {
		close(asked)
		<-answer
	}
	return validFor
}
