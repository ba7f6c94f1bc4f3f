package service_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	barrierv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/barrier/v1"
	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
)

// An entering is one Enter stream.
type entering struct {
	s      *scene
	stream grpc.ServerStreamingClient[barrierv1.EnterResponse]
	cancel context.CancelFunc
	hold   string
	token  int64
	round  int64
}

func (s *scene) enter(from callers, request *barrierv1.EnterRequest) *entering {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.context())
	s.t.Cleanup(cancel)
	stream, err := from.barriers.Enter(ctx, request)
	s.must(err)
	return &entering{s: s, stream: stream, cancel: cancel}
}

func (e *entering) next() string {
	event, err := e.stream.Recv()
	if err != nil {
		return outcome(err)
	}
	switch event := event.GetEvent().(type) {
	case *barrierv1.EnterResponse_Waiting:
		return fmt.Sprintf("waiting %d", event.Waiting.GetPresent())
	case *barrierv1.EnterResponse_Entered:
		e.hold, e.token, e.round = event.Entered.GetHoldId(), event.Entered.GetToken(), event.Entered.GetRound()
		return "entered"
	case *barrierv1.EnterResponse_Suspended:
		return "suspended"
	case *barrierv1.EnterResponse_Resumed:
		return "resumed"
	}
	return "an event without a name"
}

func (e *entering) sees(events ...string) {
	e.s.t.Helper()
	for _, event := range events {
		same(e.s.t, "event", e.next(), event)
	}
}

// leave is what Leave answers, once it does.
func (e *entering) leave() <-chan string {
	answer := make(chan string, 1)
	go func() {
		_, err := e.s.barriers.Leave(e.s.context(), &barrierv1.LeaveRequest{HoldId: e.hold})
		answer <- outcome(err)
	}()
	return answer
}

// enterBoth is two callers inside; the second has the larger token.
func (s *scene) enterBoth(first, second *barrierv1.EnterRequest) (one, two *entering) {
	s.t.Helper()
	one = s.enter(s.callers, first)
	one.sees("waiting 1")
	two = s.enter(s.callers, second)
	two.sees("entered")
	one.sees("entered")
	return one, two
}

func start() *barrierv1.EnterRequest { return &barrierv1.EnterRequest{Name: "jobs/start", Size: 2} }

func (s *scene) lift(name string) string {
	_, err := s.barriers.Remove(s.context(), &barrierv1.RemoveRequest{Name: name})
	return outcome(err)
}

func (s *scene) setBarrier(name string) string {
	_, err := s.barriers.Set(s.context(), &barrierv1.SetRequest{Name: name})
	return outcome(err)
}

func (s *scene) waitAt(name string) grpc.ServerStreamingClient[barrierv1.WaitResponse] {
	s.t.Helper()
	stream, err := s.barriers.Wait(s.context(), &barrierv1.WaitRequest{Name: name})
	s.must(err)
	return stream
}

func TestAWaitEndsWhenTheBarrierIsRemoved(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		_, err := s.waitAt("gates/1").Recv()
		same(t, "a barrier that is not set", outcome(err), "OK")
		same(t, "Set", s.setBarrier("gates/1"), "OK")
		same(t, "Set again", s.setBarrier("gates/1"), "OK")
		waiting := s.waitAt("gates/1")
		_, err = waiting.Recv()
		same(t, "told that it waits", outcome(err), "OK")
		same(t, "Remove", s.lift("gates/1"), "OK")
		_, err = waiting.Recv()
		same(t, "once it is removed", outcome(err), "OK")
		same(t, "Remove again", s.lift("gates/1"), "OK")
		same(t, "a bad name", s.setBarrier("/"), "InvalidArgument INVALID_FIELD name")
	})
}

func TestCallersEnterAndLeaveADoubleBarrierTogether(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		one, two := s.enterBoth(start(), start())
		if one.round != two.round || one.token >= two.token || one.round <= two.token {
			t.Errorf("tokens %d and %d, rounds %d and %d", one.token, two.token, one.round, two.round)
		}
		first := one.leave()
		second := two.leave()
		same(t, "the first's Leave", <-first, "OK")
		same(t, "the second's Leave", <-second, "OK")
		one.sees("OK")
		two.sees("OK")
		same(t, "Leave again", <-one.leave(), "OK")
		s.enter(s.callers, start()).sees("waiting 1")
	})
}

func TestWhoLeavesWaitsForNobodyWhoseStreamHasEnded(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		lease := s.open(s.callers, &leasev1.OpenRequest{})
		on := start()
		on.LeaseId = lease.id
		one, two := s.enterBoth(start(), on)
		again := start()
		again.LeaseId = lease.id
		s.enter(s.callers, again).sees("FailedPrecondition ALREADY_CONTENDING")
		leaves := one.leave()
		lease.session.Expire()
		same(t, "Leave", <-leaves, "OK")
		same(t, "Leave of one that is lost", <-two.leave(), "Aborted LEASE_LOST")

		one, two = s.enterBoth(start(), start())
		leaves = one.leave()
		two.cancel()
		same(t, "Leave once the other has cancelled", <-leaves, "OK")
		s.enter(s.callers, start()).sees("waiting 1")
	})
}

func TestADoubleBarrierIsNotEnteredInVain(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		for _, c := range []struct {
			request *barrierv1.EnterRequest
			field   string
		}{
			{&barrierv1.EnterRequest{Name: "jobs/start"}, "size"},
			{&barrierv1.EnterRequest{Name: "jobs/start", Size: 1001}, "size"},
			{&barrierv1.EnterRequest{Size: 1}, "name"},
			{&barrierv1.EnterRequest{Name: "jobs/start", Size: 1, WaitTimeout: durationpb.New(0)}, "wait_timeout"},
		} {
			s.enter(s.callers, c.request).sees("InvalidArgument INVALID_FIELD " + c.field)
		}
		short := start()
		short.WaitTimeout = durationpb.New(30 * time.Millisecond)
		e := s.enter(s.callers, short)
		for next := e.next(); next != "DeadlineExceeded WAIT_TIMEOUT"; next = e.next() {
			same(t, "before the end of the wait", next, "waiting 1")
		}
		for len(s.ensemble.memory.Names("/sidekeeper/barriers/jobs%2Fstart")) > 0 { // it is given up after the status
			<-time.After(time.Millisecond)
		}
		one := s.enter(s.callers, start())
		one.sees("waiting 1") // who has given up is not counted
		same(t, "Set", s.setBarrier("jobs/start"), "FailedPrecondition NAME_IS_DIRECTORY")
		same(t, "Remove", s.lift("jobs/start"), "FailedPrecondition NAME_IS_DIRECTORY")
		lock := s.hold(s.callers, &lockv1.AcquireRequest{Name: "jobs/start"})
		_, err := s.barriers.Leave(s.context(), &barrierv1.LeaveRequest{HoldId: lock.hold})
		same(t, "Leave of a lock", outcome(err), "NotFound HOLD_NOT_FOUND")
	})
}

func TestAnEntryEndsWhenItsNodeIsDeleted(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		alone := start()
		alone.Size = 1
		e := s.enter(s.callers, alone)
		e.sees("entered")
		const directory = "/sidekeeper/barriers/jobs%2Fstart"
		names, err := s.ensemble.Children(s.context(), directory)
		s.must(err)
		for _, name := range names {
			s.must(s.ensemble.memory.Delete(directory + "/" + name))
		}
		e.sees("Aborted LOCK_BROKEN")
	})
}

func TestBarriersEndWithTheSidecar(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		same(t, "Set", s.setBarrier("gate"), "OK")
		waiting := s.waitAt("gate")
		_, err := waiting.Recv()
		s.must(err)
		one, two := s.enterBoth(start(), start())
		leaves := two.leave() // it may have left or not
		s.drain(0)
		_, err = waiting.Recv()
		same(t, "Wait", outcome(err), "Unavailable SIDECAR_STOPPING")
		one.sees("Aborted SIDECAR_STOPPING")
		if answer := <-leaves; answer != "Aborted SIDECAR_STOPPING" && answer != "Unavailable SIDECAR_STOPPING" && answer != "OK" {
			t.Errorf("Leave: %s", answer)
		}
	})
}

// standing lists the barriers: whether each is set, how many stand there and are inside.
func (s *scene) standing() (all []string) {
	s.t.Helper()
	list, err := s.barriers.List(s.context(), &barrierv1.ListRequest{})
	s.must(err)
	for _, one := range list.GetBarriers() {
		all = append(all, fmt.Sprintf("%s %t %d %d", one.GetName(), one.GetSet(), one.GetPresent(), one.GetInside()))
	}
	return all
}

func TestAListOfBarriersSaysWhichAreSetAndWhoStandsThere(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		if found := s.standing(); found != nil {
			t.Errorf("%q where nothing is", found)
		}
		same(t, "Set", s.setBarrier("migration"), "OK")
		s.enterBoth(start(), start())
		s.enter(s.callers, start()).sees("waiting 1") // of the next round
		same(t, "barriers", fmt.Sprint(s.standing()), "[jobs/start false 3 2 migration true 0 0]")
		same(t, "Remove", s.lift("migration"), "OK")
		same(t, "barriers", fmt.Sprint(s.standing()), "[jobs/start false 3 2]")
	})
}
