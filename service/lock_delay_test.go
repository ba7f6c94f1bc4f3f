package service_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	holdv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/hold/v1"
	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
)

const ordersPath = "/locks/orders"

// delay is a request for `orders` with a delay.
func delay(of time.Duration) *lockv1.AcquireRequest {
	return &lockv1.AcquireRequest{Name: "orders", LockDelay: lasting(of)}
}

func TestADelayFollowsEveryEndButTheHoldersOwn(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		happens func(s *scene, held *acquiring, lease *opening)
		follows bool
	}{
		{"it is released", func(s *scene, held *acquiring, _ *opening) {
			_, err := s.Release(s.context(), &lockv1.ReleaseRequest{HoldId: held.hold})
			s.must(err)
		}, false},
		{"its stream is cancelled", func(_ *scene, held *acquiring, _ *opening) { held.cancel() }, false},
		{"its session expires", func(_ *scene, _ *acquiring, lease *opening) { lease.session.Expire() }, true},
		{"its lease is closed", func(s *scene, _ *acquiring, lease *opening) {
			_, err := s.leases.Close(s.context(), &leasev1.CloseRequest{LeaseId: lease.id})
			s.must(err)
		}, true},
		{"it is broken", func(s *scene, held *acquiring, _ *opening) {
			_, err := s.operators.Break(s.context(), &lockv1.BreakRequest{Name: "orders", FencingToken: held.token, Reason: "stuck"})
			s.must(err)
		}, true},
		{"it is revoked", func(s *scene, _ *acquiring, _ *opening) {
			_, err := s.operators.Revoke(s.context(), &lockv1.RevokeRequest{Name: "orders", Grace: lasting(0)})
			s.must(err)
		}, true},
		{"its node is deleted by hand", func(s *scene, _ *acquiring, _ *opening) {
			s.must(s.ensemble.memory.Delete(ordersPath + "/" + s.ensemble.memory.Names(ordersPath)[0]))
		}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			virtually(t, func(t *testing.T, s *scene) {
				lease := s.open(s.callers, &leasev1.OpenRequest{})
				request := delay(3 * time.Second)
				request.LeaseId = lease.id
				held := s.hold(s.callers, request)
				c.happens(s, held, lease)
				waitUntil(t, func() bool { return s.contenders("orders") == 0 })
				next := &lockv1.AcquireRequest{Name: "orders"}
				if !c.follows {
					s.acquire(s.others, next).sees("granted")
					return
				}
				began := time.Now()
				once := &lockv1.AcquireRequest{Name: "orders", WaitTimeout: lasting(0)}
				s.acquire(s.others, once).sees("FailedPrecondition LOCK_HELD")
				waitUntil(t, func() bool { return s.contenders("orders") == 0 })
				waiter := s.acquire(s.others, next)
				waiter.sees("queued 0")
				if left := waiter.last.GetQueued().GetLockDelay().AsDuration(); left <= 0 || left > 3060*time.Millisecond {
					t.Errorf("%v are left", left)
				}
				waiter.sees("granted")
				if took := time.Since(began); took < 3*time.Second {
					t.Errorf("granted after %v", took)
				}
			})
		})
	}
}

func TestAHoldOfALeaseOfItsOwnLeavesNoDelayWhenItsHolderLetsGo(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		for _, letGo := range []func(held *acquiring){
			func(held *acquiring) { held.cancel() },
			func(held *acquiring) {
				_, err := s.Release(s.context(), &lockv1.ReleaseRequest{HoldId: held.hold})
				s.must(err)
			},
		} {
			letGo(s.hold(s.callers, delay(time.Minute)))
			waitUntil(t, func() bool { return s.contenders("orders") == 0 })
		}
		s.hold(s.callers, delay(time.Minute))
	})
}

func TestACallerThatDiesLeavesADelay(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		from, leave := s.dialLeaving()
		s.hold(from, delay(time.Minute))
		leave()
		waitUntil(t, func() bool { return s.contenders("orders") == 0 })
		ctx, cancel := context.WithCancel(s.context())
		defer cancel()
		stream, err := s.others.Acquire(ctx, &lockv1.AcquireRequest{Name: "orders"})
		s.must(err)
		event, err := stream.Recv()
		s.must(err)
		if event.GetQueued() == nil || event.GetQueued().GetPosition() != 0 {
			t.Error(event)
		}
	})
}

// Each try is a place of its own, and gives up at once.
func TestWhoeverOnlyTriesIsGrantedTheLockOnceTheDelayIsOver(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		lease := s.open(s.callers, &leasev1.OpenRequest{})
		request := delay(time.Second)
		request.LeaseId = lease.id
		s.hold(s.callers, request)
		lease.session.Expire()
		waitUntil(t, func() bool { return s.contenders("orders") == 0 })
		try := func() string {
			return s.acquire(s.others, &lockv1.AcquireRequest{Name: "orders", WaitTimeout: lasting(0)}).next()
		}
		began := time.Now()
		same(t, "the first try", try(), "FailedPrecondition LOCK_HELD")
		for said := ""; said != "granted"; said = try() {
			if time.Since(began) > patient {
				t.Fatal(said)
			}
			same(t, "contenders after a try", s.contenders("orders"), 0)
			<-time.After(20 * time.Millisecond)
		}
		if took := time.Since(began); took < time.Second {
			t.Errorf("granted after %v", took)
		}
	})
}

func TestDelaysHaveRules(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		reading := delay(time.Second)
		reading.Mode = holdv1.Mode_MODE_READ
		for _, c := range []struct {
			request *lockv1.AcquireRequest
			want    string
		}{
			{delay(time.Minute + 1), `field=lock_delay rule=a duration from 0s to 1m0s value="1m0.000000001s"`},
			{delay(-1), `field=lock_delay rule=a duration from 0s to 1m0s value="-1ns"`},
			{delay(time.Microsecond), `field=lock_delay rule=whole milliseconds value="1µs"`},
			{reading, `field=lock_delay rule=omitted with READ: a holder after readers waits for no late write value="1s"`},
		} {
			stream, err := s.Acquire(s.context(), c.request)
			s.must(err)
			_, err = stream.Recv()
			same(t, "refused", facts(err), c.want)
		}
	})
}

func TestAViewTellsOfADelay(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		lease := s.open(s.callers, &leasev1.OpenRequest{})
		request := delay(time.Minute)
		request.LeaseId = lease.id
		held := s.hold(s.callers, request)
		watch, err := s.Watch(s.context(), &lockv1.WatchRequest{Name: "orders"})
		s.must(err)
		views := func(want string) {
			t.Helper()
			for {
				response, err := watch.Recv()
				s.must(err)
				answer, err := s.Get(s.context(), &lockv1.GetRequest{Name: "orders"})
				s.must(err)
				view, words := response.GetView(), ""
				for _, holder := range view.GetHolders() {
					words += fmt.Sprint("held for ", holder.GetLockDelay().AsDuration())
				}
				if lost := view.GetLostHold(); lost != nil {
					words += fmt.Sprint("lost ", lost.GetFencingToken() == held.token, " ", lost.GetLockDelay().AsDuration())
				}
				if words += fmt.Sprint(" ", len(view.GetWaiters())); words == want && proto.Equal(view.GetLostHold(), answer.GetView().GetLostHold()) {
					return
				}
			}
		}
		views("held for 1m0s 0")
		lease.session.Expire()
		views("lost true 1m0s 0")
		s.acquire(s.others, &lockv1.AcquireRequest{Name: "orders"}).sees("queued 0")
		views("lost true 1m0s 1")
	})
}

func TestWhoeverTakesSeveralLocksWaitsForTheDelayOfEach(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		lease := s.open(s.callers, &leasev1.OpenRequest{})
		request := delay(time.Second)
		request.LeaseId = lease.id
		s.hold(s.callers, request)
		lease.session.Expire()
		waitUntil(t, func() bool { return s.contenders("orders") == 0 })
		began := time.Now()
		stream, err := s.others.AcquireAll(s.context(), &lockv1.AcquireAllRequest{Locks: []*lockv1.WantedLock{{Name: "stock"}, {Name: "orders"}}})
		s.must(err)
		for granted := false; !granted; {
			event, err := stream.Recv()
			s.must(err)
			granted = event.GetGranted() != nil
		}
		if took := time.Since(began); took < time.Second {
			t.Errorf("granted after %v", took)
		}
	})
}
