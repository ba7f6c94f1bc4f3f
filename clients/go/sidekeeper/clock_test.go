package sidekeeper_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/sidekeeper/sidekeeper/clients/go/scripted"
	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
)

// longestNap is how late it may be told that something has run out while the machine was suspended, as the clients promise.
const longestNap = 250 * time.Millisecond

// Timers stand still while the machine is suspended: those that were set for the end of a validity would ring that much later.
func TestWhatRanOutWhileTheMachineWasSuspendedIsOverAsSoonAsItWakesUp(t *testing.T) {
	server := scripted.Start(t)
	frozenAfter(server, 1, time.Minute)
	clock := sidekeeper.NewSuspendedClock()
	client := dialWith(t, server, sidekeeper.WithSuspendedClock(clock))
	lock, call := hold(t, client, server, sidekeeper.LockOptions{})
	atRisk := make(chan error, 1)
	go func() { atRisk <- lock.AwaitRisk(t.Context(), 30*time.Second) }()
	for set := map[time.Duration]bool{}; len(set) < 3; { // for the end, for the next question and for the risk
		set[receive(t, clock.Alarms)] = true
	}
	woke := time.Now()
	clock.Sleep(time.Hour)
	receive(t, lock.Done())
	call.AwaitGone()
	if err := receive(t, atRisk); err != nil {
		t.Error(err)
	}
	if late := time.Since(woke); late > longestNap+longestDelay {
		t.Errorf("it is told %v after the machine woke up", late)
	}
	if err := lock.Err(); lock.Valid() || !errors.Is(err, sidekeeper.ErrLeaseLost) {
		t.Errorf("valid: %v, lost: %v", lock.Valid(), err)
	}
}

func TestALookAtALockCountsTheTimeInWhichTheMachineWasSuspended(t *testing.T) {
	server := scripted.Start(t)
	frozenAfter(server, 1, time.Minute)
	clock := sidekeeper.NewSuspendedClock()
	client := dialWith(t, server, sidekeeper.WithSuspendedClock(clock))
	lock, _ := hold(t, client, server, sidekeeper.LockOptions{})
	clock.Sleep(time.Minute)
	if lock.Valid() {
		t.Errorf("it is valid for %v", lock.ValidFor())
	}
}

func TestACoarseClockCostsItsCoarseness(t *testing.T) {
	server := scripted.Start(t)
	client := dialWith(t, server, sidekeeper.WithClock(&sidekeeper.FakeClock{Coarse: time.Second}))
	lock, _ := hold(t, client, server, sidekeeper.LockOptions{})
	if left := lock.ValidFor(); left != scripted.Validity-time.Second {
		t.Errorf("valid for %v of %v", left, scripted.Validity)
	}
}

// Nobody has told of the end when the caller looks: the clock rings no alarm.
func TestWhatIsNotValidAnyMoreSaysWhy(t *testing.T) {
	server := scripted.Start(t)
	clock := &sidekeeper.FakeClock{}
	client := dialWith(t, server, sidekeeper.WithClock(clock))
	lock, _ := hold(t, client, server, sidekeeper.LockOptions{})
	membership, _, _ := join(t, client, server, sidekeeper.JoinOptions{})
	clock.Jump(scripted.Validity)
	for _, claim := range []interface {
		Err() error
		ValidFor() time.Duration
		Done() <-chan struct{}
	}{lock, membership} {
		if err := claim.Err(); !errors.Is(err, sidekeeper.ErrLost) || !errors.Is(err, sidekeeper.ErrLeaseLost) {
			t.Errorf("%T is valid for %v, and lost because of %v", claim, claim.ValidFor(), err)
		}
		receive(t, claim.Done())
	}
	if context.Cause(lock.Context()) != lock.Err() {
		t.Error(context.Cause(lock.Context()))
	}
}
