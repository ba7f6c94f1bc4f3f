package sidekeeper_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/sidekeeper/sidekeeper/clients/go/scripted"
	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
)

func TestAnAnswerCountsFromWhenTheQuestionWasSent(t *testing.T) {
	server := scripted.Start(t)
	clock := &sidekeeper.FakeClock{}
	server.CheckHolds = func(_ context.Context, request *lockv1.CheckRequest) (*lockv1.CheckResponse, error) {
		clock.Advance(4 * time.Second) // the answer is on its way for so long
		return scripted.HoldsValidFor(request, 10*time.Second), nil
	}
	client := dialWith(t, server, sidekeeper.WithClock(clock))
	lock, _ := hold(t, client, server, sidekeeper.LockOptions{})
	if left := lock.ValidFor(); left > 6*time.Second {
		t.Errorf("valid for %v after 4s of 10s", left)
	}
}

// frozenAfter answers the first questions as a sidecar that then freezes: its streams stay open.
func frozenAfter(server *scripted.Server, answers int32, validFor time.Duration) {
	asked := atomic.Int32{}
	server.CheckHolds = func(ctx context.Context, request *lockv1.CheckRequest) (*lockv1.CheckResponse, error) {
		if asked.Add(1) > answers {
			return scripted.Frozen[lockv1.CheckRequest, lockv1.CheckResponse](ctx, request)
		}
		return scripted.HoldsValidFor(request, validFor), nil
	}
}

func TestAFrozenSidecarLosesTheLockWhenItsValidityIsOver(t *testing.T) {
	server := scripted.Start(t)
	frozenAfter(server, 1, 8*time.Second)
	client, clock := dial(t, server)
	lock, call := hold(t, client, server, sidekeeper.LockOptions{})
	clock.Advance(8*time.Second - 1)
	if !lock.Valid() || lock.Context().Err() != nil {
		t.Error("lost too early")
	}
	clock.Advance(1)
	if lock.Valid() {
		t.Error("valid beyond what the sidecar has said")
	}
	receive(t, lock.Done())
	want(t, lock.Err(), "lock orders lost: Aborted (LEASE_LOST): the sidecar has not confirmed it in time "+
		"and its validity has run out", sidekeeper.ErrLost, sidekeeper.ErrLeaseLost)
	call.AwaitGone()
}

func TestAFrozenSidecarLosesTheLockOnTheSystemsClock(t *testing.T) {
	server := scripted.Start(t)
	const validity = 600 * time.Millisecond
	var first atomic.Pointer[time.Time]
	server.CheckHolds = func(ctx context.Context, request *lockv1.CheckRequest) (*lockv1.CheckResponse, error) {
		if !first.CompareAndSwap(nil, new(time.Now())) {
			return scripted.Frozen[lockv1.CheckRequest, lockv1.CheckResponse](ctx, request)
		}
		return scripted.HoldsValidFor(request, validity), nil
	}
	client := dialWith(t, server)
	lock, _ := hold(t, client, server, sidekeeper.LockOptions{})
	receive(t, lock.Done())
	// The question was sent before the server saw it: at the deadline by the server's measure it must be over.
	if lasted := time.Since(*first.Load()); lasted < validity/2 || lasted > validity+longestDelay {
		t.Errorf("lost after %v of %v", lasted, validity)
	}
}

// longestDelay is how late a busy test machine may wake a goroutine up.
const longestDelay = 2 * time.Second

func TestAllHoldsShareOneQuestionWhichIsAskedInTime(t *testing.T) {
	server := scripted.Start(t)
	questions := make(chan string, 100)
	server.CheckHolds = func(_ context.Context, request *lockv1.CheckRequest) (*lockv1.CheckResponse, error) {
		questions <- shorten(request.GetHoldIds())
		return scripted.HoldsValidFor(request, 8*time.Second), nil
	}
	client, clock := dial(t, server)
	locks := []*sidekeeper.Lock{holdToken(t, client, server, 1), holdToken(t, client, server, 2)}
	clock.Advance(2*time.Second - 1)
	clock.Advance(1)
	got := fmt.Sprint(receive(t, questions), receive(t, questions), receive(t, questions))
	if got != "[1][2][1 2]" {
		t.Error(got)
	}
	clock.Advance(2 * time.Second)
	receive(t, questions) // and so the answer to the one before has been taken in
	for _, lock := range locks {
		if lock.ValidFor() < 6*time.Second {
			t.Errorf("%v left", lock.ValidFor())
		}
	}
}

// shorten leaves the last digit of each id, which is the fencing token.
func shorten(ids []string) string {
	short := make([]string, 0, len(ids))
	for _, id := range ids {
		short = append(short, id[len(id)-1:])
	}
	return "[" + strings.Join(short, " ") + "]"
}

func holdToken(t *testing.T, client *sidekeeper.Client, server *scripted.Server, token int64) *sidekeeper.Lock {
	t.Helper()
	result := acquiring(t.Context(), client, fmt.Sprintf("orders-%d", token), sidekeeper.LockOptions{})
	server.NextAcquire().Grant(token)
	got := receive(t, result)
	if got.err != nil {
		t.Fatal(got.err)
	}
	return got.lock
}

func TestAHoldThatCheckCallsEndedIsLostWithThatReason(t *testing.T) {
	server := scripted.Start(t)
	asked := atomic.Int32{}
	server.CheckHolds = func(_ context.Context, request *lockv1.CheckRequest) (*lockv1.CheckResponse, error) {
		reply := scripted.HoldsValidFor(request, 8*time.Second)
		if asked.Add(1) > 1 {
			reply.Holds[0].ValidFor, reply.Holds[0].Reason = nil, "LOCK_REVOKED"
		}
		return reply, nil
	}
	client, clock := dial(t, server)
	lock, _ := hold(t, client, server, sidekeeper.LockOptions{})
	clock.Advance(3 * time.Second)
	receive(t, lock.Done())
	want(t, lock.Err(), "lock orders lost: Aborted (LOCK_REVOKED): the sidecar says so", sidekeeper.ErrLockRevoked)
}

func TestAHoldThatTheSidecarDoesNotKnowIsLostAloneAmongOthers(t *testing.T) {
	server := scripted.Start(t)
	unknown := fmt.Sprintf("%032x", 2)
	forgotten := atomic.Bool{}
	server.CheckHolds = func(_ context.Context, request *lockv1.CheckRequest) (*lockv1.CheckResponse, error) {
		if forgotten.Load() && slices.Contains(request.GetHoldIds(), unknown) {
			return nil, scripted.Status(codes.NotFound, "HOLD_NOT_FOUND", "no such hold")
		}
		return scripted.HoldsValidFor(request, 8*time.Second), nil
	}
	client, clock := dial(t, server)
	kept, lost := holdToken(t, client, server, 1), holdToken(t, client, server, 2)
	forgotten.Store(true)
	clock.Advance(3 * time.Second)
	receive(t, lost.Done())
	want(t, lost.Err(), "lock orders-2 lost: NotFound (HOLD_NOT_FOUND): no such hold", sidekeeper.ErrHoldNotFound)
	if kept.ValidFor() != 8*time.Second {
		t.Errorf("the other has %v left", kept.ValidFor())
	}
}

func TestAFailedQuestionIsAskedAgain(t *testing.T) {
	server := scripted.Start(t)
	asked := atomic.Int32{}
	questions := make(chan struct{}, 100)
	server.CheckHolds = func(_ context.Context, request *lockv1.CheckRequest) (*lockv1.CheckResponse, error) {
		questions <- struct{}{}
		if asked.Add(1) == 2 {
			return nil, scripted.Status(codes.Internal, "INTERNAL", "a surprise")
		}
		return scripted.HoldsValidFor(request, 8*time.Second), nil
	}
	client := dialWith(t, server) // the clock goes on by itself: nothing tells when the failure has been taken in
	hold(t, client, server, sidekeeper.LockOptions{})
	for range 3 {
		receive(t, questions)
	}
}

func TestAwaitRiskReturnsWhenLittleIsLeft(t *testing.T) {
	server := scripted.Start(t)
	frozenAfter(server, 1, 8*time.Second)
	client, clock := dial(t, server)
	lock, _ := hold(t, client, server, sidekeeper.LockOptions{})
	atRisk := make(chan error, 1)
	go func() { atRisk <- lock.AwaitRisk(t.Context(), 3*time.Second) }()
	clock.Advance(5*time.Second - 1)
	select {
	case err := <-atRisk:
		t.Errorf("returned %v with more than 3s left", err)
	default:
	}
	clock.Advance(1)
	if err := receive(t, atRisk); err != nil || lock.ValidFor() != 3*time.Second {
		t.Errorf("%v with %v left", err, lock.ValidFor())
	}
}

func TestQuestionsAreAskedAtAQuarterAndNotMoreOftenThanNeeded(t *testing.T) {
	for validity, pause := range map[time.Duration]time.Duration{
		12 * time.Second: 3 * time.Second, 4 * time.Second: time.Second, 3 * time.Second: time.Second,
		time.Second: 500 * time.Millisecond, 0: 250 * time.Millisecond, -time.Hour: 250 * time.Millisecond,
	} {
		if got := sidekeeper.Patience(validity); got != pause {
			t.Errorf("after an answer of %v: %v, want %v", validity, got, pause)
		}
	}
}
