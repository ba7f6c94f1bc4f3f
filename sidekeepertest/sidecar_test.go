package sidekeepertest_test

import (
	"errors"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	"github.com/sidekeeper/sidekeeper/sidekeepertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 20 * time.Second

func TestASidecarLeavesNothingBehind(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	sidecar := start(t, sidekeepertest.Options{})
	lock := acquire(t, sidecar, "orders", sidekeeper.LockOptions{})
	began := time.Now()
	must(t, sidecar.Close())
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("it took %v to close", took)
	}
	await(t, "the end of the lock", lock.Done())
	if err := lock.Err(); !errors.Is(err, sidekeeper.ErrSidecarStopping) {
		t.Errorf("the lock ended with %v", err)
	}
	must(t, sidecar.Close())
}

func TestSidecarsDoNotMeet(t *testing.T) {
	t.Parallel()
	first, second := start(t, sidekeepertest.Options{}), start(t, sidekeepertest.Options{})
	acquire(t, first, "orders", sidekeeper.LockOptions{})
	acquire(t, second, "orders", sidekeeper.LockOptions{})
	if first.EnsembleAddress() == second.EnsembleAddress() {
		t.Error("two sidecars share an ensemble")
	}
}

func TestALeaseCanBeExpiredInThreeWays(t *testing.T) {
	t.Parallel()
	sidecar := start(t, sidekeepertest.Options{})
	lease, err := sidecar.Client().OpenLease(t.Context(), sidekeeper.LeaseOptions{})
	must(t, err)
	t.Cleanup(func() { _ = lease.Close(t.Context()) })
	held := acquire(t, sidecar, "with-a-lease", sidekeeper.LockOptions{Lease: lease})
	alone := acquire(t, sidecar, "alone", sidekeeper.LockOptions{})
	other := acquire(t, sidecar, "other", sidekeeper.LockOptions{})

	must(t, sidecar.ExpireLease(t.Context(), lease.ID()))
	expectLost(t, held)
	await(t, "the end of the lease", lease.Done())

	must(t, sidecar.ExpireLock(t.Context(), "alone"))
	expectLost(t, alone)
	if !other.Valid() {
		t.Error("a lease was lost that nobody expired")
	}

	expired, err := sidecar.ExpireAll(t.Context())
	must(t, err)
	expectLost(t, other)
	if expired != 1 {
		t.Errorf("%d leases expired, want the one that was left", expired)
	}
	if err := sidecar.ExpireLock(t.Context(), "other"); err == nil {
		t.Error("a lock was expired that nobody holds")
	}
}

func TestASilenceSuspendsAndEnds(t *testing.T) {
	t.Parallel()
	sidecar := start(t, sidekeepertest.Options{})
	suspended, resumed := make(chan struct{}, 100), make(chan struct{}, 100)
	lock := acquire(t, sidecar, "orders", sidekeeper.LockOptions{
		OnSuspended: func(time.Duration) { suspended <- struct{}{} },
		OnResumed:   func() { resumed <- struct{}{} },
	})
	sidecar.Suspend(time.Hour)
	await(t, "suspended", suspended)
	sidecar.Suspend(0)
	await(t, "resumed", resumed)
	if !lock.Valid() {
		t.Errorf("the lock was lost: %v", lock.Err())
	}
}

func TestASilenceThatLastsLosesTheLock(t *testing.T) {
	t.Parallel()
	sidecar := start(t, sidekeepertest.Options{SessionTimeout: 3 * time.Second})
	lock := acquire(t, sidecar, "orders", sidekeeper.LockOptions{})
	sidecar.Suspend(time.Hour)
	expectLost(t, lock)
}

func TestGrantsCanBeLate(t *testing.T) {
	t.Parallel()
	const delay = 300 * time.Millisecond
	sidecar := start(t, sidekeepertest.Options{GrantDelay: delay})
	began := time.Now()
	acquire(t, sidecar, "orders", sidekeeper.LockOptions{})
	if took := time.Since(began); took < delay {
		t.Errorf("granted after %v, before %v", took, delay)
	}
	sidecar.DelayGrants(time.Hour)
	wait := 100 * time.Millisecond
	_, err := sidecar.Client().Acquire(t.Context(), "late", sidekeeper.LockOptions{Wait: &wait})
	if !errors.Is(err, sidekeeper.ErrWaitTimeout) {
		t.Errorf("a grant that is an hour late gave %v", err)
	}
}

func start(t *testing.T, options sidekeepertest.Options) *sidekeepertest.Sidecar {
	t.Helper()
	return sidekeepertest.Start(t, options)
}

func acquire(t *testing.T, sidecar *sidekeepertest.Sidecar, name string, options sidekeeper.LockOptions) *sidekeeper.Lock {
	t.Helper()
	lock, err := sidecar.Client().Acquire(t.Context(), name, options)
	must(t, err)
	t.Cleanup(func() { _ = lock.Release(t.Context()) }) // what it says is another test's business
	return lock
}

func expectLost(t *testing.T, lock *sidekeeper.Lock) {
	t.Helper()
	await(t, "the end of the lock", lock.Done())
	if err := lock.Err(); !errors.Is(err, sidekeeper.ErrLost) || !errors.Is(err, sidekeeper.ErrLeaseLost) {
		t.Errorf("the lock ended with %v", err)
	}
}

func await(t *testing.T, what string, happened <-chan struct{}) {
	t.Helper()
	select {
	case <-happened:
	case <-time.After(patience):
		t.Fatalf("%s has not come", what)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
