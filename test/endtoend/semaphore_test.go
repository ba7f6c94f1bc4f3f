package endtoend

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"golang.org/x/sync/errgroup"

	sidekeeperclient "github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
)

// Callers of several sidecars take permits, one or several, while the semaphore is resized: never are more held than its limit has been.
func TestCallersOfFourSidecarsNeverHoldMorePermitsThanThereAre(t *testing.T) {
	sidecars := quickSidecars(t, 4)
	const callers, turns, limit = 12, 10, 4
	name := fmt.Sprint("permits/", now())
	must(t, sidecars[0].client(t).CreateSemaphore(t.Context(), name, limit))
	var held, most atomic.Int32
	group, ctx := errgroup.WithContext(t.Context())
	for i := range callers {
		client, permits := sidecars[i%len(sidecars)].client(t), 1+i%3
		group.Go(func() error {
			for range turns {
				options := sidekeeperclient.PermitsOptions{Permits: permits}
				err := client.WithPermits(ctx, name, options, func(_ context.Context, taken *sidekeeperclient.Permits) error {
					now := held.Add(int32(permits))
					most.Store(max(most.Load(), now))
					if now > limit {
						return fmt.Errorf("%d permits are held of %d", now, limit)
					}
					<-after(rand.N(5 * time.Millisecond))
					held.Add(int32(-permits))
					if !taken.Valid() {
						return fmt.Errorf("lost meanwhile: %w", taken.Err())
					}
					return nil
				})
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	must(t, group.Wait())
	if most.Load() < 3 {
		t.Errorf("at most %d permits were held at a time", most.Load())
	}
	view, err := sidecars[0].client(t).GetSemaphore(t.Context(), name)
	must(t, err)
	if view.Held != 0 || len(view.Holders)+len(view.Waiters) != 0 {
		t.Errorf("left behind: %+v", view)
	}
}

// Permits, and a place in the queue, survive the death of their sidecar: the same nodes stand there, before and after.
func TestPermitsOutliveTheirSidecar(t *testing.T) {
	e := ensembleOf(t, quickTick)
	with := quick(e)
	other, direct := startSidecar(t, with), connect(t, e)
	begin := resuming(t, with)
	killed := begin()
	killed.awaitReady(t)
	name := fmt.Sprint("semaphore-", now())
	client, rival := killed.client(t), other.client(t)
	must(t, client.CreateSemaphore(t.Context(), name, 3))
	lease, err := client.OpenLease(t.Context(), sidekeeperclient.LeaseOptions{Owner: "resumer"})
	must(t, err)
	resumed, queued := make(chan struct{}, 16), make(chan struct{}, 16)
	held, err := client.AcquirePermits(t.Context(), name, sidekeeperclient.PermitsOptions{
		Permits: 2, Lease: lease, OnResumed: func() { resumed <- struct{}{} },
	})
	must(t, err)
	type turn struct {
		permits *sidekeeperclient.Permits
		err     error
	}
	awaited := make(chan turn, 1)
	go func() {
		permits, err := rival.AcquirePermits(context.Background(), name, sidekeeperclient.PermitsOptions{
			Permits: 2, OnQueued: func(int) { queued <- struct{}{} },
		})
		awaited <- turn{permits, err}
	}()
	await(t, "queued", patient, queued)
	before := permitNodes(t, direct, name)
	killed.kill()
	fresh := begin()
	await(t, "resumed", patient, resumed)
	if then := permitNodes(t, direct, name); !slices.Equal(before, then) || len(then) != 4 {
		t.Errorf("nodes before and after: %q, %q", before, then)
	}
	if !held.Valid() || len(awaited) > 0 {
		t.Errorf("held: %v, granted to another: %d", held.Err(), len(awaited))
	}
	must(t, held.Release(t.Context()))
	got := <-awaited
	must(t, got.err)
	if got.permits.Token() <= held.Token() {
		t.Errorf("token %d after %d", got.permits.Token(), held.Token())
	}
	must(t, got.permits.Release(t.Context()))
	must(t, lease.Close(t.Context()))
	if left := permitNodes(t, direct, name); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	fresh.signal(syscall.SIGTERM)
	if code := fresh.awaitExit(t, patient); code != 0 {
		t.Errorf("the sidecar exits with %d", code)
	}
}

// A number survives the death of its sidecar, and is free as soon as its caller releases it after that.
func TestANumberOutlivesItsSidecar(t *testing.T) {
	with := quick(ensembleOf(t, quickTick))
	other, begin := startSidecar(t, with), resuming(t, with)
	killed := begin()
	killed.awaitReady(t)
	client, rival, name := killed.client(t), other.client(t), fmt.Sprint("numbers-", now())
	must(t, client.CreateSemaphore(t.Context(), name, 3))
	lease, err := client.OpenLease(t.Context(), sidekeeperclient.LeaseOptions{})
	must(t, err)
	resumed := make(chan struct{}, 16)
	held, err := client.AcquirePermits(t.Context(), name, sidekeeperclient.PermitsOptions{
		Numbered: true, Lease: lease, OnResumed: func() { resumed <- struct{}{} },
	})
	must(t, err)
	killed.kill()
	fresh := begin()
	await(t, "resumed", patient, resumed)
	for want := 1; want >= 0; want-- {
		beside, err := rival.AcquirePermits(t.Context(), name, sidekeeperclient.PermitsOptions{Numbered: true})
		must(t, err)
		if beside.Number() != want || held.Number() != 0 {
			t.Errorf("number %d, not %d, beside %d", beside.Number(), want, held.Number())
		}
		must(t, beside.Release(t.Context()))
		if want == 1 {
			must(t, held.Release(t.Context()))
		}
	}
	must(t, lease.Close(t.Context()))
	fresh.signal(syscall.SIGTERM)
	if code := fresh.awaitExit(t, patient); code != 0 {
		t.Errorf("the sidecar exits with %d", code)
	}
}

// permitNodes are the nodes of a semaphore's permits, with what tells them from others of the same name.
func permitNodes(t *testing.T, direct *zk.Conn, name string) (nodes []string) {
	t.Helper()
	directory := path.Join("/sidekeeper/semaphores", name, "leases")
	_, err := direct.Sync(directory)
	must(t, err)
	children, _, err := direct.Children(directory)
	if errors.Is(err, zk.ErrNoNode) {
		return nil
	}
	must(t, err)
	slices.Sort(children)
	for _, child := range children {
		_, stat, err := direct.Get(directory + "/" + child)
		must(t, err)
		nodes = append(nodes, fmt.Sprintf("%s %d %x", child, stat.Czxid, stat.EphemeralOwner))
	}
	return nodes
}
