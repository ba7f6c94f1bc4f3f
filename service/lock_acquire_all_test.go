package service_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
)

// A gathering is one AcquireAll stream.
type gathering struct {
	t      *testing.T
	stream grpc.ServerStreamingClient[lockv1.AcquireAllResponse]
	cancel context.CancelFunc
	hold   string
	tokens map[string]int64
}

func (s *scene) gather(from callers, request *lockv1.AcquireAllRequest) *gathering {
	s.t.Helper()
	ctx, cancel := context.WithCancel(s.context())
	s.t.Cleanup(cancel)
	stream, err := from.AcquireAll(ctx, request)
	s.must(err)
	return &gathering{t: s.t, stream: stream, cancel: cancel, tokens: map[string]int64{}}
}

// gatherOf asks for several locks exclusively.
func gatherOf(names ...string) *lockv1.AcquireAllRequest {
	request := &lockv1.AcquireAllRequest{}
	for _, name := range names {
		request.Locks = append(request.Locks, &lockv1.WantedLock{Name: name})
	}
	return request
}

func (g *gathering) next() string {
	event, err := g.stream.Recv()
	if err != nil {
		return outcome(err)
	}
	switch event := event.GetEvent().(type) {
	case *lockv1.AcquireAllResponse_Queued:
		text := "queued"
		for _, lock := range event.Queued.GetLocks() {
			text += fmt.Sprintf(" %s %d", lock.GetName(), lock.GetPosition())
		}
		return text
	case *lockv1.AcquireAllResponse_Granted:
		g.hold = event.Granted.GetHoldId()
		text := "granted"
		for _, lock := range event.Granted.GetLocks() {
			g.tokens[lock.GetName()] = lock.GetFencingToken()
			text += " " + lock.GetName()
		}
		return text
	case *lockv1.AcquireAllResponse_Suspended:
		return "suspended"
	case *lockv1.AcquireAllResponse_Resumed:
		return "resumed"
	case *lockv1.AcquireAllResponse_RevocationRequested:
		return "asked: " + event.RevocationRequested.GetReason()
	}
	return "an event without a name"
}

func (g *gathering) sees(events ...string) {
	g.t.Helper()
	for _, event := range events {
		same(g.t, "event", g.next(), event)
	}
}

func TestSeveralLocksAreHeldAsOneHoldAndReleasedTogether(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		before := s.hold(s.callers, &lockv1.AcquireRequest{Name: "stock"})
		all := s.gather(s.callers, gatherOf("orders", "stock", "users/7"))
		all.sees("queued stock 1")
		behind := s.acquire(s.others, &lockv1.AcquireRequest{Name: "orders"})
		behind.sees("queued 1") // though orders is not held yet
		before.cancel()
		all.sees("granted orders stock users/7")
		same(t, "check", s.checked(s.callers, all.hold), "held")
		for name, token := range all.tokens {
			if token == 0 {
				t.Errorf("no token of %s", name)
			}
		}
		_, err := s.callers.Release(s.context(), &lockv1.ReleaseRequest{HoldId: all.hold})
		same(t, "Release", outcome(err), "OK")
		for _, name := range []string{"stock", "users/7"} {
			same(t, "contenders of "+name+" after Release", s.contenders(strings.ReplaceAll(name, "/", "%2F")), 0)
		}
		all.sees("OK")
		behind.sees("granted")
		if behind.token <= all.tokens["orders"] {
			t.Errorf("token %d after %d", behind.token, all.tokens["orders"])
		}
	})
}

func TestSeveralLocksAreTriedOnceWithoutAWait(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		s.hold(s.callers, &lockv1.AcquireRequest{Name: "stock", Owner: "billing"})
		request := gatherOf("orders", "stock")
		request.WaitTimeout = durationpb.New(0)
		s.gather(s.callers, request).sees("FailedPrecondition LOCK_HELD")
		s.awaitContenders("orders", 0)
		s.gather(s.callers, gatherOf("orders")).sees("granted orders")
	})
}

func TestWhateverEndsOneOfSeveralLocksEndsAll(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		all := s.gather(s.callers, gatherOf("orders", "stock"))
		all.sees("granted orders stock")
		_, err := s.callers.Revoke(s.context(), &lockv1.RevokeRequest{Name: "stock", Reason: "please"})
		same(t, "Revoke", outcome(err), "OK")
		all.sees("asked: please")
		_, err = s.operators.Break(s.context(), &lockv1.BreakRequest{Name: "orders", FencingToken: all.tokens["orders"], Reason: "stuck"})
		same(t, "Break", outcome(err), "OK")
		all.sees("Aborted LOCK_BROKEN")
		same(t, "check", s.checked(s.callers, all.hold), "LOCK_BROKEN")
		s.awaitContenders("stock", 0)

		waiter := s.gather(s.callers, gatherOf("orders", "stock"))
		waiter.sees("granted orders stock")
		s.must(s.ensemble.memory.Delete("/locks/stock/" + s.ensemble.memory.Names("/locks/stock")[0]))
		waiter.sees("Aborted LOCK_BROKEN")
		s.awaitContenders("orders", 0)
	})
}

func TestALeaseHasEachOfSeveralLocksOnce(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		lease := s.open(s.callers, &leasev1.OpenRequest{})
		request := gatherOf("orders", "stock")
		request.LeaseId = lease.id
		all := s.gather(s.callers, request)
		all.sees("granted orders stock")
		for _, name := range []string{"orders", "stock"} {
			s.acquire(s.callers, &lockv1.AcquireRequest{Name: name, LeaseId: lease.id}).sees("FailedPrecondition ALREADY_CONTENDING")
		}
		other := gatherOf("users", "stock")
		other.LeaseId = lease.id
		s.gather(s.callers, other).sees("FailedPrecondition ALREADY_CONTENDING")
		s.hold(s.callers, &lockv1.AcquireRequest{Name: "users", LeaseId: lease.id})
		all.cancel()
		s.awaitContenders("orders", 0)
		s.awaitContenders("stock", 0)
		s.hold(s.callers, &lockv1.AcquireRequest{Name: "stock", LeaseId: lease.id})
	})
}

func TestSeveralLocksAreOneToSixteenWithDistinctNames(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		var many []string
		for i := range 17 {
			many = append(many, fmt.Sprint("n", i))
		}
		for _, test := range []struct {
			field string
			names []string
		}{
			{"locks", nil}, {"locks[2].name", []string{"a", "b", "a"}}, {"locks[1].name", []string{"a", ".."}}, {"locks", many},
		} {
			s.gather(s.callers, gatherOf(test.names...)).sees("InvalidArgument INVALID_FIELD " + test.field)
		}
		s.gather(s.callers, gatherOf(many[:16]...)).sees("granted " + strings.Join(many[:16], " "))
	})
}

func TestAGuardByTheHoldOfSeveralLocksChecksAllOfThem(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		r := s.registry()
		all := r.gather(r.callers, gatherOf("orders", "stock"))
		all.sees("granted orders stock")
		same(t, "while held", r.guarded(byHold(all.hold)), "written")
		same(t, "by ticket", r.guarded(byTicket("orders", all.tokens["orders"]), byTicket("stock", all.tokens["stock"])), "written")
		node := "/locks/stock/" + r.ensemble.memory.Names("/locks/stock")[0]
		r.ensemble.beforeCommit(func() { _ = r.ensemble.memory.Delete(node) })
		same(t, "when the second place is gone", r.guarded(byHold(all.hold)), "FailedPrecondition GUARD_LOST")
	})
}
