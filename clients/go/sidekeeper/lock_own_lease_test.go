package sidekeeper_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/sidekeeper/sidekeeper/clients/go/scripted"
	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	holdv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/hold/v1"
	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
)

// holdAlone acquires a lock without a lease over a Unix socket, and returns the lease that it got, too.
func holdAlone(
	t *testing.T, client *sidekeeper.Client, server *scripted.Server, options sidekeeper.LockOptions,
) (*sidekeeper.Lock, *scripted.Open, *scripted.Acquire) {
	t.Helper()
	result := acquiring(t.Context(), client, "orders", options)
	opened := server.NextOpen()
	opened.AcceptResumable(leaseID)
	call := server.NextAcquire()
	call.Grant(7)
	got := receive(t, result)
	if got.err != nil {
		t.Fatal(got.err)
	}
	return got.lock, opened, call
}

func TestALockWithoutALeaseOutlivesItsStreamOverASocket(t *testing.T) {
	server := scripted.StartOnSocket(t)
	client, _ := dial(t, server)
	suspended, resumed := make(chan time.Duration, 10), make(chan struct{}, 10)
	lock, opened, call := holdAlone(t, client, server, sidekeeper.LockOptions{
		Owner: "billing", OnSuspended: func(left time.Duration) { suspended <- left }, OnResumed: func() { resumed <- struct{}{} },
	})
	if opened.Request.GetOwner() != "billing" || call.Open != opened {
		t.Errorf("%v", opened.Request)
	}
	opened.End(errBroken)
	again := server.NextOpen()
	if receive(t, suspended); !lock.Valid() || again.Claims.GetClaims()[0].GetToken() != 7 {
		t.Errorf("%v %v", lock.Err(), again.Claims)
	}
	again.Accept(leaseID)
	server.NextAcquire()
	receive(t, resumed)
	if err := lock.Release(t.Context()); err != nil || lock.Valid() {
		t.Error(err)
	}
	again.AwaitGone()
}

func TestTheWaitOfALockWithoutALeaseIsForBothTheLeaseAndTheLock(t *testing.T) {
	server := scripted.StartOnSocket(t)
	client, _ := dial(t, server)
	result := acquiring(t.Context(), client, "orders", sidekeeper.LockOptions{Wait: new(time.Minute)})
	opened := server.NextOpen()
	<-time.After(20 * time.Millisecond)
	opened.Accept(leaseID)
	call := server.NextAcquire()
	if left := call.Request.GetWaitTimeout().AsDuration(); left <= 0 || left > time.Minute-20*time.Millisecond {
		t.Errorf("it waits for %v", left)
	}
	call.End(scripted.Status(codes.DeadlineExceeded, "WAIT_TIMEOUT", "not granted"))
	want(t, receive(t, result).err, "lock orders: DeadlineExceeded (WAIT_TIMEOUT): not granted", sidekeeper.ErrWaitTimeout)
	opened.AwaitGone()
}

func TestALeaseThatIsLostBeforeItsOnlyLockIsGrantedCostsAnAttempt(t *testing.T) {
	server := scripted.StartOnSocket(t)
	client, _ := dial(t, server)
	result := acquiring(t.Context(), client, "orders", sidekeeper.LockOptions{})
	opened := server.NextOpen()
	opened.Accept(leaseID)
	server.NextAcquire().Queue(1)
	opened.End(scripted.Status(codes.Aborted, "LEASE_LOST", "it expired"))
	again := server.NextOpen()
	again.Accept("0123456789abcdef0123456789abcdef")
	server.NextAcquire().Grant(8)
	if got := receive(t, result); got.err != nil || got.lock.FencingToken() != 8 {
		t.Error(got.err)
	}
}

// The sidecar ends what stands on a lease before it ends the lease's stream.
func TestALeaseThatIsLostIsSaidOfItsOnlyLockFirst(t *testing.T) {
	server := scripted.StartOnSocket(t)
	client, _ := dial(t, server)
	result := acquiring(t.Context(), client, "orders", sidekeeper.LockOptions{Wait: new(time.Duration)})
	server.NextOpen().Accept(leaseID)
	server.NextAcquire().End(scripted.Status(codes.Aborted, "LEASE_LOST", "it expired"))
	want(t, receive(t, result).err, "lock orders: Unavailable (ENSEMBLE_UNREACHABLE): nothing is held: it expired",
		sidekeeper.ErrEnsembleUnreachable)
}

func TestALeaseThatCannotBeOpenedIsTheErrorOfItsOnlyLock(t *testing.T) {
	server := scripted.StartOnSocket(t)
	client, _ := dial(t, server)
	result := acquiring(t.Context(), client, "orders", sidekeeper.LockOptions{})
	server.NextOpen().End(scripted.Status(codes.ResourceExhausted, "LEASE_LIMIT", "too many"))
	want(t, receive(t, result).err, "lock orders: lease: ResourceExhausted (LEASE_LIMIT): too many", sidekeeper.ErrLeaseLimit)
}

func TestALockIsLostWithTheLeaseThatItAloneHas(t *testing.T) {
	server := scripted.StartOnSocket(t)
	client, _ := dial(t, server)
	lock, opened, _ := holdAlone(t, client, server, sidekeeper.LockOptions{})
	opened.End(scripted.Status(codes.Aborted, "LEASE_LOST", "it expired"))
	receive(t, lock.Done())
	want(t, lock.Release(t.Context()), "lock orders lost: Aborted (LEASE_LOST): it expired", sidekeeper.ErrLost, sidekeeper.ErrLeaseLost)
	if !errors.Is(lock.Err(), sidekeeper.ErrLeaseLost) {
		t.Error(lock.Err())
	}
}

// stoppedSlowly has what sends over the stream linger after a stop, from when the stream is hung up until goOn is closed.
func stoppedSlowly(hungUp chan<- struct{}, goOn <-chan struct{}) grpc.StreamClientInterceptor {
	return func(
		ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string, next grpc.Streamer, options ...grpc.CallOption,
	) (grpc.ClientStream, error) {
		stream, err := next(ctx, desc, conn, method, options...)
		return &lingering{stream, func() {
			<-ctx.Done()
			close(hungUp)
			<-goOn
		}}, err
	}
}

type lingering struct {
	grpc.ClientStream
	afterStop func()
}

func (l *lingering) SendMsg(message any) error {
	err := l.ClientStream.SendMsg(message)
	if request, is := message.(*leasev1.MultiplexRequest); is && request.GetStop() != nil {
		l.afterStop()
	}
	return err
}

func TestALeaseIsClosedWhoseOnlyLockIsGoneJustBeforeItIsResumed(t *testing.T) {
	server := scripted.StartOnSocket(t)
	hungUp, goOn := make(chan struct{}), make(chan struct{})
	slow := grpc.WithStreamInterceptor(stoppedSlowly(hungUp, goOn))
	client := dialWith(t, server, sidekeeper.WithClock(&sidekeeper.FakeClock{}), sidekeeper.WithDialOptions(slow))
	called, goBack := make(chan struct{}), make(chan struct{})
	lock, opened, call := holdAlone(t, client, server, sidekeeper.LockOptions{OnRevocation: func(sidekeeper.Revocation) {
		close(called)
		<-goBack
	}})
	call.AskBack(&holdv1.RevocationRequested{})
	receive(t, called)
	opened.HoldStops()
	released := make(chan error, 1)
	go func() { released <- lock.Release(context.Background()) }()
	endAs(opened, receive(t, opened.Stops), codes.OK, "")
	opened.End(errBroken)
	receive(t, hungUp)
	close(goBack)
	if err := receive(t, released); err != nil {
		t.Error(err)
	}
	close(goOn)
	again := server.NextOpen()
	again.Accept(leaseID)
	again.AwaitGone()
}
