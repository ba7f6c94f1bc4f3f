package sidekeeper_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/sidekeeper/sidekeeper/clients/go/scripted"
	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	holdv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/hold/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
)

func TestAcquireSendsWhatItWasGivenAndNoDeadline(t *testing.T) {
	server := scripted.Start(t)
	client, _ := dial(t, server)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	result := acquiring(ctx, client, "orders/7", sidekeeper.LockOptions{
		Mode: sidekeeper.Write, Wait: new(3 * time.Second), Owner: "billing", Metadata: map[string]string{"pod": "a"},
	})
	call := server.NextAcquire()
	sent := &lockv1.AcquireRequest{
		Name: "orders/7", Mode: holdv1.Mode_MODE_WRITE, WaitTimeout: durationpb.New(3 * time.Second),
		Owner: "billing", Metadata: map[string]string{"pod": "a"}, Keepalive: durationpb.New(3 * time.Second),
	}
	if diff := cmp.Diff(sent, call.Request, protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
	if call.HasDeadline() {
		t.Error("the stream has a deadline, which would end the hold")
	}
	call.Grant(1)
	if got := receive(t, result); got.err != nil {
		t.Error(got.err)
	}
}

func TestAQueuedCallerIsToldItsPositionAndThenGranted(t *testing.T) {
	server := scripted.Start(t)
	client, _ := dial(t, server)
	positions := make(chan int, 2)
	result := acquiring(t.Context(), client, "orders", sidekeeper.LockOptions{
		OnQueued: func(queued sidekeeper.Queued) { positions <- queued.Position },
	})
	call := server.NextAcquire()
	call.Queue(2)
	call.Queue(1)
	call.Grant(99)
	got := receive(t, result)
	if got.err != nil {
		t.Fatal(got.err)
	}
	state := fmt.Sprint(<-positions, <-positions, got.lock.FencingToken(), got.lock.Valid(), got.lock.ValidFor())
	if state != "2 1 99 true 10s" {
		t.Error(state)
	}
}

func TestAcquireReturnsOnlyWhenTheFirstCheckIsAnswered(t *testing.T) {
	server := scripted.Start(t)
	asked, answer := make(chan struct{}), make(chan struct{})
	server.CheckHolds = func(_ context.Context, request *lockv1.CheckRequest) (*lockv1.CheckResponse, error) {
		close(asked)
		<-answer
		return scripted.HoldsValidFor(request, time.Second), nil
	}
	client, _ := dial(t, server)
	result := acquiring(t.Context(), client, "orders", sidekeeper.LockOptions{})
	server.NextAcquire().Grant(1)
	receive(t, asked)
	select {
	case got := <-result:
		t.Errorf("returned before the answer: %v", got)
	default:
	}
	close(answer)
	if got := receive(t, result); got.err != nil {
		t.Error(got.err)
	}
}

func TestAGrantThatIsOverBeforeTheFirstAnswerIsAnError(t *testing.T) {
	server := scripted.Start(t)
	clock := &sidekeeper.FakeClock{}
	server.CheckHolds = func(_ context.Context, request *lockv1.CheckRequest) (*lockv1.CheckResponse, error) {
		clock.Advance(2 * time.Second)
		return scripted.HoldsValidFor(request, time.Second), nil
	}
	client := dialWith(t, server, sidekeeper.WithClock(clock))
	result := acquiring(t.Context(), client, "orders", sidekeeper.LockOptions{})
	call := server.NextAcquire()
	call.Grant(1)
	err := receive(t, result).err
	want(t, err, "lock orders: Aborted (LEASE_LOST): the sidecar has not confirmed it in time and its validity has run out",
		sidekeeper.ErrLeaseLost)
	if errors.Is(err, sidekeeper.ErrLost) {
		t.Errorf("%v is taken for a loss, and nothing was the caller's", err)
	}
	call.AwaitGone()
}

func TestWhoWaitsUntilALockIsLostIsToldOfThatLoss(t *testing.T) {
	server := scripted.Start(t)
	client, _ := dial(t, server)
	lock, call := hold(t, client, server, sidekeeper.LockOptions{})
	result := acquiring(lock.Context(), client, "stock", sidekeeper.LockOptions{})
	server.NextAcquire().Queue(1)
	call.End(scripted.Status(codes.Aborted, "LOCK_BROKEN", "by an operator"))
	want(t, receive(t, result).err, "lock stock: lock orders lost: Aborted (LOCK_BROKEN): by an operator", sidekeeper.ErrLost)
}

func TestTryLockSaysWhetherSomebodyIsInTheWay(t *testing.T) {
	server := scripted.Start(t)
	client, _ := dial(t, server)
	tries := make(chan string, 1)
	try := func() {
		lock, granted, err := client.TryLock(t.Context(), "orders", sidekeeper.LockOptions{})
		tries <- fmt.Sprint(lock != nil, granted, err)
	}
	for _, c := range []struct {
		end  error
		said string
	}{
		{scripted.Status(codes.FailedPrecondition, "LOCK_HELD", "somebody else holds it"), "false false <nil>"},
		{
			scripted.Status(codes.FailedPrecondition, "LOCK_KIND_MISMATCH", "a counter"),
			"false false lock orders: FailedPrecondition (LOCK_KIND_MISMATCH): a counter",
		},
	} {
		go try()
		call := server.NextAcquire()
		if wait := call.Request.GetWaitTimeout(); wait == nil || wait.AsDuration() != 0 {
			t.Errorf("it waits for %v", wait)
		}
		call.End(c.end)
		if said := receive(t, tries); said != c.said {
			t.Errorf("%s, not %s", said, c.said)
		}
	}
	go try()
	server.NextAcquire().Grant(7)
	if said := receive(t, tries); said != "true true <nil>" {
		t.Error(said)
	}
}

func TestWhatEndsTheStreamBeforeTheGrantIsTheError(t *testing.T) {
	for _, c := range []struct {
		end      error
		text     string
		sentinel error
	}{
		{
			scripted.Status(codes.FailedPrecondition, "LOCK_HELD", "somebody else holds it"),
			"lock orders: FailedPrecondition (LOCK_HELD): somebody else holds it", sidekeeper.ErrLockHeld,
		},
		{
			scripted.Status(codes.DeadlineExceeded, "WAIT_TIMEOUT", "not granted in 1s"),
			"lock orders: DeadlineExceeded (WAIT_TIMEOUT): not granted in 1s", sidekeeper.ErrWaitTimeout,
		},
		{nil, "lock orders: the sidecar ended the stream without a word", nil},
	} {
		t.Run(c.text, func(t *testing.T) {
			server := scripted.Start(t)
			client, _ := dial(t, server)
			result := acquiring(t.Context(), client, "orders", sidekeeper.LockOptions{Wait: new(time.Duration)})
			server.NextAcquire().End(c.end)
			err := receive(t, result).err
			want(t, err, c.text)
			if c.sentinel != nil && !errors.Is(err, c.sentinel) || errors.Is(err, sidekeeper.ErrLost) {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestASidecarThatStopsWhileALockIsWaitedForIsTriedAgain(t *testing.T) {
	server := scripted.Start(t)
	client, _ := dial(t, server)
	wait := time.Minute
	result := acquiring(t.Context(), client, "orders", sidekeeper.LockOptions{Wait: &wait})
	first := server.NextAcquire()
	first.Queue(1)
	first.End(scripted.Status(codes.Unavailable, "SIDECAR_STOPPING", "it stops"))
	second := server.NextAcquire()
	if left := second.Request.GetWaitTimeout().AsDuration(); left <= 0 || left >= wait {
		t.Errorf("the second attempt waits for %v", left)
	}
	second.Grant(8)
	got := receive(t, result)
	if got.err != nil || got.lock.FencingToken() != 8 {
		t.Fatal(got.err)
	}
}

func TestAGrantThatIsNotConfirmedIsGivenUpBeforeTheNextAttempt(t *testing.T) {
	server := scripted.Start(t)
	server.CheckHolds = func(context.Context, *lockv1.CheckRequest) (*lockv1.CheckResponse, error) {
		return nil, status.Error(codes.Unavailable, "connection reset")
	}
	client, _ := dial(t, server)
	ctx, cancel := context.WithCancel(t.Context())
	result := acquiring(ctx, client, "orders", sidekeeper.LockOptions{})
	first := server.NextAcquire()
	first.Grant(7)
	second := server.NextAcquire()
	if !first.GoneWithin(0) && !first.GoneWithin(patience) {
		t.Error("the first hold is there with the second")
	}
	cancel()
	if got := receive(t, result); got.lock != nil || !errors.Is(got.err, context.Canceled) {
		t.Error(got)
	}
	second.AwaitGone()
}

func TestCancellingTheWaitGivesThePlaceUp(t *testing.T) {
	server := scripted.Start(t)
	client, _ := dial(t, server)
	ctx, cancel := context.WithCancelCause(t.Context())
	result := acquiring(ctx, client, "orders", sidekeeper.LockOptions{})
	call := server.NextAcquire()
	call.Queue(1)
	cancel(errors.New("no longer needed"))
	want(t, receive(t, result).err, "lock orders: no longer needed")
	call.AwaitGone()
}

func TestTheDeadlineOfTheWaitGivesThePlaceUp(t *testing.T) {
	server := scripted.Start(t)
	client, _ := dial(t, server)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	result := acquiring(ctx, client, "orders", sidekeeper.LockOptions{})
	call := server.NextAcquire()
	want(t, receive(t, result).err, "lock orders: context deadline exceeded", context.DeadlineExceeded)
	call.AwaitGone()
}

func TestCancellingDuringTheFirstCheckGivesTheGrantUp(t *testing.T) {
	server := scripted.Start(t)
	asked := make(chan struct{})
	server.CheckHolds = func(ctx context.Context, _ *lockv1.CheckRequest) (*lockv1.CheckResponse, error) {
		close(asked)
		<-ctx.Done()
		return nil, ctx.Err()
	}
	client, _ := dial(t, server)
	ctx, cancel := context.WithCancel(t.Context())
	result := acquiring(ctx, client, "orders", sidekeeper.LockOptions{})
	call := server.NextAcquire()
	call.Grant(1)
	receive(t, asked)
	cancel()
	want(t, receive(t, result).err, "lock orders: context canceled", context.Canceled)
	call.AwaitGone()
}

func TestAHoldOutlivesTheContextOfItsAcquire(t *testing.T) {
	server := scripted.Start(t)
	client, _ := dial(t, server)
	ctx, cancel := context.WithCancel(t.Context())
	result := acquiring(ctx, client, "orders", sidekeeper.LockOptions{})
	server.NextAcquire().Grant(1)
	lock := receive(t, result).lock
	cancel()
	if !lock.Valid() || lock.Context().Err() != nil {
		t.Error("the hold ended with the context of its Acquire")
	}
	if err := lock.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestAStreamThatEndsWithAStatusLosesTheLock(t *testing.T) {
	server := scripted.Start(t)
	client, _ := dial(t, server)
	lock, call := hold(t, client, server, sidekeeper.LockOptions{})
	call.End(scripted.Status(codes.Aborted, "LOCK_BROKEN", "by an operator"))
	receive(t, lock.Done())
	want(t, lock.Err(), "lock orders lost: Aborted (LOCK_BROKEN): by an operator", sidekeeper.ErrLost, sidekeeper.ErrLockBroken)
	if cause := context.Cause(lock.Context()); cause != lock.Err() || lock.Valid() {
		t.Errorf("valid %v, cause %v", lock.Valid(), cause)
	}
	want(t, lock.Release(t.Context()), lock.Err().Error(), sidekeeper.ErrLockBroken)
}

func TestTheDeathOfTheSidecarLosesTheLock(t *testing.T) {
	server := scripted.Start(t)
	client, _ := dial(t, server)
	lock, _ := hold(t, client, server, sidekeeper.LockOptions{})
	server.Stop()
	receive(t, lock.Done())
	e := (*sidekeeper.Error)(nil)
	if err := lock.Err(); !errors.Is(err, sidekeeper.ErrLost) || !errors.As(err, &e) || e.Code != codes.Unavailable {
		t.Error(err)
	}
}

func TestClosingTheClientEndsItsLocks(t *testing.T) {
	server := scripted.Start(t)
	client, _ := dial(t, server)
	lock, call := hold(t, client, server, sidekeeper.LockOptions{})
	valid := make(chan bool, 1)
	go func() {
		call.AwaitGone()
		valid <- lock.Valid()
	}()
	if err := client.Close(); err != nil {
		t.Error(err)
	}
	if receive(t, valid) {
		t.Error("the lock is still valid when the sidecar gives it to others")
	}
	if lock.Valid() || !errors.Is(lock.Err(), sidekeeper.ErrLost) {
		t.Error(lock.Err())
	}
}

func TestSuspensionIsToldAndLosesNothing(t *testing.T) {
	server := scripted.Start(t)
	client, _ := dial(t, server)
	told := make(chan string, 2)
	lock, call := hold(t, client, server, sidekeeper.LockOptions{
		OnSuspended: func(remaining time.Duration) { told <- "suspended " + remaining.String() },
		OnResumed:   func() { told <- "resumed" },
	})
	call.Suspend(4 * time.Second)
	first, suspended := receive(t, told), lock.Suspended()
	call.Resume()
	state := fmt.Sprint(first, suspended, receive(t, told), lock.Suspended(), lock.Valid())
	if state != "suspended 4strueresumedfalse true" {
		t.Error(state)
	}
}

func TestTheNewestRevocationIsKeptForTheHolder(t *testing.T) {
	server := scripted.Start(t)
	client, _ := dial(t, server)
	seen := make(chan struct{}, 2)
	lock, call := hold(t, client, server, sidekeeper.LockOptions{
		OnRevocation: func(sidekeeper.Revocation) { seen <- struct{}{} },
	})
	call.AskBack(&holdv1.RevocationRequested{Reason: "first"})
	call.AskBack(&holdv1.RevocationRequested{
		RequestedBy: "uid 7", Reason: "second", Grace: durationpb.New(time.Hour),
	})
	receive(t, seen)
	receive(t, seen)
	got := receive(t, lock.Revocation())
	left := time.Until(got.Deadline)
	if got.RequestedBy != "uid 7" || got.Reason != "second" || left > time.Hour || left < time.Hour-patience {
		t.Errorf("%+v", got)
	}
	if len(lock.Revocation()) != 0 || !lock.Valid() {
		t.Error("an older request is still there, or the lock is not")
	}
}

func TestReleaseEndsTheLockAndIsConfirmed(t *testing.T) {
	server := scripted.Start(t)
	client, _ := dial(t, server)
	lock, call := hold(t, client, server, sidekeeper.LockOptions{})
	for range 2 {
		if err := lock.Release(t.Context()); err != nil {
			t.Error(err)
		}
	}
	call.AwaitGone()
	if cause := context.Cause(lock.Context()); lock.Valid() || lock.Err() != nil || cause != sidekeeper.ErrReleased {
		t.Errorf("valid %v, error %v, cause %v", lock.Valid(), lock.Err(), cause)
	}
}

func TestAReleaseWhoseReplyIsLostIsAskedAgain(t *testing.T) {
	server := scripted.Start(t)
	release, calls := server.Release, atomic.Int32{}
	server.Release = func(ctx context.Context, request *lockv1.ReleaseRequest) (*lockv1.ReleaseResponse, error) {
		reply, err := release(ctx, request)
		if calls.Add(1) == 1 {
			return nil, status.Error(codes.Unavailable, "the reply was lost")
		}
		return reply, err
	}
	client, _ := dial(t, server)
	lock, _ := hold(t, client, server, sidekeeper.LockOptions{})
	if err := lock.Release(t.Context()); err != nil || calls.Load() != 2 {
		t.Errorf("%v after %d calls", err, calls.Load())
	}
}

func TestAReleaseOfALockThatWasLostFirstSaysSo(t *testing.T) {
	server := scripted.Start(t)
	server.Release = func(context.Context, *lockv1.ReleaseRequest) (*lockv1.ReleaseResponse, error) {
		return nil, scripted.Status(codes.Aborted, "LOCK_REVOKED", "the grace is over")
	}
	client, _ := dial(t, server)
	lock, call := hold(t, client, server, sidekeeper.LockOptions{})
	want(t, lock.Release(t.Context()), "lock orders lost: Aborted (LOCK_REVOKED): the grace is over",
		sidekeeper.ErrLost, sidekeeper.ErrLockRevoked)
	call.AwaitGone()
}

func TestAReleaseThatIsNeverAnsweredEndsWithItsContext(t *testing.T) {
	server := scripted.Start(t)
	server.Release = scripted.Frozen
	client, _ := dial(t, server)
	lock, call := hold(t, client, server, sidekeeper.LockOptions{})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := lock.Release(ctx); !errors.Is(err, sidekeeper.ErrReleaseUnconfirmed) || errors.Is(err, sidekeeper.ErrLost) {
		t.Error(err)
	}
	call.AwaitGone()
}

func TestALockOfAnotherClientsLeaseNamesIt(t *testing.T) {
	server := scripted.Start(t)
	client, _ := dial(t, server)
	other, _ := dial(t, server)
	lease, _ := open(t, other, server)
	result := acquiring(t.Context(), client, "orders", sidekeeper.LockOptions{Lease: lease})
	call := server.NextAcquire()
	if call.Request.GetLeaseId() != lease.ID() || call.Open != nil {
		t.Errorf("%q", call.Request.GetLeaseId())
	}
	call.Grant(1)
	receive(t, result)
}

func TestASidecarThatDoesNotAnswerHoldsNobodyUpForLongerThanTheyWait(t *testing.T) {
	for name, answer := range map[string]func(*scripted.Acquire){
		"at all": func(*scripted.Acquire) {}, "when the lock is granted": func(call *scripted.Acquire) { call.Grant(7) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := scripted.Start(t)
			server.CheckHolds = scripted.Frozen[lockv1.CheckRequest, lockv1.CheckResponse]
			result := acquiring(t.Context(), dialWith(t, server), "orders", sidekeeper.LockOptions{Wait: new(time.Millisecond)})
			call := server.NextAcquire()
			answer(call)
			want(t, receive(t, result).err, "lock orders: Unavailable: the sidecar does not answer: it may be frozen, or its ensemble away")
			call.AwaitGone()
		})
	}
}

func TestTheTicketsOfAContextAreThoseOfWhoExcludesOthers(t *testing.T) {
	t.Parallel()
	for mode, want := range map[sidekeeper.Mode]string{
		0: "[{orders 7}]", sidekeeper.Exclusive: "[{orders 7}]", sidekeeper.Write: "[{orders 7}]", sidekeeper.Read: "[]",
	} {
		server := scripted.Start(t)
		client, _ := dial(t, server)
		lock, _ := hold(t, client, server, sidekeeper.LockOptions{Mode: mode})
		guarded := lock.Guard(lock.Guard(t.Context()))
		if got := fmt.Sprint(sidekeeper.Tickets(guarded)); got != want {
			t.Errorf("%v: %s, want %s", mode, got, want)
		}
		if got := sidekeeper.Tickets(sidekeeper.Unguarded(guarded)); len(got) != 0 {
			t.Errorf("%v: %v without guards", mode, got)
		}
	}
}
