package endtoend

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"google.golang.org/protobuf/types/known/durationpb"

	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
)

// A carrier is a lease's stream of bare stubs.
type carrier struct {
	stream   leasev1.LeaseService_MultiplexClient
	messages *record[*leasev1.MultiplexResponse]
	finished chan struct{} // closed when the stream has ended
	end      string        // then: how
}

// multiplexed begins a lease's stream with a message.
func (s *sidecar) multiplexed(t *testing.T, first *leasev1.MultiplexRequest) *carrier {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	stream, err := s.leases.Multiplex(ctx)
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	c := &carrier{stream: stream, messages: newRecord[*leasev1.MultiplexResponse](), finished: make(chan struct{})}
	go func() {
		defer close(c.finished)
		for {
			message, err := stream.Recv()
			if err != nil {
				c.end = told(err)
				c.messages.end()
				return
			}
			c.messages.add(message)
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-c.finished
	})
	_ = stream.Send(first) // its end says why
	return c
}

// carries opens a lease that can be resumed.
func (s *sidecar) carries(t *testing.T) (c *carrier, id string) {
	t.Helper()
	c = s.multiplexed(t, &leasev1.MultiplexRequest{Request: &leasev1.MultiplexRequest_Open{Open: &leasev1.OpenRequest{}}})
	opened := c.opened(t)
	if !opened.GetResumable() {
		t.Fatal("the lease cannot be resumed")
	}
	return c, opened.GetLeaseId()
}

func (c *carrier) opened(t *testing.T) *leasev1.Opened {
	t.Helper()
	return c.messages.await(t, "opened", patient, func(m *leasev1.MultiplexResponse) bool { return m.GetOpened() != nil }).what.GetOpened()
}

// start asks for a lock.
func (c *carrier) start(t *testing.T, id uint64, name string) *leasev1.Start {
	t.Helper()
	start := &leasev1.Start{RequestId: id, Request: &leasev1.Start_Acquire{Acquire: &lockv1.AcquireRequest{Name: name}}}
	must(t, c.stream.Send(&leasev1.MultiplexRequest{Request: &leasev1.MultiplexRequest_Start{Start: start}}))
	return start
}

func (c *carrier) stop(t *testing.T, id uint64) {
	t.Helper()
	must(t, c.stream.Send(&leasev1.MultiplexRequest{Request: &leasev1.MultiplexRequest_Stop{Stop: &leasev1.Stop{RequestId: id}}}))
}

func (c *carrier) granted(t *testing.T, id uint64) *lockv1.Granted {
	t.Helper()
	return c.messages.await(t, "granted", patient, func(m *leasev1.MultiplexResponse) bool {
		return m.GetEvent().GetRequestId() == id && m.GetEvent().GetAcquire().GetGranted() != nil
	}).what.GetEvent().GetAcquire().GetGranted()
}

func (c *carrier) queued(t *testing.T, id uint64) {
	t.Helper()
	c.messages.await(t, "queued", patient, func(m *leasev1.MultiplexResponse) bool {
		return m.GetEvent().GetRequestId() == id && m.GetEvent().GetAcquire().GetQueued() != nil
	})
}

// ended is how a request has ended.
func (c *carrier) ended(t *testing.T, id uint64) string {
	t.Helper()
	return c.messages.await(t, "ended", patient, func(m *leasev1.MultiplexResponse) bool {
		return m.GetEnded().GetRequestId() == id
	}).what.GetEnded().GetReason()
}

// resumes comes back to a lease.
func (s *sidecar) resumes(t *testing.T, id string, claims ...*leasev1.Claim) *carrier {
	t.Helper()
	resume := &leasev1.Resume{LeaseId: id, Claims: claims}
	return s.multiplexed(t, &leasev1.MultiplexRequest{Request: &leasev1.MultiplexRequest_Resume{Resume: resume}})
}

// endsWith waits for the stream's end.
func (c *carrier) endsWith(t *testing.T, want string) {
	t.Helper()
	await(t, "the end of the stream", patient, c.finished)
	same(t, "the stream's end", c.end, want)
}

func same(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %q, not %q", what, got, want)
	}
}

func heldClaim(start *leasev1.Start, granted *lockv1.Granted) *leasev1.Claim {
	return &leasev1.Claim{Start: start, HoldId: granted.GetHoldId(), Token: granted.GetFencingToken()}
}

// restarted kills a sidecar that keeps its state, and returns the one that comes after it.
func restarted(t *testing.T, killed *sidecar, begin func() *sidecar) *sidecar {
	t.Helper()
	killed.kill()
	fresh := begin()
	fresh.awaitReady(t)
	return fresh
}

func TestWhoComesBackGetsWhatIsItsOwnAndNothingElse(t *testing.T) {
	e := ensembleOf(t, quickTick)
	with := quick(e)
	other, direct := startSidecar(t, with), connect(t, e)
	begin := resuming(t, with)
	killed := begin()
	killed.awaitReady(t)
	name := fmt.Sprint("resume/bare-", now())
	lease, id := killed.carries(t)
	kept, let, waits := lease.start(t, 1, name+"-kept"), lease.start(t, 2, name+"-let"), lease.start(t, 3, name+"-waits")
	held := lease.granted(t, 1)
	lease.granted(t, 2)
	waited := lease.granted(t, 3)
	ahead := other.acquire(t, name+"-ahead")
	ahead.granted(t)
	behind := lease.start(t, 4, name+"-ahead")
	lease.queued(t, 4)
	own := placeOf(t, direct, name+"-ahead")
	rivalLet, rivalKept := other.acquire(t, let.GetAcquire().GetName()), other.acquire(t, name+"-kept")
	rivalLet.queued(t)
	rivalKept.queued(t)

	fresh := restarted(t, killed, begin)
	fresh.resumes(t, strings.Repeat("0", 32)).endsWith(t, "NotFound LEASE_NOT_FOUND")
	fresh.resumes(t, "x").endsWith(t, "InvalidArgument INVALID_FIELD")
	fresh.resumes(t, id, heldClaim(kept, held), heldClaim(kept, held)).endsWith(t, "InvalidArgument INVALID_FIELD")
	fresh.resumes(t, id, &leasev1.Claim{}).endsWith(t, "InvalidArgument INVALID_FIELD")
	back := fresh.resumes(t, id,
		heldClaim(kept, held),
		&leasev1.Claim{Start: waits, HoldId: waited.GetHoldId(), Token: waited.GetFencingToken() + 1}, // which it was never granted
		&leasev1.Claim{Start: behind, HoldId: strings.Repeat("a", 32), Token: own},                    // which waits
	)
	if opened := back.opened(t); opened.GetLeaseId() != id || !opened.GetResumable() {
		t.Errorf("opened with %v", opened)
	}
	if again := back.granted(t, 1); again.GetHoldId() != held.GetHoldId() || again.GetFencingToken() != held.GetFencingToken() {
		t.Errorf("held %v, and after the restart %v", held, again)
	}
	entry := fmt.Sprintf(`"event":"resumption","caller":"uid:%d","kind":"lock","name":"%s-kept","fencing_token":%d,"lease":`,
		os.Getuid(), name, held.GetFencingToken())
	for found, until := false, time.Now().Add(10*time.Second); !found; <-time.After(time.Millisecond) { // it comes a little after the message
		log, err := os.ReadFile(filepath.Join(fresh.folder, "log"))
		must(t, err)
		if found = strings.Contains(string(log), entry); !found && time.Now().After(until) {
			t.Fatalf("the audit log does not tell %s", entry)
		}
	}
	for _, lie := range []uint64{3, 4} {
		same(t, "the end of the request", back.ended(t, lie), "LOCK_BROKEN")
	}
	rivalLet.granted(t)
	fresh.resumes(t, id).endsWith(t, "NotFound LEASE_NOT_FOUND") // it is in use
	checked, err := fresh.locks.Check(t.Context(), &lockv1.CheckRequest{HoldIds: []string{held.GetHoldId()}})
	must(t, err)
	if validity := checked.GetHolds()[0].GetValidFor().AsDuration(); validity <= 0 {
		t.Errorf("valid for %v", validity)
	}
	more := back.start(t, 5, name+"-more")
	back.granted(t, more.GetRequestId())

	last := restarted(t, fresh, begin) // and once more
	back = last.resumes(t, id, heldClaim(kept, held))
	back.granted(t, 1)
	back.stop(t, 1)
	same(t, "the end of the request", back.ended(t, 1), "")
	rivalKept.granted(t)
	must(t, back.stream.CloseSend())
	back.endsWith(t, "OK")
	gone := restarted(t, last, begin)
	gone.resumes(t, id).endsWith(t, "NotFound LEASE_NOT_FOUND")
}

// placeOf is the czxid of the newest place in a lock's queue.
func placeOf(t *testing.T, direct *zk.Conn, name string) (newest int64) {
	t.Helper()
	_, err := direct.Sync(directory(name))
	must(t, err)
	children, _, err := direct.Children(directory(name))
	must(t, err)
	for _, child := range children {
		_, stat, err := direct.Get(directory(name) + "/" + child)
		must(t, err)
		newest = max(newest, stat.Czxid)
	}
	return newest
}

// A hold whose end was asked for while its sidecar was away ends when it is back, and is kept until its caller knows.
func TestAHoldThatIsBrokenWhileItsSidecarIsAwayEndsWhenItIsBack(t *testing.T) {
	e := ensembleOf(t, quickTick)
	with := quick(e)
	other := startSidecar(t, with)
	begin := resuming(t, with)
	killed := begin()
	killed.awaitReady(t)
	name := fmt.Sprint("resume/broken-", now())
	lease, id := killed.carries(t)
	start := lease.start(t, 1, name)
	held := lease.granted(t, 1)
	rival := other.acquire(t, name)
	rival.queued(t)
	killed.kill()
	broken := make(chan error, 1)
	go func() {
		_, err := other.operators.Break(context.Background(), &lockv1.BreakRequest{
			Name: name, FencingToken: held.GetFencingToken(), Reason: "stuck", ForceAfter: durationpb.New(time.Minute),
		})
		broken <- err
	}()
	await(t, "the mark", patient, after(300*time.Millisecond))
	fresh := begin()
	fresh.awaitReady(t)
	back := fresh.resumes(t, id, heldClaim(start, held))
	same(t, "the end of the request", back.ended(t, 1), "LOCK_BROKEN")
	await(t, "a moment", patient, after(500*time.Millisecond))
	if _, granted, _ := rival.events.find(isGranted); granted {
		t.Error("granted before the holder has acknowledged the end of its hold")
	}
	back.stop(t, 1)
	known := now()
	t.Logf("granted %v after the holder has acknowledged it", rival.granted(t).at.since(known))
	must(t, <-broken)
}

// What nobody comes back to goes with the sessions.
func TestWhatNobodyComesBackToGoes(t *testing.T) {
	e := ensembleOf(t, quickTick)
	with := quick(e)
	with.timeout = 2 * time.Second
	other := startSidecar(t, with)
	begin := resuming(t, with)
	killed := begin()
	killed.awaitReady(t)
	name := fmt.Sprint("resume/late-", now())
	lease, id := killed.carries(t)
	start := lease.start(t, 1, name)
	held := lease.granted(t, 1)
	rival := other.acquire(t, name)
	rival.queued(t)
	fresh := restarted(t, killed, begin)
	dead := now()
	t.Logf("granted %v after the restart", rival.granted(t).at.since(dead))
	back := fresh.resumes(t, id, heldClaim(start, held))
	await(t, "the end of the stream", patient, back.finished)
	if back.end != "NotFound LEASE_NOT_FOUND" && back.end != "Aborted LEASE_LOST" {
		t.Errorf("whoever comes back too late is told %s", back.end)
	}
}

// A process that is only frozen has its state directory still.
func TestNoSecondProcessComesBackToTheLeasesOfOneThatLives(t *testing.T) {
	e := ensembleOf(t, quickTick)
	with := quick(e)
	begin := resuming(t, with)
	frozen := begin()
	frozen.awaitReady(t)
	lease, _ := frozen.carries(t)
	start := lease.start(t, 1, fmt.Sprint("resume/frozen-", now()))
	lease.granted(t, start.GetRequestId())
	frozen.freeze()
	defer frozen.thaw()
	with.flags = append(with.flags, frozen.command.Args[len(frozen.command.Args)-1])
	second := (&sidecar{folder: t.TempDir()}).serving(t, with)
	output, err := second.CombinedOutput()
	if failed, is := err.(*exec.ExitError); !is || failed.ExitCode() != 64 || !strings.Contains(string(output), "another process has it") {
		t.Errorf("a second process: %v: %s", err, output)
	}
}

// Whoever comes back pays nothing again: a pace that the policy sets costs no lock.
func TestWhoComesBackIsNotHeldUpByItsPace(t *testing.T) {
	e := ensembleOf(t, quickTick)
	with := quick(e)
	policy := filepath.Join(t.TempDir(), "policy.yaml")
	rules := "rules: [{identities: ['*'], methods: ['sidekeeper.lease.v1.LeaseService/*', 'sidekeeper.lock.v1.LockService/*']}]\n" +
		"limits: [{identities: ['*'], writes_per_second: 2}]\n"
	must(t, os.WriteFile(policy, []byte(rules), 0o600))
	begin := resuming(t, with, "--policy="+policy)
	killed := begin()
	killed.awaitReady(t)
	lease, id := killed.carries(t)
	name := fmt.Sprint("resume/paced-", now())
	var claims []*leasev1.Claim
	for number := uint64(1); number <= 7; number++ { // four are the work of two seconds
		start := lease.start(t, number, fmt.Sprint(name, "-", number))
		claims = append(claims, heldClaim(start, lease.granted(t, number)))
		await(t, "half a second", patient, after(500*time.Millisecond))
	}
	back := restarted(t, killed, begin).resumes(t, id, claims...)
	for number := uint64(1); number <= 7; number++ {
		back.granted(t, number)
	}
}
