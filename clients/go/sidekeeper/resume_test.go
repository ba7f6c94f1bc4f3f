package sidekeeper_test

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/sidekeeper/sidekeeper/clients/go/scripted"
	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
)

// openResumable opens a lease that outlives the sidecar.
func openResumable(t *testing.T, client *sidekeeper.Client, server *scripted.Server) (*sidekeeper.Lease, *scripted.Open) {
	t.Helper()
	result := make(chan *sidekeeper.Lease, 1)
	go func() {
		lease, err := client.OpenLease(t.Context(), sidekeeper.LeaseOptions{})
		if err != nil {
			t.Error(err)
		}
		result <- lease
	}()
	call := server.NextOpen()
	call.AcceptResumable(leaseID)
	return receive(t, result), call
}

var errBroken = status.Error(codes.Unavailable, "the connection is gone")

func TestWhatStandsOnALeaseOutlivesItsStream(t *testing.T) {
	server := scripted.StartOnSocket(t)
	client, _ := dial(t, server)
	lease, call := openResumable(t, client, server)
	suspended, resumed := make(chan time.Duration, 10), make(chan struct{}, 10)
	options := sidekeeper.LockOptions{
		Lease: lease, OnSuspended: func(left time.Duration) { suspended <- left }, OnResumed: func() { resumed <- struct{}{} },
	}
	lock, _ := hold(t, client, server, options)
	waiting := acquiring(t.Context(), client, "stock", sidekeeper.LockOptions{Lease: lease})
	server.NextAcquire().Queue(1)
	call.End(errBroken)
	again := server.NextOpen()
	if left := receive(t, suspended); left <= 0 || !lease.Suspended() || !lock.Suspended() || !lock.Valid() {
		t.Errorf("%v left of what is suspended", left)
	}
	if again.Request != nil || again.Claims.GetLeaseId() != leaseID || len(again.Claims.GetClaims()) != 2 {
		t.Errorf("%v %v", again.Request, again.Claims)
	}
	for _, claim := range again.Claims.GetClaims() {
		switch claim.GetStart().GetAcquire().GetName() {
		case "stock":
			if claim.GetToken() != 0 || claim.GetHoldId() != "" {
				t.Errorf("claims %v, which it waits for", claim)
			}
		default:
			if claim.GetToken() != lock.FencingToken() || claim.GetHoldId() != lock.HoldID() {
				t.Errorf("claims %v", claim)
			}
		}
	}
	again.Accept(leaseID)
	receive(t, resumed)
	if !lock.Valid() || lock.Err() != nil || lease.Suspended() || lock.Suspended() {
		t.Error(lock.Err())
	}
	for range 2 {
		if next := server.NextAcquire(); next.Request.GetName() == "stock" {
			next.Grant(9)
		}
	}
	got := receive(t, waiting)
	if got.err != nil || got.lock.FencingToken() != 9 {
		t.Error(got.err)
	}
	for _, each := range []*sidekeeper.Lock{lock, got.lock} {
		if err := each.Release(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// What relays a Unix socket over TCP may break while the sidecar lives, which then takes the caller for dead.
func TestALeaseThatIsReachedOverTCPEndsWithItsStreamWhateverTheSidecarSays(t *testing.T) {
	server := scripted.Start(t)
	client, _ := dial(t, server)
	lease, call := openResumable(t, client, server)
	lock, _ := hold(t, client, server, sidekeeper.LockOptions{Lease: lease})
	call.End(errBroken)
	receive(t, lock.Done())
	want(t, lock.Err(), "lock orders lost: "+away("the connection is gone"), sidekeeper.ErrLost)
	want(t, lease.Err(), "lease lost: "+away("the connection is gone"), sidekeeper.ErrLost)
}

func TestALeaseThatTheSidecarDoesNotKnowAnyMoreIsLost(t *testing.T) {
	server := scripted.StartOnSocket(t)
	client, _ := dial(t, server)
	lease, call := openResumable(t, client, server)
	lock, _ := hold(t, client, server, sidekeeper.LockOptions{Lease: lease})
	call.End(errBroken)
	server.NextOpen().End(scripted.Status(codes.NotFound, "LEASE_NOT_FOUND", "no such lease"))
	receive(t, lock.Done())
	want(t, lease.Err(), "lease lost: "+away("the connection is gone"), sidekeeper.ErrLost)
}

func TestALeaseThatHasExpiredMeanwhileIsLost(t *testing.T) {
	server := scripted.StartOnSocket(t)
	client, _ := dial(t, server)
	lease, call := openResumable(t, client, server)
	call.End(errBroken)
	server.NextOpen().End(scripted.Status(codes.Unavailable, "ENSEMBLE_UNREACHABLE", "in a moment"))
	server.NextOpen().End(scripted.Status(codes.Aborted, "LEASE_LOST", "expired"))
	receive(t, lease.Done())
	want(t, lease.Err(), "lease lost: Aborted (LEASE_LOST): expired", sidekeeper.ErrLost, sidekeeper.ErrLeaseLost)
}

// Until it is resumed, a lease is valid for as long as was told, and no longer.
func TestALeaseIsLostWhenItsValidityRunsOutBeforeItIsResumed(t *testing.T) {
	server := scripted.StartOnSocket(t)
	answerOnce(server, 5*time.Second)
	client, clock := dial(t, server)
	lease, call := openResumable(t, client, server)
	lock, _ := hold(t, client, server, sidekeeper.LockOptions{Lease: lease})
	call.End(errBroken)
	silent := server.NextOpen()
	if !lock.Valid() {
		t.Error(lock.Err())
	}
	clock.Advance(5 * time.Second)
	receive(t, lock.Done())
	if lock.Valid() || lease.Valid() {
		t.Error("valid for longer than was told")
	}
	silent.AwaitGone()
}

func TestALeaseOnWhichNothingStandsIsLostWhenItsValidityRunsOutBeforeItIsResumed(t *testing.T) {
	server := scripted.StartOnSocket(t)
	answerOnce(server, 5*time.Second)
	client, clock := dial(t, server)
	lease, call := openResumable(t, client, server)
	call.End(errBroken)
	silent := server.NextOpen()
	clock.Advance(5 * time.Second)
	receive(t, lease.Done())
	silent.AwaitGone()
}

func TestALockThatIsReleasedWhileItsLeaseIsAwayIsGoneWhenReleaseReturns(t *testing.T) {
	server := scripted.StartOnSocket(t)
	client, _ := dial(t, server)
	lease, call := openResumable(t, client, server)
	lock, _ := hold(t, client, server, sidekeeper.LockOptions{Lease: lease})
	call.End(errBroken)
	again := server.NextOpen()
	again.End(errBroken)
	released := make(chan error, 1)
	go func() { released <- lock.Release(context.Background()) }()
	receive(t, lock.Done())
	again = server.NextOpen()
	again.Accept(leaseID)
	if err := receive(t, released); err != nil {
		t.Error(err)
	}
	if !lease.Valid() {
		t.Error(lease.Err())
	}
}

// endAs has the request's end told on the stream whatever the scripted sidecar would say.
func endAs(call *scripted.Open, id uint64, code codes.Code, reason string) {
	ended := &leasev1.Ended{RequestId: id, Code: int32(code), Reason: reason, Message: reason + ": said the script"}
	call.Send(&leasev1.MultiplexResponse{Response: &leasev1.MultiplexResponse_Ended{Ended: ended}})
}

func TestALockThatWasReleasedBeforeItsStreamBrokeIsReleasedThoughItsPlaceIsGone(t *testing.T) {
	server := scripted.StartOnSocket(t)
	client, _ := dial(t, server)
	lease, call := openResumable(t, client, server)
	lock, _ := hold(t, client, server, sidekeeper.LockOptions{Lease: lease})
	call.HoldStops()
	released := make(chan error, 1)
	go func() { released <- lock.Release(context.Background()) }()
	stopped := receive(t, call.Stops)
	call.End(errBroken)
	again := server.NextOpen()
	again.HoldStops()
	again.Accept(leaseID)
	receive(t, again.Stops)
	endAs(again, stopped, codes.Aborted, "LOCK_BROKEN")
	if err := receive(t, released); err != nil || !lease.Valid() {
		t.Error(err, lease.Err())
	}
}

func TestALockIsLostThatIsReleasedWhileItsLeaseIsAwayAndWasBrokenBefore(t *testing.T) {
	server := scripted.StartOnSocket(t)
	client, _ := dial(t, server)
	lease, call := openResumable(t, client, server)
	lock, _ := hold(t, client, server, sidekeeper.LockOptions{Lease: lease})
	call.End(errBroken)
	again := server.NextOpen()
	released := make(chan error, 1)
	go func() { released <- lock.Release(context.Background()) }()
	receive(t, lock.Done())
	again.HoldStops()
	again.Accept(leaseID)
	endAs(again, receive(t, again.Stops), codes.Aborted, "LOCK_BROKEN")
	want(t, receive(t, released), "lock orders lost: Aborted (LOCK_BROKEN): said the script", sidekeeper.ErrLost)
}

// What the lock is for may go on, and whoever comes back to the lease gives up its place, which is not among what it claims.
func TestALeaseIsResumedOnlyIfEachEndIsAcknowledgedThatItsHolderMustAcknowledge(t *testing.T) {
	for _, acknowledged := range []bool{false, true} {
		server := scripted.StartOnSocket(t)
		client, _ := dial(t, server)
		lease, opened := openResumable(t, client, server)
		lock, call := hold(t, client, server, sidekeeper.LockOptions{Lease: lease, AcknowledgeOnRelease: true})
		call.End(scripted.Status(codes.Aborted, "LOCK_BROKEN", "by an operator"))
		receive(t, lock.Done())
		if acknowledged {
			want(t, lock.Release(t.Context()), "lock orders lost: Aborted (LOCK_BROKEN): by an operator", sidekeeper.ErrLockBroken)
		}
		opened.End(errBroken)
		if acknowledged {
			server.NextOpen().Accept(leaseID)
			continue
		}
		receive(t, lease.Done())
		want(t, lease.Err(), "lease lost: "+away("the connection is gone"), sidekeeper.ErrLost)
	}
}
