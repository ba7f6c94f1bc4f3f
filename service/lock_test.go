package service_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	holdv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/hold/v1"
	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/service"
	"github.com/sidekeeper/sidekeeper/test/support/expect"
	"github.com/sidekeeper/sidekeeper/test/support/standin"
)

func TestSecondCallerIsQueuedAndGrantedALargerTokenAfterRelease(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		first := s.hold(s.callers, &lockv1.AcquireRequest{Name: "orders", Owner: "one"})
		second := s.acquire(s.callers, &lockv1.AcquireRequest{Name: "orders"})
		second.sees("queued 1")
		same(t, "holder", second.last.GetQueued().GetHolders()[0].GetOwner(), "one")

		_, err := s.Release(s.context(), &lockv1.ReleaseRequest{HoldId: first.hold})
		same(t, "Release", outcome(err), "OK")
		first.sees("OK")
		second.sees("granted")
		if second.token <= first.token {
			t.Errorf("token %d after %d", second.token, first.token)
		}
		same(t, "Check of the first", s.checked(s.callers, first.hold), "RELEASED")
		same(t, "Check of the second", s.checked(s.callers, second.hold), "held")
	})
}

func TestReleaseAnswersWhenThePlaceIsGoneAndCanBeRepeated(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		a := s.hold(s.callers, &lockv1.AcquireRequest{Name: "orders"})
		for range 2 {
			_, err := s.Release(s.context(), &lockv1.ReleaseRequest{HoldId: a.hold})
			same(t, "Release", outcome(err), "OK")
			same(t, "contenders", s.contenders("orders"), 0)
		}
	})
}

func TestReleaseOfALostHoldGivesItsReason(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		a := s.hold(s.callers, &lockv1.AcquireRequest{Name: "orders"})
		(<-s.ensemble.opened).Expire()
		a.sees("Aborted LEASE_LOST")
		_, err := s.Release(s.context(), &lockv1.ReleaseRequest{HoldId: a.hold})
		same(t, "Release", outcome(err), "Aborted LEASE_LOST")
	})
}

func TestCancelFreesThePlaceOfAHolderAndOfAWaiter(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		holder := s.hold(s.callers, &lockv1.AcquireRequest{Name: "orders"})
		waiter := s.acquire(s.callers, &lockv1.AcquireRequest{Name: "orders"})
		waiter.sees("queued 1")
		last := s.acquire(s.callers, &lockv1.AcquireRequest{Name: "orders"})
		last.sees("queued 2")
		waiter.cancel()
		s.awaitContenders("orders", 2)
		holder.cancel()
		last.skips("queued 1", "granted")
	})
}

func TestReadersHoldTogetherAndAWriterAlone(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		one := s.hold(s.callers, &lockv1.AcquireRequest{Name: "map", Mode: holdv1.Mode_MODE_READ})
		two := s.hold(s.callers, &lockv1.AcquireRequest{Name: "map", Mode: holdv1.Mode_MODE_READ})
		writer := s.acquire(s.callers, &lockv1.AcquireRequest{Name: "map", Mode: holdv1.Mode_MODE_WRITE})
		writer.sees("queued 2")
		one.cancel()
		two.cancel()
		writer.skips("queued 1", "granted")
	})
}

func TestWaitingEndsWithItsOwnStatus(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		request *lockv1.AcquireRequest
		want    string
	}{
		"tried once":     {&lockv1.AcquireRequest{Name: "orders", WaitTimeout: durationpb.New(0)}, "FailedPrecondition LOCK_HELD"},
		"timed out":      {&lockv1.AcquireRequest{Name: "orders", WaitTimeout: lasting(50 * time.Millisecond)}, "DeadlineExceeded WAIT_TIMEOUT"},
		"the other kind": {&lockv1.AcquireRequest{Name: "orders", Mode: holdv1.Mode_MODE_READ}, "FailedPrecondition LOCK_KIND_MISMATCH"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			s.hold(s.callers, &lockv1.AcquireRequest{Name: "orders"})
			s.acquire(s.callers, test.request).skips("queued 1", test.want)
			s.awaitContenders("orders", 1)
		})
	}
}

func TestWhoTriesOnceIsToldWhoHolds(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	s.hold(s.callers, &lockv1.AcquireRequest{Name: "orders", Owner: "node-1/4711"})
	stream, err := s.callers.Acquire(s.context(), &lockv1.AcquireRequest{Name: "orders", WaitTimeout: durationpb.New(0)})
	if err == nil {
		_, err = stream.Recv()
	}
	seen := status.Convert(err)
	info, _ := expect.Detail[*errdetails.ErrorInfo](seen)
	who := fmt.Sprintf("uid:%d", os.Getuid())
	same(t, "status", fmt.Sprint(seen.Message(), " ", info.GetMetadata()),
		`LOCK_HELD: the lock is held by another caller: "node-1/4711", identity "`+who+`" map[holder:node-1/4711 identity:`+who+`]`)
}

func TestALeaseContendsForANameOnce(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		lease := s.open(s.callers, &leasev1.OpenRequest{})
		first := s.hold(s.callers, &lockv1.AcquireRequest{Name: "orders", LeaseId: lease.id})
		again := &lockv1.AcquireRequest{Name: "orders", LeaseId: lease.id}
		s.acquire(s.callers, again).sees("FailedPrecondition ALREADY_CONTENDING")
		s.hold(s.callers, &lockv1.AcquireRequest{Name: "others", LeaseId: lease.id})
		_, err := s.Release(s.context(), &lockv1.ReleaseRequest{HoldId: first.hold})
		s.must(err)
		s.hold(s.callers, again)
	})
}

func TestEnsembleThatCannotBeReachedIsUnavailableBeforeTheGrant(t *testing.T) {
	t.Parallel()
	for refusal, want := range map[error]string{
		recipes.ErrUnreachable:     "Unavailable ENSEMBLE_UNREACHABLE",
		recipes.ErrDenied:          "PermissionDenied ENSEMBLE_DENIED",
		recipes.ErrConnectionLimit: "ResourceExhausted CONNECTION_LIMIT",
	} {
		s := newScene(t)
		s.ensemble.answer(refusal, false)
		s.acquire(s.callers, &lockv1.AcquireRequest{Name: "orders"}).sees(want)
	}
}

func TestWaitTimeoutBoundsTheOpeningOfTheLeaseToo(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		s.ensemble.answer(nil, true)
		s.acquire(s.callers, &lockv1.AcquireRequest{Name: "orders", WaitTimeout: lasting(20 * time.Millisecond)}).
			sees("DeadlineExceeded WAIT_TIMEOUT")
	})
}

func TestASessionThatEndsWhileWaitingTakesNothingAlong(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		s.hold(s.callers, &lockv1.AcquireRequest{Name: "orders"})
		<-s.ensemble.opened
		lease := s.open(s.callers, &leasev1.OpenRequest{})
		named := s.acquire(s.callers, &lockv1.AcquireRequest{Name: "orders", LeaseId: lease.id})
		named.sees("queued 1")
		alone := s.acquire(s.callers, &lockv1.AcquireRequest{Name: "orders"})
		alone.sees("queued 2")
		(<-s.ensemble.opened).Expire()
		alone.sees("Unavailable ENSEMBLE_UNREACHABLE")
		lease.session.Expire()
		named.sees("Aborted LEASE_LOST")
		lease.sees("Aborted LEASE_LOST")
	})
}

func TestLimitsSayWhichTheyAre(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		s.hold(s.callers, &lockv1.AcquireRequest{Name: "orders"})
		s.acquire(s.callers, &lockv1.AcquireRequest{Name: "orders"}).sees("queued 1")
		s.acquire(s.callers, &lockv1.AcquireRequest{Name: "orders"}).sees("ResourceExhausted WAITER_LIMIT")
		same(t, "sessions opened", len(s.ensemble.opened), 2)
		s.hold(s.callers, &lockv1.AcquireRequest{Name: "other"})
		s.acquire(s.callers, &lockv1.AcquireRequest{Name: "more"}).sees("ResourceExhausted LEASE_LIMIT")
	}, func(o *service.Options) { o.MostLeases, o.MostWaiters = 3, 1 })
}

func TestBadFieldsAreRefusedBeforeAnyWork(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		long := strings.Repeat("x", 129)
		for field, request := range map[string]*lockv1.AcquireRequest{
			"name":         {Name: "a/../b"},
			"mode":         {Name: "a", Mode: 9},
			"lease_id":     {Name: "a", LeaseId: "abc"},
			"wait_timeout": {Name: "a", WaitTimeout: &durationpb.Duration{Seconds: 1, Nanos: -1}},
			"owner":        {Name: "a", Owner: long},
			"metadata":     {Name: "a", Metadata: map[string]string{"k": strings.Repeat("x", 1024)}},
		} {
			s.acquire(s.callers, request).sees("InvalidArgument INVALID_FIELD " + field)
		}
		for _, request := range []*lockv1.AcquireRequest{
			{Name: "a", WaitTimeout: lasting(-1)},
			{Name: "a", WaitTimeout: &durationpb.Duration{Seconds: 1 << 60}},
		} {
			s.acquire(s.callers, request).sees("InvalidArgument INVALID_FIELD wait_timeout")
		}
		s.acquire(s.callers, &lockv1.AcquireRequest{Name: "a", Owner: "a\nb"}).sees("InvalidArgument INVALID_FIELD owner")
		same(t, "sessions opened", len(s.ensemble.opened), 0)
	})
}

func TestIDsOfNobodyAreNotFoundAndMalformedOnesSaySo(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		nobody := strings.Repeat("0", 32)
		s.acquire(s.callers, &lockv1.AcquireRequest{Name: "a", LeaseId: nobody}).sees("NotFound LEASE_NOT_FOUND")
		same(t, "Check", s.checked(s.callers, nobody), "NotFound HOLD_NOT_FOUND")
		same(t, "Check", s.checked(s.callers, "x"), "InvalidArgument INVALID_FIELD hold_ids")
		_, err := s.Check(s.context(), &lockv1.CheckRequest{})
		same(t, "Check of nothing", outcome(err), "InvalidArgument INVALID_FIELD hold_ids")
		_, err = s.Check(s.context(), &lockv1.CheckRequest{HoldIds: make([]string, 1001)})
		same(t, "Check of too many", outcome(err), "InvalidArgument INVALID_FIELD hold_ids")
		_, err = s.Release(s.context(), &lockv1.ReleaseRequest{HoldId: nobody})
		same(t, "Release", outcome(err), "NotFound HOLD_NOT_FOUND")
		_, err = s.Release(s.context(), &lockv1.ReleaseRequest{})
		same(t, "Release", outcome(err), "InvalidArgument INVALID_FIELD hold_id")
	})
}

func TestHeadersComeAtOnce(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		s.ensemble.answer(nil, true)
		a := s.acquire(s.callers, &lockv1.AcquireRequest{Name: "orders"})
		if _, err := a.stream.Header(); err != nil {
			t.Error(err)
		}
	})
}

func TestIDsAreOfNoUseToAnotherCaller(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	lease := s.open(s.callers, &leasev1.OpenRequest{})
	a := s.hold(s.callers, &lockv1.AcquireRequest{Name: "orders", LeaseId: lease.id})
	same(t, "Check", s.checked(s.others, a.hold), "NotFound HOLD_NOT_FOUND")
	_, err := s.others.Release(s.context(), &lockv1.ReleaseRequest{HoldId: a.hold})
	same(t, "Release", outcome(err), "NotFound HOLD_NOT_FOUND")
	_, err = s.others.leases.Close(s.context(), &leasev1.CloseRequest{LeaseId: lease.id})
	same(t, "Close", outcome(err), "NotFound LEASE_NOT_FOUND")
	s.acquire(s.others, &lockv1.AcquireRequest{Name: "b", LeaseId: lease.id}).sees("NotFound LEASE_NOT_FOUND")
	same(t, "Check by its caller", s.checked(s.callers, a.hold), "held")
}

func TestALeaseThatOwnsTooMuchIsLimited(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		lease := s.open(s.callers, &leasev1.OpenRequest{})
		lease.session.Before(func(operation standin.Operation) error {
			if operation.Name == "Enqueue" {
				return recipes.ErrTooManyBytes
			}
			return nil
		})
		s.acquire(s.callers, &lockv1.AcquireRequest{Name: "orders", LeaseId: lease.id}).
			sees("ResourceExhausted EPHEMERAL_BYTES_LIMIT")
	})
}

func TestADeadlineEndsTheHold(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		s.hold(s.callers, &lockv1.AcquireRequest{Name: "others"}) // there is a connection
		ctx, cancel := context.WithTimeout(s.context(), 5*time.Second)
		defer cancel()
		stream, err := s.Acquire(ctx, &lockv1.AcquireRequest{Name: "orders"})
		s.must(err)
		a := &acquiring{t: t, stream: stream}
		a.sees("granted", "DeadlineExceeded")
		s.awaitContenders("orders", 0)
	})
}

func TestWaitTimeoutEndsAWaitAtAnEnsembleThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		lease := s.open(s.callers, &leasev1.OpenRequest{})
		lease.session.Suspend()
		lease.sees("suspended")
		s.acquire(s.callers, &lockv1.AcquireRequest{
			Name: "orders", LeaseId: lease.id, WaitTimeout: lasting(50 * time.Millisecond),
		}).sees("DeadlineExceeded WAIT_TIMEOUT")
		joined := make(chan struct{})
		lease.session.After(func(operation standin.Operation) error {
			if operation.Name == "Enqueue" {
				close(joined)
			}
			return nil
		})
		lease.session.Resume()
		receive(t, joined)
		s.awaitContenders("orders", 0)
		same(t, "the lease, which would have taken its places along", s.checkedLease(lease.id), "OK")
	})
}

func TestALeaseIsTheOwnerOfWhatNamesNoOther(t *testing.T) {
	t.Parallel()
	virtually(t, func(t *testing.T, s *scene) {
		lease := s.open(s.callers, &leasev1.OpenRequest{Owner: "lease", Metadata: map[string]string{"k": "v"}})
		s.hold(s.callers, &lockv1.AcquireRequest{Name: "a", LeaseId: lease.id})
		s.hold(s.callers, &lockv1.AcquireRequest{Name: "b", LeaseId: lease.id, Owner: "call"})
		for name, owner := range map[string]string{"a": "lease", "b": "call"} {
			view, err := s.Get(s.context(), &lockv1.GetRequest{Name: name})
			s.must(err)
			holder := view.GetView().GetHolders()[0]
			same(t, "owner of "+name, holder.GetOwner()+" "+holder.GetMetadata()["k"], owner+" v")
		}
	})
}
