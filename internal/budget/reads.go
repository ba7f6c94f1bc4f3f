package budget

import (
	"context"
	"slices"
	"sync"

	"github.com/sidekeeper/sidekeeper/internal/methods"
)

// What one caller may have on its way from the ensemble at once.
const (
	mostRead  = 4 << 20  // bytes of values, as far as they can be foreseen
	leastRead = 64 << 10 // what a small one counts
)

// oneReadIn so many is tried though there is no memory for a large value, so that it shows when values have become small.
const oneReadIn = 32

// reads are one caller's. All values come from the ensemble in one line, in which a few large ones keep everybody waiting, so each
// caller has only some there at once. That the next value is as large as the last is what can be foreseen; pages of values have a line of their
// own.
type reads struct {
	first    int // bytes
	mu       sync.Mutex
	usual    int // bytes of the last value, or half of what it was before
	refused  int // reads
	underWay int // bytes
	waiting  []chan int
}

// newLines makes one for each method that answers with values.
func newLines() map[string]*reads {
	lines := map[string]*reads{}
	for method, first := range methods.Reading {
		lines[method] = newReads(first)
	}
	return lines
}

func newReads(first int) *reads { return &reads{first: first, usual: first} }

// do reads a value when it is the caller's turn, unless a large one is foreseen for which there is no memory.
func (r *reads) do(ctx context.Context, memory Memory, value func() (bytes int, err error)) error {
	counted, err := r.enter(ctx)
	if err != nil {
		return err
	}
	size := counted
	defer func() { r.leave(counted, size) }()
	if err := memory.room(counted); err != nil && counted > r.first && !r.tries() {
		return err
	}
	size, err = value()
	return err
}

// tries says whether to read though there is no memory.
func (r *reads) tries() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refused++
	return r.refused%oneReadIn == 0
}

// enter waits for the caller's turn, and says how much it counts.
func (r *reads) enter(ctx context.Context) (counted int, err error) {
	r.mu.Lock()
	turn := make(chan int, 1)
	r.waiting = append(r.waiting, turn)
	r.admit()
	r.mu.Unlock()
	select {
	case counted := <-turn:
		return counted, nil
	case <-ctx.Done():
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if i := slices.Index(r.waiting, turn); i >= 0 {
		r.waiting = slices.Delete(r.waiting, i, i+1)
	} else {
		r.underWay -= <-turn
		r.admit()
	}
	return 0, context.Cause(ctx)
}

// leave ends a turn.
func (r *reads) leave(counted, size int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.usual = max(size, r.usual/2, leastRead)
	r.underWay -= counted
	r.admit()
}

// admit lets in who can be; at least one, however large. It is locked.
func (r *reads) admit() {
	for len(r.waiting) > 0 {
		counted := min(r.usual, mostRead)
		if r.underWay+counted > mostRead {
			return
		}
		r.underWay += counted
		r.waiting[0] <- counted
		r.waiting = r.waiting[1:]
	}
}
