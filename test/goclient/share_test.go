package goclient

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	assignmentv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/assignment/v1"
	"github.com/sidekeeper/sidekeeper/sidekeepertest"
)

// shared is a sidecar with a set of so many items.
func shared(t *testing.T, count int32) *sidekeepertest.Sidecar {
	t.Helper()
	sidecar := sidekeepertest.Start(t, sidekeepertest.Options{})
	connection, err := grpc.NewClient(sidecar.Address(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	must(t, err)
	t.Cleanup(func() { _ = connection.Close() })
	_, err = assignmentv1.NewAssignmentServiceClient(connection).Define(t.Context(), &assignmentv1.DefineRequest{Set: "orders", Count: count})
	must(t, err)
	return sidecar
}

// A shift is a member that works on items, which a test looks at.
type shift struct {
	t       *testing.T
	floor   *floor
	member  string
	stop    context.CancelCauseFunc
	result  chan error
	stopped chan error // why each handler was stopped
	told    chan error // what OnError was told
	late    chan string
	leave   chan struct{} // for a handler of `late` to end
}

// A floor is where the handlers of all members work.
type floor struct {
	mu      sync.Mutex
	changed chan struct{}
	at      map[string]string // the member that works on each item
}

func (f *floor) enter(t testing.TB, item, member string) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if other, is := f.at[item]; is {
		t.Errorf("%s works on %s, and so does %s", other, item, member)
	}
	f.at[item] = member
	close(f.changed)
	f.changed = make(chan struct{})
}

func (f *floor) leave(item string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.at, item)
	close(f.changed)
	f.changed = make(chan struct{})
}

// of are the items that a member works on.
func (f *floor) of(member string) (items []string, changed <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, item := range slices.Sorted(maps.Keys(f.at)) {
		if f.at[item] == member {
			items = append(items, item)
		}
	}
	return items, f.changed
}

func newFloor() *floor { return &floor{changed: make(chan struct{}), at: map[string]string{}} }

// works has a member share. Work of an item in `late` goes on, when it was stopped, until leave is closed.
func (f *floor) works(t *testing.T, client *sidekeeper.Client, options sidekeeper.ShareOptions, fails func(item string) error) *shift {
	t.Helper()
	ctx, stop := context.WithCancelCause(t.Context())
	s := &shift{
		t: t, floor: f, member: options.Member, stop: stop, result: make(chan error, 1), stopped: make(chan error, 100),
		told: make(chan error, 100), late: make(chan string, 1), leave: make(chan struct{}),
	}
	options.OnError = func(item string, err error) { s.told <- fmt.Errorf("%q: %w", item, err) }
	go func() {
		s.result <- client.Share(ctx, "orders", func(ctx context.Context, item *sidekeeper.Item) error {
			return s.work(ctx, item, fails)
		}, options)
	}()
	t.Cleanup(func() { stop(errors.New("the test is over")) })
	return s
}

func (s *shift) work(ctx context.Context, item *sidekeeper.Item, fails func(string) error) error {
	if item.Set() != "orders" || item.FencingToken() == 0 || !item.Valid() {
		s.t.Errorf("%s of %s: token %d", item.Name(), item.Set(), item.FencingToken())
	}
	s.floor.enter(s.t, item.Name(), s.member)
	defer s.floor.leave(item.Name())
	if err := fails(item.Name()); err != nil {
		return err
	}
	<-ctx.Done()
	s.stopped <- context.Cause(ctx)
	select {
	case s.late <- item.Name(): // one of them is late
		<-s.leave
	default:
	}
	return ctx.Err()
}

// has waits until the member works on so many items.
func (s *shift) has(count int) []string {
	s.t.Helper()
	for late := time.After(patience); ; {
		items, changed := s.floor.of(s.member)
		if len(items) == count {
			return items
		}
		select {
		case <-changed:
		case <-late:
			s.t.Fatalf("%s works on %v, not on %d items", s.member, items, count)
		}
	}
}

func never(string) error { return nil }

func TestMembersShareTheItemsOfASet(t *testing.T) {
	t.Parallel()
	sidecar, floor := shared(t, 4), newFloor()
	plans := make(chan sidekeeper.Assignment, 100)
	one := floor.works(t, sidecar.Client(), sidekeeper.ShareOptions{Member: "one"}, never)
	one.has(4)
	two := floor.works(t, sidecar.Client(), sidekeeper.ShareOptions{
		Member: "two", Drain: true, OnAssigned: func(assigned sidekeeper.Assignment) { plans <- assigned },
	}, never)
	close(two.leave)
	for assigned := (sidekeeper.Assignment{}); len(assigned.Items) != 2; {
		if assigned = receive(t, plans); assigned.Members != 2 || assigned.Total != 4 || assigned.Unassigned != 0 {
			t.Errorf("assigned: %+v", assigned)
		}
	}
	two.has(1) // the other one is late
	for range 2 {
		if why := receive(t, one.stopped); !errors.Is(why, sidekeeper.ErrUnassigned) {
			t.Error(why)
		}
	}
	late := receive(t, one.late)
	view, err := sidecar.Client().Get(t.Context(), "orders/"+late)
	must(t, err)
	if len(view.Holders) != 1 || view.Holders[0].Metadata["member"] != "one" {
		t.Errorf("%s is held by %v", late, view.Holders)
	}
	one.late <- "no other"
	close(one.leave)
	two.has(2)
	one.has(2)

	over := errors.New("it is over")
	two.stop(over)
	if err := receive(t, two.result); !errors.Is(err, over) {
		t.Error(err)
	}
	for range 2 { // drained: the items moved before it left
		if why := receive(t, two.stopped); !errors.Is(why, sidekeeper.ErrUnassigned) {
			t.Error(why)
		}
	}
	one.has(4)
	one.stop(over)
	if err := receive(t, one.result); !errors.Is(err, over) {
		t.Error(err)
	}
	if len(one.told)+len(two.told) > 0 {
		t.Errorf("told of %d errors", len(one.told)+len(two.told))
	}
}

func TestAHandlerBeginsAgain(t *testing.T) {
	t.Parallel()
	sidecar, floor, once := shared(t, 1), newFloor(), sync.Once{}
	one := floor.works(t, sidecar.Client(), sidekeeper.ShareOptions{Member: "one"}, func(string) (err error) {
		once.Do(func() { err = errors.New("out of paper") })
		return err
	})
	one.late <- "none"
	if told := receive(t, one.told); told.Error() != `"0": out of paper` {
		t.Error(told)
	}
	one.has(1)
	_, err := sidecar.Client().Revoke(t.Context(), "orders/0", sidekeeper.RevokeOptions{Reason: "rebalance"})
	must(t, err)
	if why := receive(t, one.stopped); !errors.Is(why, sidekeeper.ErrAskedToRelease) {
		t.Error(why)
	}
	one.has(1)
	must(t, sidecar.ExpireLock(t.Context(), "orders/0"))
	if why := receive(t, one.stopped); !errors.Is(why, sidekeeper.ErrLost) {
		t.Error(why)
	}
	if told := receive(t, one.told); !strings.HasPrefix(told.Error(), `"": `) || !errors.Is(told, sidekeeper.ErrLeaseLost) {
		t.Error(told)
	}
	one.has(1)
	one.stop(nil)
	if err := receive(t, one.result); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if len(one.told) > 0 {
		t.Error(receive(t, one.told))
	}
}

func TestShareEndsWithAnErrorThatTimeDoesNotHeal(t *testing.T) {
	t.Parallel()
	sidecar := shared(t, 1)
	client := sidecar.Client()
	share := func(set string, options sidekeeper.ShareOptions) error {
		return client.Share(t.Context(), set, func(context.Context, *sidekeeper.Item) error { return nil }, options)
	}
	if err := share("none", sidekeeper.ShareOptions{Member: "one"}); !errors.Is(err, sidekeeper.ErrAssignmentNotFound) {
		t.Error(err)
	}
	if err := share("orders", sidekeeper.ShareOptions{Member: "a/b"}); !errors.Is(err, sidekeeper.ErrInvalidField) {
		t.Error(err)
	}
	if err := share("orders", sidekeeper.ShareOptions{Capacity: new(-1)}); !errors.Is(err, sidekeeper.ErrInvalidField) {
		t.Error(err)
	}
	lease, err := client.OpenLease(t.Context(), sidekeeper.LeaseOptions{})
	must(t, err)
	joined := make(chan struct{}, 10)
	ended := make(chan error, 1)
	go func() {
		ended <- share("orders", sidekeeper.ShareOptions{
			Member: "one", Lease: lease, OnAssigned: func(sidekeeper.Assignment) { joined <- struct{}{} },
		})
	}()
	receive(t, joined)
	must(t, lease.Close(t.Context()))
	if err := receive(t, ended); !errors.Is(err, sidekeeper.ErrLeaseClosed) {
		t.Error(err)
	}
	other, err := sidekeeper.Dial(sidecar.Address())
	must(t, err)
	go func() {
		work := func(context.Context, *sidekeeper.Item) error { return nil }
		ended <- other.Share(t.Context(), "orders", work, sidekeeper.ShareOptions{OnAssigned: func(sidekeeper.Assignment) { joined <- struct{}{} }})
	}()
	receive(t, joined)
	must(t, other.Close())
	if err := receive(t, ended); !errors.Is(err, sidekeeper.ErrLost) || !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
