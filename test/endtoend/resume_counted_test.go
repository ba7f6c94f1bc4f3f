package endtoend

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
)

// A returning is a caller of a sidecar that is killed and started again, and the rival that waits for its lock at another sidecar.
type returning struct {
	begin  func() *sidecar
	killed *sidecar
	lease  *carrier
	id     string
	name   string
	start  *leasev1.Start
	held   *lockv1.Granted
	rival  *contender
}

// newReturning has a caller hold a lock by a request that is adjusted.
func newReturning(t *testing.T, with setup, other *sidecar, adjust func(*lockv1.AcquireRequest), flags ...string) *returning {
	t.Helper()
	r := &returning{begin: resuming(t, with, flags...), name: fmt.Sprint("returning/", now())}
	r.killed = r.begin()
	r.killed.awaitReady(t)
	r.lease, r.id = r.killed.carries(t)
	asked := &lockv1.AcquireRequest{Name: r.name}
	adjust(asked)
	r.start = &leasev1.Start{RequestId: 1, Request: &leasev1.Start_Acquire{Acquire: asked}}
	must(t, r.lease.stream.Send(&leasev1.MultiplexRequest{Request: &leasev1.MultiplexRequest_Start{Start: r.start}}))
	r.held = r.lease.granted(t, 1)
	r.rival = other.acquire(t, r.name)
	r.rival.queued(t)
	return r
}

// comesBack starts the sidecar again and resumes the lease.
func (r *returning) comesBack(t *testing.T) (*sidecar, *carrier) {
	t.Helper()
	fresh := restarted(t, r.killed, r.begin)
	back := fresh.resumes(t, r.id, heldClaim(r.start, r.held))
	return fresh, back
}

func asAsked(*lockv1.AcquireRequest) {}

// Who asked the killed sidecar about a hold, over a connection of its own, counts on the answer. So the place is kept until that is over,
// whatever becomes of the hold after the restart.
func TestWhoWasToldOfAHoldBeforeARestartIsWaitedForAfterIt(t *testing.T) {
	e := ensembleOf(t, quickTick)
	with := quick(e)
	with.timeout = 6 * time.Second
	other := startSidecar(t, with)

	t.Run("of a hold on the lease's stream", func(t *testing.T) {
		r := newReturning(t, with, other, asAsked)
		second := lockv1.NewLockServiceClient(dial(t, r.killed.address()))
		checked, err := second.Check(t.Context(), &lockv1.CheckRequest{HoldIds: []string{r.held.GetHoldId()}})
		must(t, err)
		sure := now().add(checked.GetHolds()[0].GetValidFor().AsDuration())
		_, back := r.comesBack(t)
		back.granted(t, 1)
		must(t, back.stream.CloseSend())
		if granted := r.rival.granted(t).at; granted < sure {
			t.Errorf("granted %v before the second caller ceased to be sure", sure.since(granted))
		}
	})
	t.Run("of a hold by a call of its own on the lease", func(t *testing.T) {
		r := newReturning(t, with, other, asAsked)
		acquire := &lockv1.AcquireRequest{Name: r.name + "/own", LeaseId: r.id}
		stream, err := lockv1.NewLockServiceClient(dial(t, r.killed.address())).Acquire(t.Context(), acquire)
		must(t, err)
		granted, err := stream.Recv()
		must(t, err)
		checked, err := lockv1.NewLockServiceClient(dial(t, r.killed.address())).Check(t.Context(),
			&lockv1.CheckRequest{HoldIds: []string{granted.GetGranted().GetHoldId()}})
		must(t, err)
		sure := now().add(checked.GetHolds()[0].GetValidFor().AsDuration())
		rival := other.acquire(t, r.name+"/own")
		rival.queued(t)
		_, back := r.comesBack(t)
		back.granted(t, 1)
		must(t, back.stream.CloseSend())
		if granted := rival.granted(t).at; granted < sure {
			t.Errorf("granted %v before the second caller ceased to be sure", sure.since(granted))
		}
	})
	t.Run("of a lease whose hold is denied", func(t *testing.T) {
		policy := filepath.Join(t.TempDir(), "policy.yaml")
		rule := "rules: [{identities: ['*'], methods: ['sidekeeper.lease.v1.LeaseService/*', 'sidekeeper.lock.v1.LockService/*']%s}]\n"
		must(t, os.WriteFile(policy, fmt.Appendf(nil, rule, ""), 0o600))
		r := newReturning(t, with, other, asAsked, "--policy="+policy)
		must(t, os.WriteFile(policy, fmt.Appendf(nil, rule, ", prefixes: [elsewhere]"), 0o600))
		_, back := r.comesBack(t)
		same(t, "the end of the request", back.ended(t, 1), "POLICY_DENIED")
		must(t, back.stream.Send(checkValidity(7)))
		valid := back.checked(t, 7)
		r.rival.granted(t) // and does not wait for ever
		if valid <= 0 {
			t.Errorf("the lease itself is valid for %v", valid)
		}
	})
}

// Who held a lock does not wait for it, whatever it asked for at first.
func TestAShortWaitDoesNotEndAHoldThatComesBack(t *testing.T) {
	e := ensembleOf(t, quickTick)
	with := quick(e)
	r := newReturning(t, with, startSidecar(t, with), func(asked *lockv1.AcquireRequest) { asked.WaitTimeout = durationpb.New(2 * time.Second) })
	r.start.GetAcquire().WaitTimeout = durationpb.New(time.Nanosecond) // what is left of it
	_, back := r.comesBack(t)
	again := back.granted(t, 1)
	same(t, "the hold", again.GetHoldId(), r.held.GetHoldId())
}

// Who stood there before the restart is not refused for those who wait.
func TestWhoComesBackIsNoWaiterTooMany(t *testing.T) {
	e := ensembleOf(t, quickTick)
	with := quick(e)
	r := newReturning(t, with, startSidecar(t, with), asAsked, "--max-waiters=1")
	second, id := r.killed.carries(t)
	waits := second.start(t, 1, r.name)
	second.queued(t, 1)
	fresh := restarted(t, r.killed, r.begin)
	behind := fresh.resumes(t, id, &leasev1.Claim{Start: waits})
	behind.queued(t, 1)
	back := fresh.resumes(t, r.id, heldClaim(r.start, r.held))
	same(t, "the hold", back.granted(t, 1).GetHoldId(), r.held.GetHoldId())
}

// The caller of a hold that was broken while its sidecar was away is told so before anything on which it could count for it.
func TestACallerIsToldWhatItHasLostBeforeItIsToldOfItsLease(t *testing.T) {
	e := ensembleOf(t, quickTick)
	with := quick(e)
	other := startSidecar(t, with)
	r := newReturning(t, with, other, asAsked)
	r.killed.kill()
	go func() {
		_, _ = other.operators.Break(t.Context(), &lockv1.BreakRequest{
			Name: r.name, FencingToken: r.held.GetFencingToken(), Reason: "stuck", ForceAfter: durationpb.New(time.Minute),
		})
	}()
	await(t, "the mark", patient, after(300*time.Millisecond))
	fresh := r.begin()
	fresh.awaitReady(t)
	back := fresh.resumes(t, r.id, heldClaim(r.start, r.held))
	must(t, back.stream.Send(checkValidity(3)))
	back.checked(t, 3)
	var order []string
	for _, message := range back.messages.all() {
		switch {
		case message.what.GetChecked() != nil:
			order = append(order, "checked")
		case message.what.GetEnded() != nil:
			order = append(order, message.what.GetEnded().GetReason())
		}
	}
	same(t, "what it was told", strings.Join(order, " "), "LOCK_BROKEN checked")
}

// Who lets go when it is asked to hears that its lock is gone, also from a sidecar that hands over and has nothing else to wait for.
func TestTheLastReleaseIsAnsweredBeforeASidecarHandsOver(t *testing.T) {
	e := ensembleOf(t, quickTick)
	for range 4 {
		leaving := resuming(t, quick(e), "--sigterm=handover", "--drain-timeout=5s")()
		leaving.awaitReady(t)
		asked := leaving.acquire(t, fmt.Sprint("asked/", now()))
		asked.granted(t)
		leaving.signal(syscall.SIGTERM)
		asked.asked(t)
		asked.release(t)
		if code := leaving.awaitExit(t, patient); code != 0 {
			t.Errorf("the sidecar exits with %d", code)
		}
	}
}

func checkValidity(id uint64) *leasev1.MultiplexRequest {
	return &leasev1.MultiplexRequest{Request: &leasev1.MultiplexRequest_Check{Check: &leasev1.CheckValidity{CheckId: id}}}
}

// checked is for how long the lease is valid, as the answer to a question says.
func (c *carrier) checked(t *testing.T, id uint64) time.Duration {
	t.Helper()
	return c.messages.await(t, "checked", patient, func(m *leasev1.MultiplexResponse) bool {
		return m.GetChecked().GetCheckId() == id
	}).what.GetChecked().GetValidFor().AsDuration()
}
