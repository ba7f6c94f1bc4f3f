package budget

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sidekeeper/sidekeeper/service"
	"github.com/sidekeeper/sidekeeper/test/support/bubble"
)

func readsOf(first int) *reads { return newReads(first, newSum(math.MaxInt)) }

const largeValue = 1_000_000

// readers reads so many values of one size, all at once, and returns how many were under way at a time, and how many refused.
func readers(t *testing.T, r *reads, m Memory, number, size int) (most, refused int) {
	t.Helper()
	var all sync.WaitGroup
	var now, peak, denied atomic.Int32
	for range number {
		all.Go(func() {
			err := r.do(t.Context(), m, func() (int, error) {
				peak.Store(max(peak.Load(), now.Add(1)))
				time.Sleep(time.Millisecond)
				now.Add(-1)
				return size, nil
			})
			if service.ReasonOf(err) == "MEMORY_LIMIT" {
				denied.Add(1)
			} else {
				same(t, "read", err, nil)
			}
		})
	}
	all.Wait()
	return int(peak.Load()), int(denied.Load())
}

func TestACallerThatReadsLargeValuesReadsFewAtOnce(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		r, unlimited := readsOf(256<<10), NewMemory(0)
		at := func(what string, size, want int) {
			t.Helper()
			most, _ := readers(t, r, unlimited, 200, size)
			same(t, what, most, want)
		}
		at("before one is known", 100, 16)
		at("of small ones", 100, 64)
		at("of large ones, the first of which are taken for small", largeValue, 64)
		at("of large ones", largeValue, 4)
		at("of small ones that are taken for large", 100, 4)
		at("of small ones again", 100, 64)
		most, _ := readers(t, readsOf(256<<10), unlimited, 3000, largeValue)
		same(t, "of a crowd that comes at once", most, 16)
		most, _ = readers(t, readsOf(1<<20), unlimited, 100, largeValue)
		same(t, "pages, from the first on", most, 4)
	})
}

func TestALargeValueIsNotReadForWhichThereIsNoMemory(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		r, full := readsOf(256<<10), NewMemory(1)
		full.inUse = func() int { return largeValue }
		_, refused := readers(t, r, full, 1, largeValue)
		same(t, "refused before one is known", refused, 0)
		_, refused = readers(t, r, full, 100, largeValue)
		same(t, "refused of 100", refused, 97) // and each 32nd tried
		_, refused = readers(t, r, full, 1000, 100)
		if refused > 200 {
			t.Errorf("of 1,000 small values %d were refused", refused)
		}
		_, refused = readers(t, readsOf(256<<10), full, 100, 100)
		same(t, "refused of small ones", refused, 0)
	})
}

func TestWhoWaitsForItsTurnToReadCanGo(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		r := readsOf(256 << 10)
		r.usual = mostRead
		_, leave, err := r.turn(t.Context())
		same(t, "the first", err, nil)
		ctx, cancel := context.WithCancel(t.Context())
		gone := make(chan error, 1)
		go func() {
			_, _, err := r.turn(ctx)
			gone <- err
		}()
		synctest.Wait()
		cancel()
		same(t, "who goes", <-gone, context.Canceled)
		leave()
		_, leave, err = r.turn(t.Context())
		same(t, "the next", err, nil)
		leave()
	})
}
