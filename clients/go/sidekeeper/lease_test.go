package sidekeeper_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/sidekeeper/sidekeeper/clients/go/scripted"
	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
)

const leaseID = "0123456789abcdef0123456789abcdef"

func open(t *testing.T, client *sidekeeper.Client, server *scripted.Server) (*sidekeeper.Lease, *scripted.Open) {
	t.Helper()
	type opened struct {
		lease *sidekeeper.Lease
		err   error
	}
	result := make(chan opened, 1)
	go func() {
		lease, err := client.OpenLease(t.Context(), sidekeeper.LeaseOptions{TTL: time.Minute, Owner: "billing"})
		result <- opened{lease, err}
	}()
	call := server.NextOpen()
	call.Accept(leaseID)
	got := receive(t, result)
	if got.err != nil {
		t.Fatal(got.err)
	}
	return got.lease, call
}

func TestALeaseIsOpenUntilItIsClosed(t *testing.T) {
	server := scripted.Start(t)
	client, _ := dial(t, server)
	lease, call := open(t, client, server)
	if call.Request.GetOwner() != "billing" || call.Request.GetTtl().AsDuration() != time.Minute {
		t.Errorf("%v", call.Request)
	}
	if lease.ID() != leaseID || lease.TTL() != 15*time.Second || !lease.Valid() {
		t.Errorf("%v %v", lease.TTL(), lease.ValidFor())
	}
	for range 2 {
		if err := lease.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if lease.Valid() || lease.Err() != nil || context.Cause(lease.Context()) != sidekeeper.ErrReleased {
		t.Error(lease.Err())
	}
	call.AwaitGone()
}

func TestALeaseIsLostWithItsStream(t *testing.T) {
	server := scripted.Start(t)
	client, _ := dial(t, server)
	lease, call := open(t, client, server)
	call.End(scripted.Status(codes.Aborted, "LEASE_LOST", "expired"))
	receive(t, lease.Done())
	want(t, lease.Err(), "lease lost: Aborted (LEASE_LOST): expired", sidekeeper.ErrLost, sidekeeper.ErrLeaseLost)
	want(t, lease.Close(t.Context()), lease.Err().Error())
}

// answerOnce lets the sidecar answer one Check of a lease and none after it.
func answerOnce(server *scripted.Server, validFor time.Duration) {
	asked := atomic.Int32{}
	server.CheckLease = func(ctx context.Context, request *leasev1.CheckRequest) (*leasev1.CheckResponse, error) {
		if asked.Add(1) > 1 {
			return scripted.Frozen[leasev1.CheckRequest, leasev1.CheckResponse](ctx, request)
		}
		return &leasev1.CheckResponse{ValidFor: durationpb.New(validFor)}, nil
	}
}

func TestAFrozenSidecarLosesTheLease(t *testing.T) {
	server := scripted.Start(t)
	answerOnce(server, 5*time.Second)
	client, clock := dial(t, server)
	lease, call := open(t, client, server)
	holdWith(t, client, server, lease)
	clock.Advance(5 * time.Second)
	receive(t, lease.Done())
	if !errors.Is(lease.Err(), sidekeeper.ErrLeaseLost) {
		t.Error(lease.Err())
	}
	call.AwaitGone()
}

// gated lets the sidecar answer each Check of a lease when the gate is open.
func gated(server *scripted.Server) (shut func() (open func())) {
	var gate atomic.Pointer[chan struct{}]
	shut = func() func() {
		closed := make(chan struct{})
		gate.Store(&closed)
		return func() { close(closed) }
	}
	shut()()
	server.CheckLease = func(ctx context.Context, _ *leasev1.CheckRequest) (*leasev1.CheckResponse, error) {
		select {
		case <-*gate.Load():
			return &leasev1.CheckResponse{ValidFor: durationpb.New(time.Minute)}, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return shut
}

// The ensemble keeps it. What is started on it waits until that is said again.
func TestALeaseOnWhichNothingStandsIsNotLostWhenItsValidityRunsOut(t *testing.T) {
	server := scripted.Start(t)
	shut := gated(server)
	clock := sidekeeper.NewSuspendedClock()
	client := dialWith(t, server, sidekeeper.WithSuspendedClock(clock))
	lease, _ := open(t, client, server)
	for range 2 {
		answer := shut()
		clock.Sleep(time.Hour)
		result := acquiring(t.Context(), client, "orders", sidekeeper.LockOptions{Lease: lease})
		select {
		case <-lease.Done():
			t.Fatal(lease.Err())
		case got := <-result:
			t.Fatalf("an acquire returned %v, %v before the lease was valid", got.lock, got.err)
		case <-time.After(700 * time.Millisecond): // in which the keeper looks and asks again
		}
		if lease.Valid() || lease.ValidFor() != 0 || lease.Err() != nil {
			t.Errorf("valid for %v, %v", lease.ValidFor(), lease.Err())
		}
		answer()
		server.NextAcquire().Grant(7)
		got := receive(t, result)
		if got.err != nil || !got.lock.Valid() || !lease.Valid() {
			t.Fatal(got.err)
		}
		if err := got.lock.Release(t.Context()); err != nil {
			t.Error(err)
		}
	}
	lock := holdWith(t, client, server, lease)
	shut()
	clock.Sleep(time.Hour)
	receive(t, lock.Done())
	if lock.Valid() || !errors.Is(lock.Err(), sidekeeper.ErrLeaseLost) || !errors.Is(lease.Err(), sidekeeper.ErrLeaseLost) {
		t.Error(lock.Err(), lease.Err())
	}
}

func TestWhatIsStartedOnALeaseThatIsNotValidFailsWhenNobodySaysThatItIs(t *testing.T) {
	server := scripted.Start(t)
	shut := gated(server)
	clock := sidekeeper.NewSuspendedClock()
	client := dialWith(t, server, sidekeeper.WithSuspendedClock(clock))
	lease, _ := open(t, client, server)
	shut()
	clock.Sleep(time.Hour)
	result := acquiring(t.Context(), client, "orders", sidekeeper.LockOptions{Lease: lease, Wait: new(time.Duration)})
	want(t, receive(t, result).err, "lock orders: Unavailable: the sidecar does not answer: it may be frozen, or its ensemble away")
	if lease.Err() != nil {
		t.Error(lease.Err())
	}
}

// The place of a lock that is released is not gone yet: a caller that waits for that is told of the end of the lease.
func TestALeaseIsLostOnWhichAReleaseIsUnderWay(t *testing.T) {
	server := scripted.Start(t)
	answerOnce(server, 5*time.Second)
	client, clock := dial(t, server)
	lease, call := open(t, client, server)
	lock := holdWith(t, client, server, lease)
	call.HoldStops()
	released := make(chan error, 1)
	go func() { released <- lock.Release(context.Background()) }()
	receive(t, call.Stops)
	clock.Advance(5 * time.Second)
	receive(t, lease.Done())
	if err := receive(t, released); !errors.Is(err, sidekeeper.ErrLost) || !errors.Is(lease.Err(), sidekeeper.ErrLeaseLost) {
		t.Error(err, lease.Err())
	}
}

// Its validity is that of the lease, and its stream is another one.
func TestAMemberOnALeaseOfAnotherClientIsLostWhenTheValidityOfThatRunsOut(t *testing.T) {
	server := scripted.Start(t)
	answerOnce(server, 5*time.Second)
	client, clock := dial(t, server)
	other, _ := dial(t, server)
	lease, _ := open(t, client, server)
	result := joining(t.Context(), other, sidekeeper.JoinOptions{Lease: lease})
	server.Groups.NextJoin().Admit(1)
	got := receive(t, result)
	if got.err != nil {
		t.Fatal(got.err)
	}
	clock.Advance(5 * time.Second)
	receive(t, got.membership.Done())
	if !errors.Is(got.membership.Err(), sidekeeper.ErrLeaseLost) || !errors.Is(lease.Err(), sidekeeper.ErrLeaseLost) {
		t.Error(got.membership.Err(), lease.Err())
	}
}

func TestALeaseWhoseStreamIsSilentKeepsTheOthersOfItsClientFromNothing(t *testing.T) {
	server := scripted.Start(t)
	var silent atomic.Bool
	server.CheckLease = func(ctx context.Context, request *leasev1.CheckRequest) (*leasev1.CheckResponse, error) {
		if silent.Load() && request.GetLeaseId() == leaseID {
			return scripted.Frozen[leasev1.CheckRequest, leasev1.CheckResponse](ctx, request)
		}
		return &leasev1.CheckResponse{ValidFor: durationpb.New(4 * time.Second)}, nil
	}
	client := dialWith(t, server)
	open(t, client, server)
	opening := make(chan *sidekeeper.Lease, 1)
	go func() {
		lease, err := client.OpenLease(t.Context(), sidekeeper.LeaseOptions{})
		if err != nil {
			t.Error(err)
		}
		opening <- lease
	}()
	server.NextOpen().Accept("other")
	lock := holdWith(t, client, server, receive(t, opening))
	silent.Store(true)
	select {
	case <-lock.Done():
		t.Error(lock.Err())
	case <-time.After(7 * time.Second): // for longer than it was told
	}
}

func TestALeaseThatCheckCallsEndedIsLost(t *testing.T) {
	server := scripted.Start(t)
	asked := atomic.Int32{}
	server.CheckLease = func(context.Context, *leasev1.CheckRequest) (*leasev1.CheckResponse, error) {
		if asked.Add(1) > 1 {
			return nil, scripted.Status(codes.Aborted, "SIDECAR_STOPPING", "the drain time is over")
		}
		return &leasev1.CheckResponse{ValidFor: durationpb.New(8 * time.Second)}, nil
	}
	client, clock := dial(t, server)
	lease, _ := open(t, client, server)
	clock.Advance(3 * time.Second)
	receive(t, lease.Done())
	want(t, lease.Err(), "lease lost: Aborted (SIDECAR_STOPPING): the drain time is over", sidekeeper.ErrSidecarStopping)
}

func TestALeaseThatIsRefusedIsAnError(t *testing.T) {
	server := scripted.Start(t)
	client, _ := dial(t, server)
	result := make(chan error, 1)
	go func() {
		_, err := client.OpenLease(t.Context(), sidekeeper.LeaseOptions{})
		result <- err
	}()
	server.NextOpen().End(scripted.Status(codes.ResourceExhausted, "LEASE_LIMIT", "1000 leases"))
	want(t, receive(t, result), "lease: ResourceExhausted (LEASE_LIMIT): 1000 leases", sidekeeper.ErrLeaseLimit)
}

// holdWith acquires a lock with the lease.
func holdWith(t *testing.T, client *sidekeeper.Client, server *scripted.Server, lease *sidekeeper.Lease) *sidekeeper.Lock {
	t.Helper()
	lock, _ := hold(t, client, server, sidekeeper.LockOptions{Lease: lease})
	return lock
}

func TestALockIsOverBeforeTheSidecarIsAskedToCloseItsLease(t *testing.T) {
	server := scripted.Start(t)
	client, _ := dial(t, server)
	lease, call := open(t, client, server)
	lock := holdWith(t, client, server, lease)
	valid := make(chan bool, 1)
	server.Close = func(context.Context, *leasev1.CloseRequest) (*leasev1.CloseResponse, error) {
		valid <- lock.Valid() || lock.Context().Err() == nil
		call.End(nil)
		return &leasev1.CloseResponse{}, nil
	}
	if err := lease.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if receive(t, valid) {
		t.Error("the lock is still valid when the sidecar gives it to others")
	}
	want(t, lock.Err(), "lock orders lost: Aborted (LEASE_CLOSED): the lease is closed", sidekeeper.ErrLost, sidekeeper.ErrLeaseClosed)
}

// The lease runs out for the caller. That ends its stream, and the sidecar takes the lock for given up.
func TestALockIsOverBeforeTheSidecarSeesItsLeaseEnd(t *testing.T) {
	server := scripted.Start(t)
	answerOnce(server, 5*time.Second)
	client, clock := dial(t, server)
	lease, call := open(t, client, server)
	lock := holdWith(t, client, server, lease)
	clock.Advance(5 * time.Second)
	call.AwaitGone()
	if lock.Valid() || lock.Context().Err() == nil {
		t.Error("the lock is still valid when the sidecar gives it to others")
	}
	want(t, lock.Err(), "lock orders lost: Aborted (LEASE_LOST): the sidecar has not confirmed it in time "+
		"and its validity has run out", sidekeeper.ErrLost, sidekeeper.ErrLeaseLost)
}

// Whoever ends a lease that somebody else is ending tells the sidecar only when all that stands on it has ended.
func TestTheSidecarDoesNotSeeALeaseEndBeforeAllThatStandsOnItHasEnded(t *testing.T) {
	server := scripted.Start(t)
	answerOnce(server, 5*time.Second)
	client, clock := dial(t, server)
	lease, call := open(t, client, server)
	holdWith(t, client, server, lease)
	ending, goOn := make(chan struct{}), make(chan struct{})
	sidekeeper.OnEnd(lease, func() {
		close(ending)
		<-goOn
	})
	clock.Advance(5 * time.Second)
	receive(t, ending)
	closed := make(chan error, 1)
	go func() { closed <- lease.Close(t.Context()) }()
	if call.GoneWithin(100 * time.Millisecond) {
		t.Error("the stream has ended while what stands on the lease has not")
	}
	close(goOn)
	if err := receive(t, closed); !errors.Is(err, sidekeeper.ErrLost) {
		t.Error(err)
	}
	call.AwaitGone()
}

func TestWhoWaitsWithALeaseThatEndsHasLostNothing(t *testing.T) {
	server := scripted.Start(t)
	client, _ := dial(t, server)
	lease, call := open(t, client, server)
	result := acquiring(t.Context(), client, "orders", sidekeeper.LockOptions{Lease: lease})
	server.NextAcquire().Queue(1)
	call.End(scripted.Status(codes.Aborted, "LEASE_LOST", "expired"))
	got := receive(t, result)
	want(t, got.err, "lock orders: Aborted (LEASE_LOST): expired", sidekeeper.ErrLeaseLost)
	if errors.Is(got.err, sidekeeper.ErrLost) {
		t.Errorf("%v is taken for a loss", got.err)
	}
	result = acquiring(t.Context(), client, "orders", sidekeeper.LockOptions{Lease: lease})
	want(t, receive(t, result).err, "lock orders: Aborted (LEASE_LOST): expired")
}

func TestASidecarThatDoesNotAnswerHoldsNobodyUpForLongerThanTheyWaitForALease(t *testing.T) {
	server := scripted.Start(t)
	client, _ := dial(t, server)
	result := make(chan error, 1)
	go func() {
		_, err := client.OpenLease(t.Context(), sidekeeper.LeaseOptions{Wait: new(time.Millisecond)})
		result <- err
	}()
	call := server.NextOpen()
	want(t, receive(t, result), "lease: Unavailable: the sidecar does not answer: it may be frozen, or its ensemble away")
	call.AwaitGone()
}
