package sidekeeper_test

import (
	"context"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/sidekeeper/sidekeeper/clients/go/scripted"
	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
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
	server := scripted.Start(t)
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

func TestALeaseThatTheSidecarDoesNotKnowAnyMoreIsLost(t *testing.T) {
	server := scripted.Start(t)
	client, _ := dial(t, server)
	lease, call := openResumable(t, client, server)
	lock, _ := hold(t, client, server, sidekeeper.LockOptions{Lease: lease})
	call.End(errBroken)
	server.NextOpen().End(scripted.Status(codes.NotFound, "LEASE_NOT_FOUND", "no such lease"))
	receive(t, lock.Done())
	want(t, lease.Err(), "lease lost: Unavailable: the connection is gone", sidekeeper.ErrLost)
}

func TestALeaseThatHasExpiredMeanwhileIsLost(t *testing.T) {
	server := scripted.Start(t)
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
	server := scripted.Start(t)
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

func TestALockThatIsReleasedWhileItsLeaseIsAwayIsGoneWhenReleaseReturns(t *testing.T) {
	server := scripted.Start(t)
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
