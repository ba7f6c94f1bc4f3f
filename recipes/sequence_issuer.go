package recipes

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Numbers are all from First to Last, both included, of one incarnation of a sequence.
type Numbers struct {
	First, Last int64
	Incarnation int64

	guard string
}

// count is how many they are.
func (n Numbers) count() int64 { return n.Last - n.First + 1 }

// An Issuer hands out the numbers of one sequence to the callers of one sidecar. Make it with NewIssuer.
//
// Callers that wait at the same time share a compare-and-set, and one is under way at a time: the first caller leads, which is
// to carry it out for all in its own goroutine. Callers that come meanwhile take part in the next one, which the first of
// those leads. So a number is larger than all that were handed out before it was asked for, through whichever sidecar.
type Issuer struct {
	sequence Sequence
	store    Store

	queue   queueOfAsks
	reserve reserve

	// Of the caller that leads:
	known   sequenceState // its guard is empty if nothing is known
	current bool          // known is what our last compare-and-set has left
	backoff backoff

	highest *highest
}

// A highest is how far the newest incarnation of a sequence was seen to have come, by whichever of the issuers that share it.
type highest struct {
	mu    sync.Mutex
	count Count
}

func (h *highest) get() Count {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.count
}

func (h *highest) raise(seen Count) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if seen.Incarnation > h.count.Incarnation || seen.Incarnation == h.count.Incarnation && seen.Last > h.count.Last {
		h.count = seen
	}
}

// NewIssuer makes an issuer. It holds nothing that must be given up.
func NewIssuer(sequence Sequence, store Store) *Issuer {
	return &Issuer{sequence: sequence, store: store, highest: new(highest)}
}

// Guarded is an issuer whose numbers are handed out only while all the guards stand (see Guarded). It knows of what i has handed out, and i
// of what it has.
func (i *Issuer) Guarded(guards []Guard) *Issuer {
	return &Issuer{sequence: i.sequence, store: Guarded(i.store, guards), highest: i.highest}
}

// Next issues count numbers, 1 or more. ErrNoSequence, ErrExhausted, ErrMalformed, ErrFell; with every error nothing was handed
// out, and numbers may have been skipped. A reply that was lost is no error: those numbers are skipped.
func (i *Issuer) Next(ctx context.Context, count int64) (Numbers, error) {
	own := &ask{count: count, woken: make(chan struct{}, 1)}
	i.queue.enter(own)
	select {
	case <-own.woken:
	case <-ctx.Done():
		if i.queue.quit(own) {
			return Numbers{}, context.Cause(ctx)
		}
	}
	if !own.answered {
		i.lead(ctx, own)
	}
	return own.numbers, own.err
}

// lead carries out compare-and-sets until own is answered.
func (i *Issuer) lead(ctx context.Context, own *ask) {
	defer i.queue.handOver(own)
	for !own.answered {
		err := i.round(ctx)
		switch {
		case err == nil:
		case ctx.Err() != nil:
			i.queue.refuse(own, context.Cause(ctx))
		case errors.Is(err, ErrUnreachable):
			i.queue.refuseAll(err)
		default:
			i.queue.refuseTaken(err)
		}
	}
}

// round makes one compare-and-set for all that wait. It returns nil even if that has to be done again.
func (i *Issuer) round(ctx context.Context) error {
	if err := i.backoff.await(ctx); err != nil {
		return err
	}
	i.queue.take() // what is read now is their answer too, if it is bad news
	from, err := i.state(ctx)
	if err != nil {
		return err
	}
	last := i.queue.takeFitting(from.last)
	if last == from.last {
		return nil
	}
	began := time.Now()
	i.current = false
	left, err := i.sequence.advance(ctx, i.store, from, last)
	switch {
	case err == nil:
		i.known, i.current = left, true
		i.highest.raise(left.count())
		i.backoff.won(time.Since(began))
		i.queue.answer(from.last+1, left)
	case isOvertaken(err):
		i.backoff.lost(time.Since(began))
		if !errors.Is(err, ErrBadVersion) {
			i.known = sequenceState{}
		}
		return nil
	case errors.Is(err, ErrOutcomeUnknown) && ctx.Err() == nil:
		return pause(ctx, jittered(time.Millisecond))
	}
	return err
}

// state finds out what the next compare-and-set starts from. What refused one has been shown by the refusal, so that the
// node need only be read again; that there are too few numbers, or that they go back, is believed when the tree has caught up.
func (i *Issuer) state(ctx context.Context) (_ sequenceState, err error) {
	if i.current && i.queue.fit(i.known.last) {
		return i.known, nil
	}
	i.current = false
	highest := i.highest.get() // before anything is read, which others may overtake
	if i.known.guard != "" {
		i.known, _, err = i.sequence.reread(ctx, i.store, i.known.guard)
	}
	if i.known.guard == "" {
		i.known, err = i.sequence.know(ctx, i.store)
	}
	if err == nil && (!i.queue.fit(i.known.last) || i.known.fell(highest)) {
		if err = i.store.CatchUp(ctx); err == nil {
			i.known, err = i.sequence.know(ctx, i.store)
		}
	}
	if err == nil && i.known.fell(highest) {
		err = ErrFell
	}
	if err == nil {
		i.highest.raise(i.known.count())
	}
	return i.known, err
}

// fell says that another program has set the sequence back, which cannot be ours: a sidecar that went on from there would hand out again
// what was handed out.
func (s sequenceState) fell(highest Count) bool {
	return s.incarnation == highest.Incarnation && s.last < highest.Last
}
