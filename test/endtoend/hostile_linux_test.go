package endtoend

import (
	"context"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"

	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	"github.com/sidekeeper/sidekeeper/test/support/ensemble"
)

var hostility = flag.Duration("hostility", time.Second, "how long each attack of a hostile caller lasts")

// mostMemory is what a sidecar may take, whatever a caller does to it: what the chart gives it.
const mostMemory = 384 << 20

// unraced is a sidecar as it is delivered: what looks for races takes several times the memory.
var unraced = sync.OnceValues(func() (string, error) { return build("unraced", "../../cmd/sidekeeper") })

// guarded is a sidecar with few leases, so that an attack reaches its limit before the ensemble's. They live long: all of
// it, ensemble and attackers, shares one machine, whose processors an attack may well take for seconds.
func guarded(e *ensemble.Ensemble, flags ...string) setup {
	with := quick(e)
	with.program, with.timeout = unraced, 30*time.Second
	with.flags = append([]string{"--max-leases=40", "--log-level=error"}, flags...)
	return with
}

// A caller that does its worst costs the sidecar a bounded amount of memory, ends nothing of another caller's, and leaves
// nothing behind. What it costs the others in time is told, not judged: the machine is shared. Which part of that is the
// machine's shows when the same is done to a sidecar that the others do not use.
func TestAHostileCallerHarmsNobodyElse(t *testing.T) {
	e := ensembleOf(t, quickTick)
	s := startSidecar(t, guarded(e))
	neighbour := startSidecar(t, guarded(e))
	friend := befriend(t, s)
	calm := friend.while(t, func() { <-after(time.Second) })
	base := descriptors(t, s)
	for _, attack := range attacks {
		t.Run(attack.name, func(t *testing.T) {
			while := func(victim *sidecar) latency {
				return friend.while(t, func() {
					ctx, cancel := context.WithTimeout(t.Context(), *hostility)
					defer cancel()
					attack.run(ctx, t, victim)
				})
			}
			elsewhere := while(neighbour)
			forgetPeak(t, s)
			here := while(s)
			peak := statusOf(t, s, "VmHWM:")
			t.Logf("another caller's lock and release: in peace %v, while the sidecar beside its own is attacked %v, while its own is %v; %d MiB",
				calm, elsewhere, here, peak>>20)
			if peak > mostMemory {
				t.Errorf("the sidecar took %d MiB", peak>>20)
			}
			friend.isUnharmed(t)
			awaitQuiet(t, s, base)
		})
	}
}

// A friendly caller has a lease and a lock of its own, and takes another lock again and again.
type friend struct {
	locks lockv1.LockServiceClient
	lease string
	held  *contender
}

func befriend(t *testing.T, s *sidecar) *friend {
	t.Helper()
	f := &friend{locks: lockv1.NewLockServiceClient(dial(t, s.address()))}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	stream, err := s.leases.Open(ctx, &leasev1.OpenRequest{Owner: "friend"})
	must(t, err)
	opened, err := stream.Recv()
	must(t, err)
	f.lease = opened.GetOpened().GetLeaseId()
	f.held = s.acquire(t, "friend/held", func(r *lockv1.AcquireRequest) { r.LeaseId = f.lease })
	f.held.granted(t)
	return f
}

// latency is how long something took.
type latency []time.Duration

func (l latency) String() string {
	if len(l) == 0 {
		return "never done"
	}
	slices.Sort(l)
	at := func(part int) time.Duration { return l[(len(l)-1)*part/100].Round(100 * time.Microsecond) }
	return fmt.Sprintf("p50 %v, p99 %v (%d times)", at(50), at(99), len(l))
}

// while takes and releases a lock again and again while something else is done.
func (f *friend) while(t *testing.T, do func()) latency {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	var times latency
	for {
		began := time.Now()
		must(t, f.takeAndRelease(t.Context()))
		times = append(times, time.Since(began))
		select {
		case <-done:
			return times
		case <-after(5 * time.Millisecond):
		}
	}
}

func (f *friend) takeAndRelease(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patient)
	defer cancel()
	stream, err := f.locks.Acquire(ctx, &lockv1.AcquireRequest{Name: "friend/taken", LeaseId: f.lease})
	if err != nil {
		return err
	}
	for {
		event, err := stream.Recv()
		if err != nil {
			return err
		}
		if granted := event.GetGranted(); granted != nil {
			_, err := f.locks.Release(ctx, &lockv1.ReleaseRequest{HoldId: granted.GetHoldId()})
			return err
		}
	}
}

func (f *friend) isUnharmed(t *testing.T) {
	t.Helper()
	if !f.held.isOpen() {
		t.Fatalf("another caller's hold ended with %s", f.held.end)
	}
	checked, err := f.locks.Check(t.Context(), &lockv1.CheckRequest{HoldIds: []string{f.held.granted(t).id}})
	must(t, err)
	if left := checked.GetHolds()[0].GetValidFor().AsDuration(); left <= 0 {
		t.Errorf("another caller's hold is valid for %v", left)
	}
}

// awaitQuiet returns when the sidecar has no leases but the friend's, and hardly more descriptors than at first.
func awaitQuiet(t *testing.T, s *sidecar, base int) {
	t.Helper()
	overdue := time.NewTimer(patient)
	defer overdue.Stop()
	for {
		open, err := s.leases.List(t.Context(), &leasev1.ListRequest{}, grpc.WaitForReady(true))
		must(t, err)
		now := descriptors(t, s)
		if len(open.GetLeases()) == 1 && now <= base+5 {
			return
		}
		select {
		case <-after(50 * time.Millisecond):
		case <-overdue.C:
			t.Fatalf("%d leases and %d descriptors are left, where there were 1 and %d", len(open.GetLeases()), now, base)
		}
	}
}

func descriptors(t *testing.T, s *sidecar) int {
	t.Helper()
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.command.Process.Pid))
	must(t, err)
	return len(open)
}

// forgetPeak has the kernel count the most memory of a process anew.
func forgetPeak(t *testing.T, s *sidecar) {
	t.Helper()
	must(t, os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", s.command.Process.Pid), []byte("5"), 0))
}

// statusOf is a number of bytes that the kernel tells of a process.
func statusOf(t *testing.T, s *sidecar, line string) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.command.Process.Pid))
	must(t, err)
	_, rest, found := strings.Cut(string(status), line)
	fields := strings.Fields(rest)
	if !found || len(fields) < 2 || fields[1] != "kB" {
		t.Fatalf("no %s in %s", line, status)
	}
	kibibytes, err := strconv.Atoi(fields[0])
	must(t, err)
	return kibibytes << 10
}
