package sidekeeper_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/sidekeeper/sidekeeper/clients/go/scripted"
	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
)

// releases has the sidecar call seen at each Release.
func releases(server *scripted.Server, seen func(holdID string)) {
	server.Release = func(_ context.Context, request *lockv1.ReleaseRequest) (*lockv1.ReleaseResponse, error) {
		seen(request.GetHoldId())
		return nil, scripted.Status(codes.Aborted, "LOCK_BROKEN", "it has ended before")
	}
}

// ends are ways in which a hold ends otherwise than by its caller's own hand. Check says that it is over as soon as overForCheck is set.
var ends = map[string]func(call *scripted.Acquire, clock *sidekeeper.FakeClock, overForCheck *atomic.Bool){
	"an operator breaks it": func(call *scripted.Acquire, _ *sidekeeper.FakeClock, _ *atomic.Bool) {
		call.End(scripted.Status(codes.Aborted, "LOCK_BROKEN", "by an operator"))
	},
	"somebody else closes its lease": func(call *scripted.Acquire, _ *sidekeeper.FakeClock, _ *atomic.Bool) {
		call.End(scripted.Status(codes.Aborted, "LEASE_CLOSED", "by its owner"))
	},
	"the sidecar stops": func(call *scripted.Acquire, _ *sidekeeper.FakeClock, _ *atomic.Bool) {
		call.End(scripted.Status(codes.Aborted, "SIDECAR_STOPPING", "the drain time is over"))
	},
	"Check says so": func(_ *scripted.Acquire, clock *sidekeeper.FakeClock, overForCheck *atomic.Bool) {
		overForCheck.Store(true)
		clock.Advance(3 * time.Second)
	},
	"its validity runs out": func(_ *scripted.Acquire, clock *sidekeeper.FakeClock, _ *atomic.Bool) {
		clock.Advance(scripted.Validity)
	},
}

func TestAHoldThatEndedOtherwiseThanByItsCallerIsAcknowledgedOnceAndWhenItIsOver(t *testing.T) {
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			server := scripted.Start(t)
			var overForCheck atomic.Bool
			server.CheckHolds = func(_ context.Context, request *lockv1.CheckRequest) (*lockv1.CheckResponse, error) {
				reply := scripted.HoldsValidFor(request, scripted.Validity)
				if overForCheck.Load() {
					reply.Holds[0].ValidFor, reply.Holds[0].Reason = nil, "LOCK_REVOKED"
				}
				return reply, nil
			}
			bodies, acknowledged := make(chan context.Context, 1), make(chan string, 2)
			var body atomic.Pointer[context.Context]
			releases(server, func(id string) {
				if (*body.Load()).Err() == nil {
					t.Error("the function's context has not ended when the sidecar gives the lock to others")
				}
				acknowledged <- id
			})
			client, clock := dial(t, server)
			ended := make(chan error, 1)
			go func() {
				ended <- client.WithLock(t.Context(), "orders", sidekeeper.LockOptions{}, func(ctx context.Context, lock *sidekeeper.Lock) error {
					bodies <- ctx
					<-ctx.Done()
					if lock.Valid() {
						t.Error("the lock is still valid")
					}
					return nil
				})
			}()
			call := server.NextAcquire()
			id := call.Grant(7)
			body.Store(new(receive(t, bodies)))
			end(call, clock, &overForCheck)
			if got := receive(t, acknowledged); got != id {
				t.Errorf("%s is acknowledged, not %s", got, id)
			}
			call.AwaitGone()
			if err := receive(t, ended); !errors.Is(err, sidekeeper.ErrLost) {
				t.Errorf("the loss is told as %v", err)
			}
			if err := client.Close(); err != nil {
				t.Error(err)
			}
			if len(acknowledged) > 0 {
				t.Error("it is acknowledged twice")
			}
		})
	}
}

func TestWhatEndsByItsCallersOwnHandIsNotAcknowledgedBesides(t *testing.T) {
	server := scripted.Start(t)
	told := atomic.Int32{}
	release := server.Release
	server.Release = func(ctx context.Context, request *lockv1.ReleaseRequest) (*lockv1.ReleaseResponse, error) {
		told.Add(1)
		return release(ctx, request)
	}
	client, _ := dial(t, server)
	lock := holdToken(t, client, server, 1)
	if err := lock.Release(t.Context()); err != nil {
		t.Error(err)
	}
	holdToken(t, client, server, 2)
	if err := client.Close(); err != nil { // which the end of the connection tells
		t.Error(err)
	}
	if told.Load() != 1 {
		t.Errorf("%d calls of Release for one", told.Load())
	}
}

func TestClosingTheClientWaitsForAcknowledgments(t *testing.T) {
	server := scripted.Start(t)
	asked, answer := make(chan struct{}), make(chan struct{})
	releases(server, func(string) {
		close(asked)
		<-answer
	})
	client, _ := dial(t, server)
	_, call := hold(t, client, server, sidekeeper.LockOptions{})
	result := acquiring(t.Context(), client, "stock", sidekeeper.LockOptions{})
	other := server.NextAcquire()
	other.Grant(8)
	receive(t, result)
	call.End(scripted.Status(codes.Aborted, "LOCK_BROKEN", "by an operator"))
	receive(t, asked)
	closed := make(chan error, 1)
	go func() { closed <- client.Close() }()
	other.AwaitGone() // its lock is over: Close has come so far
	if alive, err := client.Alive(t.Context()); !alive {
		t.Errorf("the connection is closed before the acknowledgment has arrived: %v", err)
	}
	close(answer)
	if err := receive(t, closed); err != nil {
		t.Error(err)
	}
}

func TestClosingTheClientDoesNotWaitForLongForAFrozenSidecar(t *testing.T) {
	server := scripted.Start(t)
	asked := make(chan struct{})
	server.Release = func(ctx context.Context, _ *lockv1.ReleaseRequest) (*lockv1.ReleaseResponse, error) {
		close(asked)
		<-ctx.Done()
		return nil, ctx.Err()
	}
	client, _ := dial(t, server)
	_, call := hold(t, client, server, sidekeeper.LockOptions{})
	call.End(scripted.Status(codes.Aborted, "LOCK_BROKEN", "by an operator"))
	receive(t, asked)
	began := time.Now()
	if err := client.Close(); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > 2*longestDelay {
		t.Errorf("it takes %v", took)
	}
}

func TestAnEndIsAcknowledgedByReleaseWhereTheCallerStopsWhatTheLockIsForByThen(t *testing.T) {
	server := scripted.Start(t)
	acknowledged := make(chan string, 2)
	releases(server, func(id string) { acknowledged <- id })
	client, _ := dial(t, server)
	held := make(chan *sidekeeper.Lock, 1)
	go func() {
		lock, err := client.Acquire(t.Context(), "orders", sidekeeper.LockOptions{AcknowledgeOnRelease: true})
		if err != nil {
			t.Error(err)
		}
		held <- lock
	}()
	call := server.NextAcquire()
	id := call.Grant(7)
	lock := receive(t, held)
	call.End(scripted.Status(codes.Aborted, "LOCK_BROKEN", "by an operator"))
	receive(t, lock.Done())
	if len(acknowledged) > 0 {
		t.Error("the end is acknowledged though what the lock is for may go on")
	}
	if err := lock.Release(t.Context()); !errors.Is(err, sidekeeper.ErrLost) {
		t.Errorf("Release: %v", err)
	}
	if got := receive(t, acknowledged); got != id {
		t.Errorf("%s is acknowledged, not %s", got, id)
	}
}

// A stream that its caller ends is given up for the sidecar, which hands the lock to others though what it is for may go on.
func TestALossDoesNotEndTheStreamWhereTheCallerStopsWhatTheLockIsForByRelease(t *testing.T) {
	for name, lose := range map[string]func(clock *sidekeeper.FakeClock, overForCheck *atomic.Bool){
		"Check says so": func(clock *sidekeeper.FakeClock, overForCheck *atomic.Bool) {
			overForCheck.Store(true)
			clock.Advance(3 * time.Second)
		},
		"its validity runs out": func(clock *sidekeeper.FakeClock, _ *atomic.Bool) { clock.Advance(scripted.Validity) },
	} {
		t.Run(name, func(t *testing.T) {
			server := scripted.Start(t)
			var overForCheck atomic.Bool
			var checks atomic.Int32
			server.CheckHolds = func(_ context.Context, request *lockv1.CheckRequest) (*lockv1.CheckResponse, error) {
				checks.Add(1)
				reply := scripted.HoldsValidFor(request, scripted.Validity)
				if overForCheck.Load() {
					reply.Holds[0].ValidFor, reply.Holds[0].Reason = nil, "LOCK_REVOKED"
				}
				return reply, nil
			}
			acknowledged := make(chan string, 2)
			releases(server, func(id string) { acknowledged <- id })
			client, clock := dial(t, server)
			lock, call := hold(t, client, server, sidekeeper.LockOptions{AcknowledgeOnRelease: true})
			lose(clock, &overForCheck)
			receive(t, lock.Done())
			asked := checks.Load()
			if call.GoneWithin(100 * time.Millisecond) {
				t.Error("the stream has ended though what the lock is for may go on")
			}
			if checks.Load() > asked+1 { // one may have been under way
				t.Errorf("%d questions about a lock that is over", checks.Load()-asked)
			}
			if err := lock.Release(t.Context()); !errors.Is(err, sidekeeper.ErrLost) {
				t.Errorf("Release: %v", err)
			}
			call.AwaitGone()
			if got := receive(t, acknowledged); got != lock.HoldID() {
				t.Errorf("%s is acknowledged, not %s", got, lock.HoldID())
			}
		})
	}
}

func TestWhoWaitsForALockWhoseEndReleaseAcknowledgesIsRefusedWithItsLease(t *testing.T) {
	server := scripted.Start(t)
	client, _ := dial(t, server)
	lease, opened := open(t, client, server)
	result := acquiring(t.Context(), client, "orders", sidekeeper.LockOptions{Lease: lease, AcknowledgeOnRelease: true})
	call := server.NextAcquire()
	call.Queue(1)
	opened.End(scripted.Status(codes.Aborted, "LEASE_LOST", "expired"))
	want(t, receive(t, result).err, "lock orders: Aborted (LEASE_LOST): expired", sidekeeper.ErrLeaseLost)
	call.AwaitGone()
}

// The sidecar keeps the place of a hold that ended so, and the next attempt would wait behind it.
func TestAHoldThatEndedBeforeItsCallerHadItIsAcknowledged(t *testing.T) {
	for _, onRelease := range []bool{false, true} {
		server := scripted.Start(t)
		server.CheckHolds = func(_ context.Context, request *lockv1.CheckRequest) (*lockv1.CheckResponse, error) {
			return &lockv1.CheckResponse{Holds: []*lockv1.CheckedHold{{HoldId: request.GetHoldIds()[0], Reason: "LOCK_BROKEN"}}}, nil
		}
		acknowledged := make(chan string, 2)
		releases(server, func(id string) { acknowledged <- id })
		client, _ := dial(t, server)
		result := acquiring(t.Context(), client, "orders", sidekeeper.LockOptions{AcknowledgeOnRelease: onRelease})
		id := server.NextAcquire().Grant(7)
		if got := receive(t, result); got.lock != nil || !errors.Is(got.err, sidekeeper.ErrLockBroken) {
			t.Errorf("acquired: %v, %v", got.lock, got.err)
		}
		if got := receive(t, acknowledged); got != id {
			t.Errorf("%s is acknowledged, not %s", got, id)
		}
	}
}
