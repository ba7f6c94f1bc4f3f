package service_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	semaphorev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/semaphore/v1"
	"github.com/sidekeeper/sidekeeper/test/support/standin"
)

// A permitting is one Acquire stream of a semaphore.
type permitting struct {
	t      *testing.T
	stream grpc.ServerStreamingClient[semaphorev1.AcquireResponse]
	cancel context.CancelFunc
	hold   string
	token  int64
}

func (s *scene) permits(from callers, request *semaphorev1.AcquireRequest) *permitting {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.context())
	s.t.Cleanup(cancel)
	stream, err := from.semaphores.Acquire(ctx, request)
	s.must(err)
	return &permitting{t: s.t, stream: stream, cancel: cancel}
}

func (p *permitting) next() string {
	event, err := p.stream.Recv()
	if err != nil {
		return outcome(err)
	}
	switch event := event.GetEvent().(type) {
	case *semaphorev1.AcquireResponse_Queued:
		return fmt.Sprintf("queued %d", event.Queued.GetPosition())
	case *semaphorev1.AcquireResponse_Granted:
		p.hold, p.token = event.Granted.GetHoldId(), event.Granted.GetToken()
		return "granted"
	case *semaphorev1.AcquireResponse_Suspended:
		return "suspended"
	case *semaphorev1.AcquireResponse_Resumed:
		return "resumed"
	case *semaphorev1.AcquireResponse_RevocationRequested:
		return "asked: " + event.RevocationRequested.GetReason()
	}
	return "an event without a name"
}

func (p *permitting) sees(events ...string) {
	p.t.Helper()
	for _, event := range events {
		same(p.t, "event", p.next(), event)
	}
}

// skips reads over events of one kind and fails unless the next is another one.
func (p *permitting) skips(kind, then string) {
	p.t.Helper()
	for next := p.next(); ; next = p.next() {
		if next != kind {
			same(p.t, "event after "+kind, next, then)
			return
		}
	}
}

func (s *scene) semaphore(name string, limit int32) {
	s.t.Helper()
	_, err := s.semaphores.Create(s.context(), &semaphorev1.CreateRequest{Name: name, Limit: limit})
	s.must(err)
}

// shown is a semaphore in words.
func (s *scene) shown(name string) string {
	s.t.Helper()
	got, err := s.semaphores.Get(s.context(), &semaphorev1.GetRequest{Name: name})
	if err != nil {
		return outcome(err)
	}
	text := fmt.Sprintf("%d of %d:", got.GetView().GetHeld(), got.GetView().GetLimit())
	for _, holder := range got.GetView().GetHolders() {
		text += fmt.Sprintf(" %s %d", holder.GetOwner(), holder.GetPermits())
	}
	for _, waiter := range got.GetView().GetWaiters() {
		text += fmt.Sprintf(" (%s)", waiter.GetOwner())
	}
	return text
}

// awaitShown returns when a semaphore is shown so: who has been granted permits leaves the queue a moment later.
func (s *scene) awaitShown(name, want string) {
	s.t.Helper()
	ctx := s.context()
	for s.shown(name) != want {
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
			same(s.t, "semaphore "+name, s.shown(name), want)
			return
		}
	}
}

func TestPermitsAreGrantedUpToTheLimitAndInOrder(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		s.semaphore("api/calls", 3)
		first := s.permits(s.callers, &semaphorev1.AcquireRequest{Name: "api/calls", Owner: "first"})
		first.sees("granted")
		second := s.permits(s.callers, &semaphorev1.AcquireRequest{Name: "api/calls", Owner: "second"})
		second.sees("granted")
		if second.token <= first.token {
			t.Errorf("token %d after %d", second.token, first.token)
		}
		wide := s.permits(s.callers, &semaphorev1.AcquireRequest{Name: "api/calls", Owner: "wide", Permits: 2})
		wide.skips("queued 1", "queued 0") // the one before may be about to leave the queue
		small := s.permits(s.callers, &semaphorev1.AcquireRequest{Name: "api/calls", Owner: "small"})
		small.sees("queued 1") // though there is a permit for it
		s.awaitShown("api/calls", "2 of 3: first 1 second 1 (wide) (small)")

		_, err := s.semaphores.Release(s.context(), &semaphorev1.ReleaseRequest{HoldId: first.hold})
		same(t, "Release", outcome(err), "OK")
		first.sees("OK")
		wide.sees("granted")
		small.skips("queued 1", "queued 0")
		s.awaitShown("api/calls", "3 of 3: second 1 wide 2 (small)")
		wide.cancel()
		small.skips("queued 0", "granted")
		s.awaitShown("api/calls", "2 of 3: second 1 small 1")
		second.cancel()
		small.cancel()
		s.awaitShown("api/calls", "0 of 3:")
	})
}

func TestPermitsAreCheckedAndReleasedByTheirOwnServiceAlone(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		s.semaphore("calls", 1)
		held := s.permits(s.callers, &semaphorev1.AcquireRequest{Name: "calls"})
		held.sees("granted")
		lock := s.hold(s.callers, &lockv1.AcquireRequest{Name: "calls"})
		checked, err := s.semaphores.Check(s.context(), &semaphorev1.CheckRequest{HoldIds: []string{held.hold}})
		s.must(err)
		if of := checked.GetHolds()[0]; of.GetValidFor().AsDuration() <= 0 || of.GetToken() != held.token || of.GetReason() != "" {
			t.Errorf("checked: %v", of)
		}
		_, err = s.semaphores.Check(s.context(), &semaphorev1.CheckRequest{HoldIds: []string{lock.hold}})
		same(t, "Check of a lock", outcome(err), "NotFound HOLD_NOT_FOUND")
		_, err = s.semaphores.Release(s.context(), &semaphorev1.ReleaseRequest{HoldId: lock.hold})
		same(t, "Release of a lock", outcome(err), "NotFound HOLD_NOT_FOUND")
		_, err = s.Release(s.context(), &lockv1.ReleaseRequest{HoldId: held.hold})
		same(t, "Release as of a lock", outcome(err), "NotFound HOLD_NOT_FOUND")
		same(t, "Check as of a lock", s.checked(s.callers, held.hold), "NotFound HOLD_NOT_FOUND")
	})
}

func TestPermitsOfALeaseEndWithIt(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		s.semaphore("calls", 2)
		lease := s.open(s.callers, &leasev1.OpenRequest{})
		held := s.permits(s.callers, &semaphorev1.AcquireRequest{Name: "calls", Permits: 2, LeaseId: lease.id})
		held.sees("granted")
		again := s.permits(s.callers, &semaphorev1.AcquireRequest{Name: "calls", LeaseId: lease.id})
		again.sees("FailedPrecondition ALREADY_CONTENDING")
		waiting := s.permits(s.callers, &semaphorev1.AcquireRequest{Name: "calls", Permits: 2})
		waiting.skips("queued 1", "queued 0") // as above
		lease.session.Expire()
		held.skips("suspended", "Aborted LEASE_LOST")
		waiting.skips("queued 0", "granted")
	})
}

func TestSomebodyWhoDoesNotWaitIsToldThatThereAreTooFew(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		s.semaphore("calls", 2)
		held := s.permits(s.callers, &semaphorev1.AcquireRequest{Name: "calls", WaitTimeout: durationpb.New(0)})
		held.sees("granted")
		s.permits(s.callers, &semaphorev1.AcquireRequest{Name: "calls", Permits: 2, WaitTimeout: durationpb.New(0)}).
			sees("FailedPrecondition SEMAPHORE_FULL")
		s.permits(s.callers, &semaphorev1.AcquireRequest{Name: "calls", Permits: 2, WaitTimeout: durationpb.New(30 * time.Millisecond)}).
			skips("queued 0", "DeadlineExceeded WAIT_TIMEOUT")
		s.permits(s.callers, &semaphorev1.AcquireRequest{Name: "calls", Permits: 3}).sees("FailedPrecondition TOO_MANY_PERMITS")
		s.permits(s.callers, &semaphorev1.AcquireRequest{Name: "other"}).sees("NotFound SEMAPHORE_NOT_FOUND")
		for range 20 { // who comes at once is not refused because others are being granted theirs
			done := make(chan string, 2)
			for range 2 {
				go func() {
					asked := s.permits(s.callers, &semaphorev1.AcquireRequest{Name: "calls", WaitTimeout: durationpb.New(0)})
					done <- asked.next()
					asked.cancel()
				}()
			}
			if one, other := <-done, <-done; one != "granted" && other != "granted" {
				t.Fatalf("%s and %s", one, other)
			}
			s.awaitShown("calls", "1 of 2:  1")
		}
	})
}

// The one before it in the queue is about to leave it, and the permit is free when the sidecar looks.
func TestNobodyIsRefusedForPermitsThatOnlyALateReaderShowsAsHeld(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		s.semaphore("calls", 1)
		directory := "/sidekeeper/semaphores/calls/"
		foreign := s.ensemble.memory.OpenSession(time.Minute)
		defer foreign.Close(t.Context())
		place, err := foreign.Enqueue(t.Context(), directory+"locks", "-lock-", nil)
		s.must(err)
		permit, err := foreign.Enqueue(t.Context(), directory+"leases", "-lease-", nil)
		s.must(err)
		s.ensemble.Lag()
		s.ensemble.Before(func(o standin.Operation) error {
			if o.Name == "Children" && o.Path == directory+"leases" {
				s.ensemble.memory.Delete(o.Path + "/" + permit.Name)
			}
			return nil
		})
		tries := s.permits(s.callers, &semaphorev1.AcquireRequest{Name: "calls", WaitTimeout: durationpb.New(0)})
		tries.sees("queued 1")
		s.ensemble.KeepUp()
		s.ensemble.memory.Delete(directory + "locks/" + place.Name)
		tries.skips("queued 1", "granted")
	})
}

func TestAShrunkenSemaphoreAsksForThePermitsThatWereGrantedLast(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.semaphore("calls", 4)
	first := s.permits(s.callers, &semaphorev1.AcquireRequest{Name: "calls", Permits: 2, Owner: "first"})
	first.sees("granted")
	second := s.permits(s.callers, &semaphorev1.AcquireRequest{Name: "calls", Permits: 2, Owner: "second"})
	second.sees("granted")
	waiting := s.permits(s.callers, &semaphorev1.AcquireRequest{Name: "calls", Owner: "waiting"})
	waiting.skips("queued 1", "queued 0") // the one before may be about to leave the queue
	wide := s.permits(s.callers, &semaphorev1.AcquireRequest{Name: "calls", Permits: 4})
	wide.sees("queued 1")

	_, err := s.semaphores.Resize(s.context(), &semaphorev1.ResizeRequest{Name: "calls", Limit: 3, Grace: durationpb.New(time.Second)})
	same(t, "Resize with a grace by anybody", outcome(err), "PermissionDenied OPERATOR_ONLY")
	same(t, "limit", s.shown("calls")[:6], "4 of 4")
	_, err = s.semaphores.Resize(s.context(), &semaphorev1.ResizeRequest{Name: "calls", Limit: 3, Reason: "less"})
	same(t, "Resize", outcome(err), "OK")
	second.sees("asked: less")
	wide.skips("queued 1", "FailedPrecondition TOO_MANY_PERMITS")
	second.cancel()
	waiting.skips("queued 0", "granted")
	s.awaitShown("calls", "3 of 3: first 2 waiting 1")

	now := &semaphorev1.ResizeRequest{Name: "calls", Limit: 1, Reason: "now", Grace: durationpb.New(0)}
	_, err = s.operators.semaphores.Resize(s.context(), now)
	same(t, "Resize with a grace", outcome(err), "OK")
	waiting.skips("asked: now", "Aborted LOCK_REVOKED")
	first.skips("asked: now", "Aborted LOCK_REVOKED") // one of its two is too many
	s.awaitShown("calls", "0 of 1:")
	_, err = s.semaphores.Resize(s.context(), &semaphorev1.ResizeRequest{Name: "none", Limit: 1})
	same(t, "Resize of none", outcome(err), "NotFound SEMAPHORE_NOT_FOUND")
}

func TestPermitsEndWhenOneOfTheirNodesIsRemoved(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		s.semaphore("calls", 3)
		directory := "/sidekeeper/semaphores/calls/leases"
		resize := func(limit int32) {
			_, err := s.semaphores.Resize(s.context(), &semaphorev1.ResizeRequest{Name: "calls", Limit: limit, Reason: "less"})
			s.must(err)
		}
		for removed := range 3 { // whichever it is, in the order in which they were made
			resize(3)
			held := s.permits(s.callers, &semaphorev1.AcquireRequest{Name: "calls", Permits: 3})
			held.sees("granted")
			names := slices.SortedFunc(slices.Values(s.ensemble.memory.Names(directory)), func(a, b string) int {
				return cmp.Compare(a[len(a)-10:], b[len(b)-10:])
			})
			same(t, "nodes", len(names), 3)
			resize(2)
			held.sees("asked: less") // so that it has looked at all of them
			s.ensemble.memory.Delete(directory + "/" + names[removed])
			held.sees("Aborted LOCK_BROKEN")
			s.awaitShown("calls", "0 of 2:")
		}
	})
}

func TestSemaphoresAreCreatedOnceAndListed(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		for _, name := range []string{"b", "a/x", "a/y"} {
			s.semaphore(name, 2)
			s.semaphore(name, 2)
		}
		_, err := s.semaphores.Create(s.context(), &semaphorev1.CreateRequest{Name: "b", Limit: 3})
		same(t, "Create with another limit", outcome(err), "AlreadyExists SEMAPHORE_EXISTS")
		s.permits(s.callers, &semaphorev1.AcquireRequest{Name: "a/x"}).sees("granted")
		list, err := s.semaphores.List(s.context(), &semaphorev1.ListRequest{Prefix: "a"})
		s.must(err)
		listed := list.GetSemaphores()
		same(t, "semaphores", fmt.Sprint(len(listed), " ", listed[0].GetName(), " ", listed[1].GetLimit()), "2 a/x 2")
		for name, field := range map[string]string{"b.limit": "name", "": "name", "c": "limit"} {
			_, err := s.semaphores.Create(s.context(), &semaphorev1.CreateRequest{Name: name})
			same(t, "Create of "+name, outcome(err), "InvalidArgument INVALID_FIELD "+field)
		}
		for _, permits := range []int32{-1, 65} {
			s.permits(s.callers, &semaphorev1.AcquireRequest{Name: "b", Permits: permits}).sees("InvalidArgument INVALID_FIELD permits")
		}
	})
}

func TestAWatchOfASemaphoreShowsEachChange(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		s.semaphore("calls", 2)
		watch, err := s.semaphores.Watch(s.context(), &semaphorev1.WatchRequest{Name: "calls"})
		s.must(err)
		until := func(held, limit int32) {
			t.Helper()
			for {
				got, err := watch.Recv()
				s.must(err)
				if got.GetView().GetHeld() == held && got.GetView().GetLimit() == limit {
					return
				}
			}
		}
		until(0, 2)
		held := s.permits(s.callers, &semaphorev1.AcquireRequest{Name: "calls"})
		held.sees("granted")
		until(1, 2)
		_, err = s.semaphores.Resize(s.context(), &semaphorev1.ResizeRequest{Name: "calls", Limit: 5})
		s.must(err)
		until(1, 5)
		held.cancel()
		until(0, 5)
	})
}
