package endtoend

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	sidekeeperclient "github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	"github.com/sidekeeper/sidekeeper/test/support/ensemble"
)

var (
	strictNumbers  = flag.Int("strict", 3_000, "how many numbers to take in order while connections are cut")
	relaxedNumbers = flag.Int("relaxed", 50_000, "how many numbers to take in any order while sidecars are killed")
)

// A taking is the numbers that one call has got, with when it was made and answered.
type taking struct {
	asked, answered moment
	first, last     int64
}

// A berth is where callers find a sidecar; it may be another one each time.
type berth struct {
	client  atomic.Pointer[sidekeeperclient.Client]
	sidecar *sidecar
}

// settle puts a new sidecar into the berth.
func (b *berth) settle(t *testing.T, with setup) {
	t.Helper()
	b.sidecar = startSidecar(t, with)
	b.client.Store(b.sidecar.client(t))
}

// A harvest is what callers of several sidecars take from one sequence.
type harvest struct {
	name    string
	berths  []*berth
	wanted  int64
	taken   atomic.Int64
	retries atomic.Int64
	count   func(*rand.Rand) int32
	from    func(*sidekeeperclient.Client) *sidekeeperclient.Sequence
}

const harvesters = 64

// newHarvest starts four sidecars and makes a sequence.
func newHarvest(t *testing.T, e *ensemble.Ensemble, wanted int) *harvest {
	t.Helper()
	h := &harvest{wanted: int64(wanted)}
	for range 4 {
		b := &berth{}
		b.settle(t, quick(e))
		h.berths = append(h.berths, b)
	}
	h.name = sequenceFor(t, h.berths[0].sidecar)
	return h
}

// reap has callers take numbers until there are as many as wanted, and returns what each call got.
func (h *harvest) reap(ctx context.Context, t *testing.T) []taking {
	t.Helper()
	var group sync.WaitGroup
	baskets := make([][]taking, harvesters)
	for i := range harvesters {
		group.Go(func() {
			random := rand.New(rand.NewPCG(uint64(i), 7))
			for h.taken.Load() < h.wanted && ctx.Err() == nil {
				got, err := h.take(ctx, h.berths[i%len(h.berths)], h.count(random))
				switch {
				case err == nil:
					baskets[i] = append(baskets[i], got)
					h.taken.Add(got.last - got.first + 1)
				case isAway(err):
					h.retries.Add(1)
					<-after(10 * time.Millisecond)
				default:
					t.Errorf("caller %d: %v", i, err)
					return
				}
			}
		})
	}
	group.Wait()
	return slices.Concat(baskets...)
}

func (h *harvest) take(ctx context.Context, at *berth, count int32) (taking, error) {
	got := taking{asked: now()}
	numbers, err := h.from(at.client.Load()).NextRange(ctx, count)
	got.answered, got.first, got.last = now(), numbers.First, numbers.Last
	return got, err
}

// isAway says whether a call failed for want of a sidecar or an ensemble.
func isAway(err error) bool {
	var told *sidekeeperclient.Error
	return errors.Is(err, sidekeeperclient.ErrEnsembleUnreachable) ||
		errors.As(err, &told) && told.Reason == "" && told.Code == codes.Unavailable
}

// unique fails if a number was handed out twice.
func unique(t *testing.T, takings []taking) {
	t.Helper()
	slices.SortFunc(takings, func(a, b taking) int { return cmp.Compare(a.first, b.first) })
	for i := 1; i < len(takings); i++ {
		if takings[i].first <= takings[i-1].last {
			t.Fatalf("handed out twice: %+v and %+v", takings[i-1], takings[i])
		}
	}
}

// inOrder fails if numbers are smaller than some that had been returned before they were asked for.
func inOrder(t *testing.T, takings []taking) {
	t.Helper()
	byAnswer := slices.Clone(takings)
	slices.SortFunc(byAnswer, func(a, b taking) int { return cmp.Compare(a.answered, b.answered) })
	slices.SortFunc(takings, func(a, b taking) int { return cmp.Compare(a.asked, b.asked) })
	var largest taking
	next := 0
	for _, own := range takings {
		for ; next < len(byAnswer) && byAnswer[next].answered < own.asked; next++ {
			if byAnswer[next].last > largest.last {
				largest = byAnswer[next]
			}
		}
		if largest.last >= own.first {
			t.Fatalf("%+v was asked for after %+v had been returned", own, largest)
		}
	}
}

// meanwhile does something again and again until the function it returns is called, which says how often.
func meanwhile(every time.Duration, do func(*rand.Rand)) (stop func() int) {
	over, ended, times := make(chan struct{}), make(chan struct{}), 0
	random := rand.New(rand.NewPCG(*seed, 9))
	go func() {
		defer close(ended)
		for {
			select {
			case <-over:
				return
			case <-after(every/2 + time.Duration(random.Int64N(int64(every)))):
				do(random)
				times++
			}
		}
	}()
	return func() int {
		close(over)
		<-ended
		return times
	}
}

// cutSomething cuts connections of sidecars: all of a server's, or the next that writes, before or after the write.
func cutSomething(e *ensemble.Ensemble) func(*rand.Rand) {
	return func(random *rand.Rand) {
		way := e.Servers()[random.IntN(len(e.Servers()))].ClientLink()
		switch random.IntN(3) {
		case 0:
			way.Reset()
		case 1:
			way.CutReply(isMulti, 1)
		case 2:
			way.CutRequest(isMulti, 1)
		}
	}
}

func TestStrictNumbersOfFourSidecarsAreUniqueAndInOrderThoughConnectionsAreCut(t *testing.T) {
	e := ensembleOf(t, quickTick)
	h := newHarvest(t, e, *strictNumbers)
	h.count = func(*rand.Rand) int32 { return 1 }
	h.from = func(c *sidekeeperclient.Client) *sidekeeperclient.Sequence { return c.Sequence(h.name) }
	began := time.Now()
	stop := meanwhile(time.Second, cutSomething(e))
	takings := h.reap(t.Context(), t)
	cuts, took := stop(), time.Since(began)
	unique(t, takings)
	inOrder(t, takings)
	t.Logf("%d numbers by %d callers of 4 sidecars in %v, %.0f a second; %d cuts, %d calls repeated; %d numbers skipped",
		h.taken.Load(), harvesters, took, float64(h.taken.Load())/took.Seconds(), cuts, h.retries.Load(), skipped(takings))
}

func TestRelaxedNumbersAreUniqueThoughSidecarsAreKilled(t *testing.T) {
	e := ensembleOf(t, quickTick)
	h := newHarvest(t, e, *relaxedNumbers)
	h.count = func(random *rand.Rand) int32 { return 1 + random.Int32N(20) }
	h.from = func(c *sidekeeperclient.Client) *sidekeeperclient.Sequence { return c.Sequence(h.name).Relaxed() }
	began := time.Now()
	done := make(chan []taking, 1)
	go func() { done <- h.reap(t.Context(), t) }()
	kills, share := int64(0), max(int64(*relaxedNumbers)/mostKills, leastBetweenKills)
	for random := rand.New(rand.NewPCG(*seed, 8)); ; {
		select {
		case takings := <-done:
			took := time.Since(began)
			unique(t, takings)
			t.Logf("%d numbers by %d callers of 4 sidecars in %v, %.0f a second; %d sidecars killed, %d calls repeated; %d numbers lost",
				h.taken.Load(), harvesters, took, float64(h.taken.Load())/took.Seconds(), kills, h.retries.Load(), skipped(takings))
			if kills == 0 {
				t.Error("no sidecar was killed: too few numbers")
			}
			return
		case <-after(time.Millisecond):
			if h.taken.Load() < (kills+1)*share {
				continue
			}
			victim := h.berths[random.IntN(len(h.berths))]
			victim.sidecar.kill()
			victim.settle(t, quick(e))
			kills++
		}
	}
}

// A sidecar is killed each time that so many numbers have been handed out.
const (
	leastBetweenKills = 15000
	mostKills         = 100
)

// skipped counts the numbers between those that were handed out.
func skipped(takings []taking) int64 {
	count, last := int64(0), int64(0)
	for _, taken := range takings {
		count += taken.last - taken.first + 1
		last = max(last, taken.last)
	}
	return last - count
}
