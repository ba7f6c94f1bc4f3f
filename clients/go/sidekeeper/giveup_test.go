package sidekeeper_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/sidekeeper/sidekeeper/clients/go/scripted"
	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
)

const workIsDone = "Aborted (RELEASE_UNCONFIRMED): the work has ended, but its release is not confirmed: "

// wantUnconfirmed is true of no error that says that a call may be made again.
func wantUnconfirmed(t *testing.T, err error, text string) {
	t.Helper()
	want(t, err, text, sidekeeper.ErrReleaseUnconfirmed)
	for _, other := range []error{
		sidekeeper.ErrLost, sidekeeper.ErrEnsembleUnreachable, sidekeeper.ErrHoldNotFound, context.DeadlineExceeded,
	} {
		if errors.Is(err, other) {
			t.Errorf("%v is %v", err, other)
		}
	}
	if told, is := errors.AsType[*sidekeeper.Error](err); !is || told.Code != codes.Aborted {
		t.Errorf("its code is that of %v", told)
	}
}

func TestWhateverKeepsAReleaseFromBeingConfirmedIsNoReasonToRepeatTheWork(t *testing.T) {
	for text, failed := range map[string]error{
		away("the connection is gone"):                 status.Error(codes.Unavailable, "the connection is gone"),
		"Unavailable (ENSEMBLE_UNREACHABLE): away":     scripted.Status(codes.Unavailable, "ENSEMBLE_UNREACHABLE", "away"),
		"NotFound (HOLD_NOT_FOUND): no such hold":      scripted.Status(codes.NotFound, "HOLD_NOT_FOUND", "no such hold"),
		"DeadlineExceeded: the sidecar does not reply": status.Error(codes.DeadlineExceeded, "the sidecar does not reply"),
	} {
		server := scripted.Start(t)
		server.Release = func(context.Context, *lockv1.ReleaseRequest) (*lockv1.ReleaseResponse, error) { return nil, failed }
		client, _ := dial(t, server)
		done, result := 0, make(chan error, 1)
		go func() {
			result <- client.WithLock(t.Context(), "orders", sidekeeper.LockOptions{}, func(context.Context, *sidekeeper.Lock) error {
				done++
				return nil
			})
		}()
		server.NextAcquire().Grant(7)
		wantUnconfirmed(t, receive(t, result), "lock orders: "+workIsDone+text)
		if done != 1 {
			t.Errorf("the work was done %d times", done)
		}
	}
}

func TestTheErrorOfTheWorkStandsBeforeThatOfItsRelease(t *testing.T) {
	server := scripted.Start(t)
	server.Release = func(context.Context, *lockv1.ReleaseRequest) (*lockv1.ReleaseResponse, error) {
		return nil, status.Error(codes.Unavailable, "gone")
	}
	client, _ := dial(t, server)
	result := make(chan error, 1)
	failed := &sidekeeper.Error{Code: codes.NotFound, Message: "no such order"}
	go func() {
		result <- client.WithLock(t.Context(), "orders", sidekeeper.LockOptions{}, func(context.Context, *sidekeeper.Lock) error { return failed })
	}()
	server.NextAcquire().Grant(7)
	err := receive(t, result)
	if first, _ := errors.AsType[*sidekeeper.Error](err); first != failed || !errors.Is(err, sidekeeper.ErrReleaseUnconfirmed) {
		t.Error(err)
	}
}

// The stream of the lease breaks before the sidecar has said that the place is gone.
func TestAReleaseOnTheLeasesStreamThatBreaksIsUnconfirmed(t *testing.T) {
	server := scripted.Start(t)
	client, _ := dial(t, server)
	lease, opened := open(t, client, server)
	lock, _ := hold(t, client, server, sidekeeper.LockOptions{Lease: lease})
	goOn := opened.HoldStops()
	defer goOn()
	released := make(chan error, 1)
	go func() { released <- lock.Release(t.Context()) }()
	receive(t, opened.Stops)
	opened.End(status.Error(codes.Unavailable, "gone"))
	wantUnconfirmed(t, receive(t, released), "lock orders: "+workIsDone+away("gone"))
	want(t, lease.Close(t.Context()), "lease lost: "+away("gone"), sidekeeper.ErrLost)
}

func TestALeaseWhoseCloseIsNotAnsweredIsUnconfirmed(t *testing.T) {
	server := scripted.Start(t)
	server.Close = scripted.Frozen[leasev1.CloseRequest, leasev1.CloseResponse]
	client, _ := dial(t, server)
	lease, _ := open(t, client, server)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := lease.Close(ctx); !errors.Is(err, sidekeeper.ErrReleaseUnconfirmed) || lease.Err() != nil {
		t.Error(err, lease.Err())
	}
}
