package service_test

import (
	"context"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	membershipv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/membership/v1"
	"github.com/sidekeeper/sidekeeper/internal/journal"
	"github.com/sidekeeper/sidekeeper/recipes"
	"github.com/sidekeeper/sidekeeper/service"
	"github.com/sidekeeper/sidekeeper/test/support/standin"
)

// The ids that a caller knows from the process before.
const (
	earlierLease = "0123456789abcdef0123456789abcdef"
	earlierHold  = "fedcba9876543210fedcba9876543210"
)

var orders = recipes.Lock{Path: "/locks/orders"}

// A returning is a sidecar that was started again, and a lock that one of its callers holds on a lease of the process before.
type returning struct {
	*carrying
	path    string // of its place
	token   int64
	comes   gate        // closed when the session is about to be come back to
	mayCome gate        // closed when it may be
	mayHave gate        // closed when its place may be had
	ignored chan string // places that bound the validity no longer
}

// A gate is closed once, whoever closes it.
type gate struct {
	closed chan struct{}
	close  func()
}

func newGate() gate {
	closed := make(chan struct{})
	return gate{closed, sync.OnceFunc(func() { close(closed) })}
}

// newReturning has the lock held, or awaited behind another, and answers who comes back at once, unless it is hesitant.
func newReturning(t *testing.T, hesitant, behind bool) *returning {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "state")
	before, err := journal.Open(dir, "/", zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	r := &returning{comes: newGate(), mayCome: newGate(), mayHave: newGate(), ignored: make(chan string, 1)}
	record := journal.Record{
		Identity: "uid:" + uid(), Session: recipes.SessionKey{ID: 1, Password: make([]byte, 16), Timeout: 30 * time.Second},
	}
	if err := before.Write(service.Digest(earlierLease), record); err != nil {
		t.Fatal(err)
	}
	_ = before.Close()
	kept, err := journal.Open(dir, "/", zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = kept.Close() })
	s := newScene(t, func(o *service.Options) { // with a tick that lets sessions be long
		o.TickTime, o.Resumption = 2*time.Second, &service.Resumption{Journal: kept, Reattach: r.reattach}
	})
	t.Cleanup(r.mayCome.close)
	t.Cleanup(r.mayHave.close)
	if !hesitant {
		r.mayCome.close()
		r.mayHave.close()
	}
	r.carrying = s.carry(s.callers)
	r.session = s.ensemble.OpenSession(30 * time.Second)
	if behind {
		_, err = s.ensemble.OpenSession(30*time.Second).Enqueue(t.Context(), orders.Path, "-lock-", nil)
		s.must(err)
	}
	place, err := r.session.Enqueue(t.Context(), orders.Path, "-lock-", []byte(`{"sidekeeper":1,"request":1}`))
	s.must(err)
	r.path, r.token = orders.Path+"/"+place.Name, place.Czxid
	return r
}

// A hesitant session lets nobody have what it owns before it is said that he may.
type hesitant struct {
	*standin.Session
	of *returning
}

// Adopt implements recipes.Adopter.
func (h hesitant) Adopt(standing recipes.Standing, named bool) (*recipes.Signal, error) {
	<-h.of.mayHave.closed
	return h.Session.Adopt(standing, named)
}

// Disregard implements recipes.Session.
func (h hesitant) Disregard(place string) { h.of.ignored <- place }

func (r *returning) reattach(ctx context.Context, _ recipes.SessionKey) (service.ReturnedSession, []recipes.Standing, error) {
	r.comes.close()
	<-r.mayCome.closed
	var standing []recipes.Standing
	if node, err := r.session.Get(ctx, r.path); err == nil {
		standing = []recipes.Standing{{Path: r.path, Node: node}}
	}
	return hesitant{r.session, r}, standing, nil
}

// comesBack has the caller resume the lease and claim to hold the lock, by its name or another.
func (r *returning) comesBack(name string) {
	r.t.Helper()
	start := &leasev1.Start{RequestId: 1, Request: &leasev1.Start_Acquire{Acquire: &lockv1.AcquireRequest{Name: name}}}
	r.claims(&leasev1.Claim{Start: start, HoldId: earlierHold, Token: r.token})
}

func (r *returning) claims(claim *leasev1.Claim) {
	r.send(&leasev1.MultiplexRequest{Request: &leasev1.MultiplexRequest_Resume{
		Resume: &leasev1.Resume{LeaseId: earlierLease, Claims: []*leasev1.Claim{claim}},
	}})
}

// breaks has somebody ask for the end of the hold while no sidecar answers for it.
func (r *returning) breaks() {
	r.t.Helper()
	started := make(chan struct{})
	after := time.Minute
	ctx, cancel := context.WithCancel(r.context())
	r.t.Cleanup(cancel)
	go func() {
		close(started)
		_, _ = orders.Break(ctx, r.ensemble, r.token, "uid:0", "", recipes.ForceAfter{After: &after})
	}()
	<-started
	for {
		node, changed, err := r.session.Watch(r.context(), r.path)
		r.must(err)
		if strings.Contains(string(node.Data), "break") {
			return
		}
		<-changed.Done()
	}
}

func (r *returning) released(hold string) string {
	_, err := r.Release(r.context(), &lockv1.ReleaseRequest{HoldId: hold})
	return outcome(err)
}

// keepsItsPlace fails if its place goes by itself.
func (r *returning) keepsItsPlace() {
	r.t.Helper()
	_, changed, err := r.session.Watch(r.context(), r.path)
	if err == nil {
		select {
		case <-changed.Done():
		case <-time.After(200 * time.Millisecond):
			return
		}
	}
	r.t.Error("its place is gone before its end is acknowledged")
}

func TestWhoComesBackIsAnsweredByItsOldIDs(t *testing.T) {
	t.Parallel()
	r := newReturning(t, false, false)
	r.comesBack("orders")
	r.sees("opened", "1 granted")
	same(t, "Check", r.checked(r.callers, earlierHold), "held")
	same(t, "Check of the lease", r.checkedLease(earlierLease), "OK")
	same(t, "Release", r.released(earlierHold), "OK")
	same(t, "contenders", r.contenders("orders"), 0)
}

// Its place is kept for a caller that may count on it, until it says by the only id that it knows that it does not.
func TestAClaimThatIsNotHeldAgainEndsAsAHold(t *testing.T) {
	t.Parallel()
	r := newReturning(t, false, false)
	r.breaks()
	r.comesBack("orders")
	r.sees("opened", "1 ended 10 LOCK_BROKEN")
	r.keepsItsPlace()
	same(t, "Check", r.checked(r.callers, earlierHold), "LOCK_BROKEN")
	same(t, "Release", r.released(earlierHold), "Aborted LOCK_BROKEN")
	same(t, "contenders", r.contenders("orders"), 0)
}

func TestAMemberThatWasRemovedWhileItsSidecarWasAwayIsToldSo(t *testing.T) {
	t.Parallel()
	r := newReturning(t, false, false)
	join := &membershipv1.JoinRequest{Group: "shop", Member: "a"}
	r.claims(&leasev1.Claim{Start: &leasev1.Start{RequestId: 2, Request: &leasev1.Start_Join{Join: join}}, Token: r.token + 1})
	r.sees("opened", "2 ended 10 MEMBER_REMOVED")
}

// A place that is kept for its caller's sake alone may be asked for by others, and ends nothing else on the lease then.
func TestAPlaceThatIsNotHeldAgainBoundsTheLeaseNoLonger(t *testing.T) {
	t.Parallel()
	r := newReturning(t, false, true)
	r.comesBack("orders")
	r.sees("opened", "1 ended 10 LOCK_BROKEN")
	select {
	case place := <-r.ignored:
		same(t, "the place", place, r.path)
	case <-time.After(20 * time.Second):
		t.Error("its place bounds the lease still")
	}
}

func TestAClaimThatIsRefusedEndsAsAHold(t *testing.T) {
	t.Parallel()
	r := newReturning(t, false, false)
	r.comesBack("no//name")
	r.sees("opened", "1 ended 3 INVALID_FIELD")
	r.keepsItsPlace()
	same(t, "Check", r.checked(r.callers, earlierHold), "INVALID_FIELD")
	same(t, "Release", r.released(earlierHold), "InvalidArgument INVALID_FIELD name")
	same(t, "contenders", r.contenders("orders"), 0)
}

// Who asks for what it has had before sooner than the sidecar knows of it is not told that there is none.
func TestWhoAsksForWhatIsAboutToComeBackIsAnsweredWhenItHas(t *testing.T) {
	t.Parallel()
	r := newReturning(t, true, false)
	unanswered := func(when string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, err := r.Check(ctx, &lockv1.CheckRequest{HoldIds: []string{earlierHold}})
		same(t, "Check "+when, outcome(err), "DeadlineExceeded")
	}
	unanswered("before the lease is resumed")
	r.comesBack("orders")
	unanswered("while the lease is resumed")
	answer := make(chan string, 1)
	go func() { answer <- r.checkedLease(earlierLease) }()
	r.mayCome.close()
	r.sees("opened")
	same(t, "Check of the lease", receive(t, answer), "OK")
	unanswered("before the claim is decided")
	go func() { answer <- r.checked(r.callers, earlierHold) }()
	r.mayHave.close()
	r.sees("1 granted")
	same(t, "Check", receive(t, answer), "held")
	same(t, "Check of another hold", r.checked(r.callers, strings.Repeat("1", 32)), "NotFound HOLD_NOT_FOUND")
}

// What is about to be held again is one of those holds that a sidecar waits for that stops.
func TestASidecarThatStopsLetsItsCallersHoldWhatIsAboutToComeBack(t *testing.T) {
	t.Parallel()
	r := newReturning(t, true, false)
	r.comesBack("orders")
	r.mayCome.close()
	r.sees("opened")
	drained := r.drain(time.Hour)
	<-service.Stopping(r.services)
	r.mayHave.close()
	r.sees("1 granted", "1 asked")
	same(t, "Release", r.released(earlierHold), "OK")
	r.sees("1 ended 0")
	r.must(r.stream.CloseSend())
	r.must(<-drained)
}

// Who comes back while the sidecar begins to stop has what was its own, which is handed over.
func TestASidecarThatStopsDoesNotEndWhatIsComeBackTo(t *testing.T) {
	t.Parallel()
	r := newReturning(t, true, false)
	other := r.hold(r.callers, &lockv1.AcquireRequest{Name: "other"}) // for which the sidecar waits meanwhile
	r.comesBack("orders")
	<-r.comes.closed
	drained := r.drain(time.Hour)
	<-service.Stopping(r.services)
	r.mayCome.close()
	r.mayHave.close()
	r.sees("opened", "1 granted", "1 asked")
	same(t, "Release", r.released(earlierHold), "OK")
	same(t, "Release of the other", r.released(other.hold), "OK")
	r.sees("1 ended 0")
	r.must(r.stream.CloseSend())
	r.must(<-drained)
}
