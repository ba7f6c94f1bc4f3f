package endtoend

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	sidekeeperclient "github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	holdv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/hold/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	"github.com/sidekeeper/sidekeeper/test/support/ensemble"
)

// quick is a setup for the ensemble with the quick tick, whose leases outlive an election on a busy machine.
func quick(e *ensemble.Ensemble) setup {
	return setup{servers: e.ClientAddresses(), tick: quickTick, timeout: 10 * time.Second}
}

// quickSidecars starts some.
func quickSidecars(t *testing.T, count int) (sidecars []*sidecar) {
	t.Helper()
	e := ensembleOf(t, quickTick)
	for range count {
		sidecars = append(sidecars, startSidecar(t, quick(e)))
	}
	return sidecars
}

// A treasure is what a lock guards: a counter that loses steps, and a ledger of tokens, if two work on it at once.
type treasure struct {
	inside  atomic.Int32
	counter atomic.Int64
	tokens  []int64 // guarded by the lock
}

// work is done by a caller that holds the lock.
func (g *treasure) work(lock *sidekeeperclient.Lock) error {
	if others := g.inside.Add(1) - 1; others != 0 {
		return fmt.Errorf("%d others hold the lock", others)
	}
	before := g.counter.Load()
	g.tokens = append(g.tokens, lock.FencingToken())
	<-after(rand.N(2 * time.Millisecond))
	g.counter.Store(before + 1)
	if !lock.Valid() {
		return fmt.Errorf("lost meanwhile: %w", lock.Err())
	}
	g.inside.Add(-1)
	return nil
}

func TestSixteenCallersOfFourSidecarsExcludeEachOther(t *testing.T) {
	sidecars := quickSidecars(t, 4)
	const callers, turns = 16, 12
	guarded := &treasure{}
	group, ctx := errgroup.WithContext(t.Context())
	for i := range callers {
		client := sidecars[i%len(sidecars)].client(t)
		group.Go(func() error {
			for range turns {
				err := client.WithLock(ctx, "exclusion/counter", sidekeeperclient.LockOptions{},
					func(_ context.Context, lock *sidekeeperclient.Lock) error { return guarded.work(lock) })
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	began := time.Now()
	must(t, group.Wait())
	if got := guarded.counter.Load(); got != callers*turns {
		t.Errorf("the counter stands at %d after %d turns", got, callers*turns)
	}
	for i, token := range guarded.tokens[1:] {
		if token <= guarded.tokens[i] {
			t.Errorf("fencing token %d after %d", token, guarded.tokens[i])
		}
	}
	t.Logf("%d turns in %v", callers*turns, time.Since(began))
}

func TestWaitersAreServedInTheOrderTheyCame(t *testing.T) {
	sidecars := quickSidecars(t, 3)
	var line []*contender
	for i := range 10 {
		c := sidecars[i%len(sidecars)].acquire(t, "exclusion/line")
		if i == 0 {
			c.granted(t)
		} else if ahead := c.queued(t); ahead != i {
			t.Errorf("number %d was told that %d are ahead", i, ahead)
		}
		line = append(line, c)
	}
	for i, c := range line {
		c.granted(t)
		for _, later := range line[i+1:] {
			if seen, ok, _ := later.events.find(isGranted); ok {
				t.Fatalf("granted out of turn: %v", seen)
			}
		}
		c.release(t)
		c.awaitEnd(t, "OK")
	}
}

func TestReadersHoldTogetherAndWritersAlone(t *testing.T) {
	sidecars := quickSidecars(t, 2)
	a, b := sidecars[0], sidecars[1]
	const name = "exclusion/book"
	read, write := as(holdv1.Mode_MODE_READ), as(holdv1.Mode_MODE_WRITE)
	one, two := a.acquire(t, name, read), b.acquire(t, name, read)
	one.granted(t)
	two.granted(t)
	writer := a.acquire(t, name, write)
	if ahead := writer.queued(t); ahead != 2 {
		t.Errorf("the writer was told that %d are ahead", ahead)
	}
	three, four := b.acquire(t, name, read), a.acquire(t, name, read)
	three.queued(t)
	four.queued(t)
	expect(t, "FailedPrecondition LOCK_KIND_MISMATCH", b.refused(t, name))

	one.release(t)
	two.cancel()
	succeeds(t, one, writer, "OK")
	succeeds(t, two, writer, "Canceled")
	writer.release(t)
	succeeds(t, writer, three, "OK")
	succeeds(t, writer, four, "OK")
}

// refused asks for a lock and returns how the stream ends.
func (s *sidecar) refused(t *testing.T, name string, adjust ...func(*lockv1.AcquireRequest)) error {
	t.Helper()
	request := &lockv1.AcquireRequest{Name: name}
	for _, a := range adjust {
		a(request)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patient)
	defer cancel()
	stream, err := s.locks.Acquire(ctx, request)
	must(t, err)
	for {
		event, err := stream.Recv()
		if err != nil {
			return err
		}
		if isGranted(event) {
			t.Fatal("granted")
		}
	}
}

// A book that readers share and writers have alone, under random load.
func TestManyReadersAndWritersKeepToTheRule(t *testing.T) {
	sidecars := quickSidecars(t, 3)
	var readers, writers atomic.Int32
	var together atomic.Int32
	group, ctx := errgroup.WithContext(t.Context())
	for i := range 9 {
		client := sidecars[i%len(sidecars)].client(t)
		random := rand.New(rand.NewPCG(uint64(i), 1))
		group.Go(func() error {
			for range 12 {
				mode, own := sidekeeperclient.Read, &readers
				if random.IntN(4) == 0 {
					mode, own = sidekeeperclient.Write, &writers
				}
				err := client.WithLock(ctx, "exclusion/shelf", sidekeeperclient.LockOptions{Mode: mode},
					func(context.Context, *sidekeeperclient.Lock) error {
						own.Add(1)
						defer own.Add(-1)
						<-after(time.Duration(random.IntN(4)) * time.Millisecond)
						reading, writing := readers.Load(), writers.Load()
						together.Store(max(together.Load(), reading))
						if writing > 1 || writing == 1 && reading > 0 {
							return fmt.Errorf("%d readers and %d writers at once", reading, writing)
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
	if together.Load() < 2 {
		t.Error("no two readers ever held it together")
	}
}
