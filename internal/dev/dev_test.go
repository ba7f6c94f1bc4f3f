package dev

import (
	"context"
	"errors"
	"net"
	"os"
	"strconv"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	devv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/dev/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
)

func TestAnExpiredLeaseEndsItsStreamBeforeTheNextIsGranted(t *testing.T) {
	s := serve(t, Options{})
	first := s.acquire("orders")
	first.sees("granted")
	second := s.acquire("orders")
	second.sees("queued")

	response, err := s.dev.ExpireLease(s.context(), &devv1.ExpireLeaseRequest{Leases: &devv1.ExpireLeaseRequest_Lock{Lock: "orders"}})
	must(t, err)
	if response.GetExpired() != 1 {
		t.Errorf("%d leases expired, want the holder's", response.GetExpired())
	}
	first.sees("Aborted LEASE_LOST")
	second.sees("granted")
	if second.token <= first.token {
		t.Errorf("token %d after %d", second.token, first.token)
	}
}

// While the services have not let go of the lease, the next one waits: however long the holder takes to be told.
func TestWhatAnExpiredLeaseOwnsStaysUntilItsCallersAreTold(t *testing.T) {
	s := serve(t, Options{})
	held := s.acquire("orders")
	held.sees("granted")
	owned := s.memory.Names(root + "/locks/orders")
	opened, err := ensemble{s.client, s.faults}.Open(s.context(), SessionTimeout)
	must(t, err)
	made, err := opened.Enqueue(t.Context(), root+"/locks/other", "lock-", nil)
	name := made.Name
	must(t, err)
	s.faults.Expire(opened)
	<-opened.Done()
	if names := s.memory.Names(root + "/locks/other"); len(names) != 1 || names[0] != name {
		t.Errorf("before Close: %v, want %s", names, name)
	}
	opened.Close(t.Context())
	if names := s.memory.Names(root + "/locks/other"); len(names) != 0 {
		t.Errorf("after Close: %v", names)
	}
	if names := s.memory.Names(root + "/locks/orders"); len(names) != 1 || names[0] != owned[0] {
		t.Errorf("another lease's place: %v, want %v", names, owned)
	}
}

func TestASilenceIsToldAsOne(t *testing.T) {
	t.Parallel()
	s := serve(t, Options{})
	held := s.acquire("orders")
	held.sees("granted")
	_, err := s.dev.Suspend(s.context(), &devv1.SuspendRequest{Duration: durationpb.New(2 * time.Second)})
	must(t, err)
	held.sees("suspended", "resumed")
}

func TestASilenceThatOutlastsTheValidityLosesTheLock(t *testing.T) {
	t.Parallel()
	s := serve(t, Options{SessionTimeout: 3 * time.Second})
	held := s.acquire("orders")
	held.sees("granted")
	_, err := s.dev.Suspend(s.context(), &devv1.SuspendRequest{Duration: durationpb.New(time.Hour)})
	must(t, err)
	held.sees("suspended", "Aborted LEASE_LOST")
}

func TestADelayedGrantComesLater(t *testing.T) {
	t.Parallel()
	s := serve(t, Options{})
	const delay = 300 * time.Millisecond
	_, err := s.dev.DelayGrants(s.context(), &devv1.DelayGrantsRequest{Delay: durationpb.New(delay)})
	must(t, err)
	began := time.Now()
	s.acquire("orders").sees("granted")
	if took := time.Since(began); took < delay {
		t.Errorf("granted after %v", took)
	}
	_, err = s.dev.DelayGrants(s.context(), &devv1.DelayGrantsRequest{Delay: durationpb.New(0)})
	must(t, err)
	s.acquire("invoices").sees("granted")
}

func TestFaultsOfTheCommandLineHappen(t *testing.T) {
	t.Parallel()
	faults, err := ParseFaults([]string{"expire-lease=2s", "delay-grants=100ms"})
	must(t, err)
	s := serve(t, Options{Faults: faults})
	began := time.Now()
	held := s.acquire("orders")
	held.sees("granted", "Aborted LEASE_LOST")
	if took := time.Since(began); took < faults.ExpireAfter {
		t.Errorf("lost after %v", took)
	}

	faults, err = ParseFaults([]string{"suspend=2s/2500ms"})
	must(t, err)
	held = serve(t, Options{Faults: faults}).acquire("orders")
	held.sees("granted", "suspended")
}

func TestFaultsThatCannotBeAreRefused(t *testing.T) {
	for _, word := range []string{
		"", "suspend", "suspend=5s", "suspend=5s/", "suspend=5s/5s", "suspend=0s/5s", "expire-lease", "expire-lease=-1s",
		"delay-grants=soon", "break-everything=1s",
	} {
		if faults, err := ParseFaults([]string{word}); err == nil {
			t.Errorf("%q is read as %+v", word, faults)
		}
	}
}

func TestEveryCallerIsAnOperator(t *testing.T) {
	s := serve(t, Options{})
	held := s.acquire("orders")
	held.sees("granted")
	_, err := s.locks.Break(s.context(), &lockv1.BreakRequest{Name: "orders", FencingToken: held.token, Reason: "stuck"})
	must(t, err)
	held.sees("Aborted LOCK_BROKEN")
}

func TestAnAddressThatIsTakenIsSaidToBe(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer taken.Close()
	_, port, _ := net.SplitHostPort(taken.Addr().String())
	ensemblePort, err := strconv.Atoi(port)
	must(t, err)
	for _, options := range []Options{{Listen: []string{taken.Addr().String()}}, {EnsemblePort: ensemblePort}} {
		if _, err := New(t.Context(), options); !errors.Is(err, ErrTaken) {
			t.Errorf("%+v: %v", options, err)
		}
	}
}

func TestOtherMachinesAreNotServed(t *testing.T) {
	for _, address := range []string{"0.0.0.0:0", ":0", "192.0.2.1:7181", "example.com:7181"} {
		if _, err := New(t.Context(), Options{Listen: []string{address}}); !errors.Is(err, ErrNotLoopback) {
			t.Errorf("%s: %v", address, err)
		}
	}
	if _, err := New(t.Context(), Options{Listen: []string{"nonsense"}}); err == nil || errors.Is(err, ErrNotLoopback) {
		t.Errorf("what is no address: %v", err)
	}
}

func TestOtherMachinesAreServedWhereThatIsAskedFor(t *testing.T) {
	s := serve(t, Options{AnyAddress: true})
	host, _, err := net.SplitHostPort(s.Addresses()[1])
	must(t, err)
	if ip := net.ParseIP(host); !ip.IsUnspecified() {
		t.Errorf("it listens on %s", host)
	}
	s.acquire("orders").sees("granted")
	if _, err := New(t.Context(), Options{AnyAddress: true, MetricsListen: "0.0.0.0:0"}); !errors.Is(err, ErrNotLoopback) {
		t.Errorf("metrics: %v", err)
	}
}

func TestASidecarThatDoesNotServeLeavesNothingBehind(t *testing.T) {
	folder := t.TempDir()
	t.Setenv("TMPDIR", folder)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if unwanted, err := New(ctx, Options{}); err == nil { // the ensemble was reached at once
		must(t, unwanted.Abandon())
	}
	sidecar, err := New(t.Context(), Options{})
	must(t, err)
	must(t, sidecar.Abandon())
	left, err := os.ReadDir(folder)
	must(t, err)
	if len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}
