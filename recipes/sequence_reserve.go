package recipes

import (
	"context"
	"errors"
	"sync"
	"time"
)

// A reserve is numbers that were issued to this sidecar and to none of its callers yet.
type reserve struct {
	mu      sync.Mutex
	blocks  []Numbers // in the order of issue; adjoining ones are joined
	gone    *Signal
	size    int64     // how many to fetch
	fetched time.Time // when it was filled last
	filling bool      // a caller fills it
}

// How many numbers are fetched ahead: about as many as are used in a second.
const (
	firstBlock   = 32
	largestBlock = 1000000
	usedSoon     = time.Second
	usedLate     = 10 * time.Second
)

// NextRelaxed issues count numbers, if possible from the reserve, without asking the ensemble. They are unique, and that
// is all. If low is true the caller must have Refill called, once and soon. Errors as of Next.
func (i *Issuer) NextRelaxed(ctx context.Context, count int64) (numbers Numbers, low bool, err error) {
	if err := i.verify(ctx); err != nil {
		return Numbers{}, false, err
	}
	numbers, low, ok := i.reserve.serve(count)
	switch {
	case ok:
		return numbers, low, nil
	case low:
		numbers, err = i.refill(ctx, count)
	default: // another caller fills it already
		numbers, err = i.Next(ctx, count)
	}
	return numbers, false, err
}

// Refill fetches numbers ahead, for NextRelaxed.
func (i *Issuer) Refill(ctx context.Context) error {
	_, err := i.refill(ctx, 0)
	return err
}

// refill fetches a block together with count numbers, which it returns.
func (i *Issuer) refill(ctx context.Context, count int64) (Numbers, error) {
	defer i.reserve.filled()
	numbers, err := i.Next(ctx, i.reserve.grow()+count)
	if errors.Is(err, ErrExhausted) && count > 0 {
		return i.Next(ctx, count)
	}
	if err != nil {
		return Numbers{}, err
	}
	own, rest := numbers.split(count)
	_, gone, err := i.store.Watch(ctx, i.sequence.Path+"/"+numbers.guard)
	if err == nil {
		i.reserve.keep(rest, gone)
	}
	if count > 0 {
		return own, nil
	}
	return Numbers{}, err
}

// verify drops the reserve of an incarnation that is gone.
func (i *Issuer) verify(ctx context.Context) error {
	guard := i.reserve.doubtful()
	if guard == "" {
		return nil
	}
	_, gone, err := i.store.Watch(ctx, i.sequence.Path+"/"+guard)
	switch {
	case errors.Is(err, ErrNoNode):
		i.reserve.drop(guard)
		return nil
	case err == nil:
		i.reserve.trust(guard, gone)
	}
	return err
}

// serve takes count numbers out. low says that it is the caller's to fill the reserve, which it then must do.
func (r *reserve) serve(count int64) (numbers Numbers, low, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	left := int64(0)
	for _, block := range r.blocks {
		left += block.count()
	}
	for i, block := range r.blocks {
		if block.count() < count {
			continue
		}
		ok = true
		numbers, block = block.split(count)
		r.blocks = r.blocks[i:] // what was too small for one is not kept for others
		r.blocks[0] = block
		if block.count() == 0 {
			r.blocks = r.blocks[1:]
		}
		left -= count
		break
	}
	if !r.filling && (!ok || left < r.size/2) {
		low, r.filling = true, true
	}
	return numbers, low, ok
}

// grow says how many numbers to fetch.
func (r *reserve) grow() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	switch lasted := now.Sub(r.fetched); {
	case r.size == 0:
		r.size = firstBlock
	case lasted < usedSoon:
		r.size = min(2*r.size, largestBlock)
	case lasted > usedLate:
		r.size = max(1, r.size/2)
	}
	r.fetched = now
	return r.size
}

// keep adds a block, behind those that are left of the same incarnation.
func (r *reserve) keep(block Numbers, gone *Signal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := len(r.blocks); n > 0 {
		switch last := &r.blocks[n-1]; {
		case last.Incarnation != block.Incarnation:
			r.blocks = nil
		case last.Last+1 == block.First:
			last.Last, r.gone = block.Last, gone
			return
		}
	}
	r.blocks, r.gone = append(r.blocks, block), gone
}

func (r *reserve) filled() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.filling = false
}

// doubtful returns the guard of the reserve's incarnation if that may be gone.
func (r *reserve) doubtful() (guard string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.blocks) == 0 || !r.gone.IsGiven() {
		return ""
	}
	return r.blocks[len(r.blocks)-1].guard
}

func (r *reserve) drop(guard string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.blocks) > 0 && r.blocks[len(r.blocks)-1].guard == guard {
		r.blocks = nil
	}
}

func (r *reserve) trust(guard string, gone *Signal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.blocks) > 0 && r.blocks[len(r.blocks)-1].guard == guard {
		r.gone = gone
	}
}

// split takes the first count numbers off.
func (n Numbers) split(count int64) (taken, rest Numbers) {
	taken, rest = n, n
	taken.Last = n.First + count - 1
	rest.First = n.First + count
	return taken, rest
}
