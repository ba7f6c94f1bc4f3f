package endtoend

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	membershipv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/membership/v1"
)

func (s *sidecar) groups() membershipv1.MembershipServiceClient {
	return membershipv1.NewMembershipServiceClient(s.connection)
}

// attend is a member for as long as the process lives: it says `joined INCARNATION`.
func (o callerOrder) attend(ctx context.Context) error {
	connection, err := grpc.NewClient(o.Address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	stream, err := membershipv1.NewMembershipServiceClient(connection).Join(ctx, &membershipv1.JoinRequest{
		Group: o.Group, Member: o.Owner,
	})
	for err == nil {
		var event *membershipv1.JoinResponse
		if event, err = stream.Recv(); event.GetJoined() != nil {
			fmt.Println("joined", event.GetJoined().GetIncarnation())
		}
	}
	return err
}

// A census is who is in a group, as the test itself knows, and what its watchers were told.
type census struct {
	group string

	mu      sync.Mutex
	present map[string]int64 // incarnations by name
	ended   map[int64]moment // when a membership was over: its stream ended, or the test ended it
	losses  []string         // memberships that ended without the test's doing
	left    []departure      // what watchers were told
	wrong   []string         // messages that do not follow from those before
	doomed  map[int64]bool   // what the test is ending
}

// A departure is a watcher being told that somebody has left.
type departure struct {
	incarnation int64
	at          moment
}

func newCensus(group string) *census {
	return &census{group: group, present: map[string]int64{}, ended: map[int64]moment{}, doomed: map[int64]bool{}}
}

func (c *census) joined(name string, incarnation int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.present[name] = incarnation
}

// doom says that the test ends these members now.
func (c *census) doom(h *host) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range h.names {
		incarnation := c.present[name]
		c.doomed[incarnation], c.ended[incarnation] = true, now()
		delete(c.present, name)
	}
}

// over says that a member's stream has ended.
func (c *census) over(name string, incarnation int64, err error) {
	at := now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.doomed[incarnation] {
		return
	}
	c.ended[incarnation] = at
	c.losses = append(c.losses, fmt.Sprint(name, " ", told(err)))
	delete(c.present, name)
}

func (c *census) now() map[string]int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.present)
}

// verify fails the test if a watcher was told a member gone whose membership was not over, or anything that does not
// follow from what it was told before.
func (c *census) verify(t *testing.T) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, d := range c.left {
		ended, over := c.ended[d.incarnation]
		if !over || ended.since(d.at) > 100*time.Millisecond { // the streams' ends are read by other goroutines
			t.Errorf("%d was told to be gone while it was there", d.incarnation)
		}
	}
	for _, wrong := range c.wrong {
		t.Error(wrong)
	}
	for _, loss := range c.losses {
		t.Errorf("lost, though a quorum and the sidecar lived: %s", loss)
	}
}

// A host is a connection with one lease and some members on it.
type host struct {
	names      []string
	connection *grpc.ClientConn
	cancel     context.CancelFunc
	following  sync.WaitGroup
}

// start joins with all the host's names; a name that its last incarnation still has is waited for.
func (c *census) start(t *testing.T, s *sidecar, names []string) *host {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	h := &host{names: names, connection: dial(t, s.address()), cancel: cancel}
	t.Cleanup(h.stop)
	lease, err := leasev1.NewLeaseServiceClient(h.connection).Open(ctx, &leasev1.OpenRequest{})
	must(t, err)
	opened, err := lease.Recv()
	must(t, err)
	for _, name := range names {
		c.enlist(ctx, t, h, name, opened.GetOpened().GetLeaseId())
	}
	return h
}

func (c *census) enlist(ctx context.Context, t *testing.T, h *host, name, lease string) {
	t.Helper()
	stream, err := membershipv1.NewMembershipServiceClient(h.connection).Join(ctx, &membershipv1.JoinRequest{
		Group: c.group, Member: name, LeaseId: lease, OnConflict: membershipv1.OnConflict_ON_CONFLICT_WAIT,
	})
	must(t, err)
	event, err := stream.Recv()
	must(t, err)
	incarnation := event.GetJoined().GetIncarnation()
	c.joined(name, incarnation)
	h.following.Go(func() {
		for {
			if _, err := stream.Recv(); err != nil {
				c.over(name, incarnation, err)
				return
			}
		}
	})
}

// cut closes the host's connection, as the death of its process would.
func (c *census) cut(h *host) {
	c.doom(h)
	_ = h.connection.Close()
	h.stop()
}

func (h *host) stop() {
	h.cancel()
	h.following.Wait()
}

// A watcher follows the group through one sidecar and checks that each message follows from the one before.
type watcher struct {
	census *census
	cancel context.CancelFunc
	over   chan struct{}

	mu      sync.Mutex
	seen    map[string]int64
	stale   bool
	changed chan struct{}
}

func (c *census) watch(t *testing.T, s *sidecar) *watcher {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	w := &watcher{census: c, cancel: cancel, over: make(chan struct{}), stale: true, changed: make(chan struct{})}
	stream, err := s.groups().Watch(ctx, &membershipv1.WatchRequest{Group: c.group})
	must(t, err)
	go func() {
		defer close(w.over)
		for {
			response, err := stream.Recv()
			if err != nil {
				return
			}
			w.take(response)
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-w.over
	})
	return w
}

func (w *watcher) take(response *membershipv1.WatchResponse) {
	at := now()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.census.mu.Lock()
	defer w.census.mu.Unlock()
	before := maps.Clone(w.seen)
	if before == nil {
		before = map[string]int64{}
	}
	for _, left := range response.GetLeft() {
		if before[left.GetMember()] != left.GetIncarnation() {
			w.census.wrong = append(w.census.wrong, fmt.Sprintf("%v left that was not there", left))
		}
		delete(before, left.GetMember())
		w.census.left = append(w.census.left, departure{left.GetIncarnation(), at})
	}
	for _, joined := range response.GetJoined() {
		before[joined.GetMember()] = joined.GetIncarnation()
	}
	w.seen = map[string]int64{}
	for _, member := range response.GetView().GetMembers() {
		w.seen[member.GetMember()] = member.GetIncarnation()
	}
	if !maps.Equal(before, w.seen) {
		w.census.wrong = append(w.census.wrong, fmt.Sprintf("%v does not follow from what was told", response))
	}
	w.stale = response.GetStale()
	close(w.changed)
	w.changed = make(chan struct{})
}

// converge returns when the watcher sees exactly who is there.
func (w *watcher) converge(t *testing.T, what string) {
	t.Helper()
	timer := time.NewTimer(patient)
	defer timer.Stop()
	for {
		truth := w.census.now()
		w.mu.Lock()
		right, changed := !w.stale && maps.Equal(w.seen, truth), w.changed
		w.mu.Unlock()
		if right {
			return
		}
		select {
		case <-changed:
		case <-w.over:
			t.Fatalf("%s: a watch has ended", what)
		case <-timer.C:
			t.Fatalf("%s: a watcher sees %d members and not these %d", what, len(w.seen), len(truth))
		}
	}
}
