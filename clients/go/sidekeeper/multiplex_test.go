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
	holdv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/hold/v1"
	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
)

func TestALockOfALeaseCostsNoCallOfItsOwn(t *testing.T) {
	server := scripted.Start(t)
	var checks atomic.Int32
	server.CheckLease = func(context.Context, *leasev1.CheckRequest) (*leasev1.CheckResponse, error) {
		checks.Add(1)
		return &leasev1.CheckResponse{ValidFor: durationpb.New(scripted.Validity)}, nil
	}
	server.CheckHolds = func(context.Context, *lockv1.CheckRequest) (*lockv1.CheckResponse, error) {
		t.Error("a hold is checked")
		return nil, context.Canceled
	}
	releases(server, func(string) { t.Error("Release is called") })
	client, _ := dial(t, server)
	lease, opened := open(t, client, server)
	for id := uint64(2); id < 5; id++ { // 1 was the question
		lock, call := hold(t, client, server, sidekeeper.LockOptions{Lease: lease, Owner: "me"})
		if call.Open != opened || call.Request.GetLeaseId() != "" || call.Request.GetOwner() != "me" {
			t.Errorf("%v", call.Request)
		}
		if lock.ValidFor() != lease.ValidFor() || !lock.Valid() {
			t.Errorf("valid for %v, the lease for %v", lock.ValidFor(), lease.ValidFor())
		}
		if err := lock.Release(t.Context()); err != nil || lock.Valid() || lock.Err() != nil {
			t.Error(err, lock.Err())
		}
		if got := receive(t, opened.Stops); got != id {
			t.Errorf("stopped: %d, not %d", got, id)
		}
	}
	if checks.Load() != 1 || !lease.Valid() {
		t.Errorf("%d questions", checks.Load())
	}
}

func TestAReleaseReturnsWhenThePlaceOfALockOfALeaseIsGone(t *testing.T) {
	server := scripted.Start(t)
	client, _ := dial(t, server)
	lease, opened := open(t, client, server)
	lock, _ := hold(t, client, server, sidekeeper.LockOptions{Lease: lease})
	goOn := opened.HoldStops()
	released := make(chan error, 1)
	go func() { released <- lock.Release(t.Context()) }()
	receive(t, opened.Stops)
	select {
	case err := <-released:
		t.Errorf("Release has returned before the sidecar has said so: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	goOn()
	if err := receive(t, released); err != nil {
		t.Error(err)
	}
}

func TestTheEndOfALockOfALeaseIsAcknowledgedOnceAndWhenItIsOver(t *testing.T) {
	for _, onRelease := range []bool{false, true} {
		server := scripted.Start(t)
		client, _ := dial(t, server)
		lease, opened := open(t, client, server)
		lock, call := hold(t, client, server, sidekeeper.LockOptions{Lease: lease, AcknowledgeOnRelease: onRelease})
		call.End(scripted.Status(codes.Aborted, "LOCK_BROKEN", "by an operator"))
		receive(t, lock.Done())
		if onRelease && len(opened.Stops) > 0 {
			t.Error("the end is acknowledged though what the lock is for may go on")
		}
		if !onRelease {
			receive(t, opened.Stops)
		}
		want(t, lock.Release(t.Context()), "lock orders lost: Aborted (LOCK_BROKEN): by an operator", sidekeeper.ErrLockBroken)
		if onRelease {
			receive(t, opened.Stops)
		}
		holdWith(t, client, server, lease)
		if len(opened.Stops) > 0 || !lease.Valid() {
			t.Error("it is acknowledged twice, or the lease has ended")
		}
	}
}

// The lease's validity goes on being told, and the ended lock must not count on it.
func TestAFunctionThatBlocksHoldsUpNeitherTheEndOfItsLockNorOthers(t *testing.T) {
	server := scripted.Start(t)
	client, _ := dial(t, server)
	lease, _ := open(t, client, server)
	called, goOn := make(chan struct{}), make(chan struct{})
	lock, call := hold(t, client, server, sidekeeper.LockOptions{Lease: lease, OnRevocation: func(sidekeeper.Revocation) {
		close(called)
		<-goOn
	}})
	defer close(goOn)
	call.AskBack(&holdv1.RevocationRequested{})
	receive(t, called)
	call.End(scripted.Status(codes.Aborted, "LOCK_REVOKED", "the grace is over"))
	receive(t, lock.Done())
	if lock.Valid() || !errors.Is(lock.Err(), sidekeeper.ErrLockRevoked) {
		t.Error(lock.Err())
	}
	holdWith(t, client, server, lease)
}

func TestTheSuspensionOfALeaseReachesAllThatStandsOnIt(t *testing.T) {
	server := scripted.Start(t)
	client, _ := dial(t, server)
	lease, opened := open(t, client, server)
	suspended, resumed := make(chan time.Duration, 2), make(chan struct{}, 2)
	options := sidekeeper.LockOptions{
		Lease: lease, OnSuspended: func(remaining time.Duration) { suspended <- remaining }, OnResumed: func() { resumed <- struct{}{} },
	}
	first, _ := hold(t, client, server, options)
	second, _ := hold(t, client, server, options)
	opened.Suspend(time.Second)
	for range 2 {
		if got := receive(t, suspended); got != time.Second {
			t.Error(got)
		}
	}
	if !lease.Suspended() || !first.Suspended() || !second.Suspended() {
		t.Error("not all are suspended")
	}
	opened.Resume()
	receive(t, resumed)
	receive(t, resumed)
	if lease.Suspended() || first.Suspended() || second.Suspended() {
		t.Error("not all are resumed")
	}
}

func TestWhoGivesUpWaitingForALockOfALeaseStopsIt(t *testing.T) {
	server := scripted.Start(t)
	client, _ := dial(t, server)
	lease, opened := open(t, client, server)
	ctx, cancel := context.WithCancel(t.Context())
	result := acquiring(ctx, client, "orders", sidekeeper.LockOptions{Lease: lease})
	call := server.NextAcquire()
	call.Queue(1)
	cancel()
	want(t, receive(t, result).err, "lock orders: context canceled", context.Canceled)
	receive(t, opened.Stops)
	call.AwaitGone()
	call.Grant(7) // it crosses
	holdWith(t, client, server, lease)
}

func TestWhoWaitsWithALeaseWhoseStreamBreaksIsToldSo(t *testing.T) {
	server := scripted.Start(t)
	client := dialWith(t, server, sidekeeper.WithoutRepetition())
	lease, _ := open(t, client, server)
	result := acquiring(t.Context(), client, "orders", sidekeeper.LockOptions{Lease: lease})
	server.NextAcquire().Queue(1)
	server.Stop()
	if err := receive(t, result).err; !isUnavailable(err) {
		t.Error(err)
	}
}

func isUnavailable(err error) bool {
	told, is := errors.AsType[*sidekeeper.Error](err)
	return is && told.Code == codes.Unavailable
}
