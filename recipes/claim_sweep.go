package recipes

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A ClaimBook is what a sidecar remembers of claims between two looks at them: when each is to be read again. Its zero value is empty. It is for
// one goroutine.
type ClaimBook struct{ claims map[string]bookedClaim }

type bookedClaim struct {
	next time.Time // it is read again then
	ends time.Time // of a claim that is held; otherwise zero

	caller string // see ClaimRequest
}

const (
	// readAgainAfter is for how long a claim is not read whose end is later. It may be broken meanwhile.
	readAgainAfter = time.Hour
	// ClaimEndsSoon is how long before its end a claim is read at each look, to know whether it was extended.
	ClaimEndsSoon = 10 * time.Minute
)

// Ends are the ends of the claims that are held, as they were read.
func (b *ClaimBook) Ends() (ends []time.Time) {
	for _, of := range b.claims {
		if !of.ends.IsZero() {
			ends = append(ends, of.ends)
		}
	}
	return ends
}

// Callers are how many claims each caller has, with those that ended within a day.
func (b *ClaimBook) Callers() map[string]int {
	callers := map[string]int{}
	for _, of := range b.claims {
		if of.caller != "" {
			callers[of.caller]++
		}
	}
	return callers
}

// note notes a claim for which there is nothing to do yet, and when there may be.
func (b *ClaimBook) note(name string, of claimRecord, tolerance time.Duration) (due time.Time) {
	due = of.end().Add(tolerance)
	booked := bookedClaim{next: earlier(due, wall().Add(readAgainAfter)), caller: of.Caller}
	if of.State == claimHeld {
		booked.ends = of.end()
		booked.next = earlier(booked.next, later(wall(), booked.ends.Add(-ClaimEndsSoon)))
	}
	b.claims[name] = booked
	return due
}

// Sweep ends the claims whose time is over, and removes the records of those that ended long ago. It reads the claims that it has not read
// for long, and those whose time may be over, and returns when the next of them is to be read; zero if there is none. One that it cannot end
// keeps it from no other.
func (c Claims) Sweep(ctx context.Context, store Store, book *ClaimBook) (next time.Time, failures error) {
	names, err := childrenNamed(store.Children(ctx, c.Path))
	if err != nil {
		return next, err
	}
	before := book.claims
	book.claims = make(map[string]bookedClaim, len(names))
	var due []claimRecord
	for _, name := range names {
		if of, known := before[name]; known && wall().Before(of.next) {
			book.claims[name] = of
			next = soonest(next, of.next)
			continue
		}
		of, isDue, err := c.look(ctx, store, c.Path+"/"+name)
		switch {
		case errors.Is(err, ErrUnreachable), ctx.Err() != nil:
			book.claims = before
			return next, err
		case errors.Is(err, ErrNoClaim), errors.Is(err, ErrMalformedRecord): // the clock is none
		case err != nil:
			failures = errors.Join(failures, fmt.Errorf("%s/%s: %w", c.Path, name, err))
		case isDue:
			book.claims[name] = bookedClaim{caller: of.Caller} // it may stand for some time yet
			due = append(due, of)
		default:
			next = soonest(next, book.note(name, of, c.Tolerance))
		}
	}
	return next, errors.Join(failures, c.endAll(ctx, store, due))
}

// soonest is the earlier of two times, of which the first may be none.
func soonest(a, b time.Time) time.Time {
	if a.IsZero() {
		return b
	}
	return earlier(a, b)
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// look reads a claim, and says whether there is something to do about it, by this machine's clock: it is over, its place is gone, or it was
// written by a clock that was ahead.
func (c Claims) look(ctx context.Context, store Store, at string) (of claimRecord, due bool, err error) {
	of, err = c.read(ctx, store, at)
	if err != nil || c.isOver(of, wall()) || of.State == claimEnded {
		return of, err == nil && c.isOver(of, wall()), err
	}
	_, _, err = of.place(ctx, store)
	if errors.Is(err, ErrNoNode) {
		return of, true, nil
	}
	return of, c.isAhead(of, wall()), err
}

// isOver says whether the time of a claim is over.
func (c Claims) isOver(of claimRecord, now time.Time) bool {
	return now.After(of.end().Add(c.Tolerance))
}

// isAhead says whether a record was written later than it is now.
func (c Claims) isAhead(of claimRecord, now time.Time) bool {
	return of.begins().After(now.Add(c.Tolerance))
}

// endAll ends claims for which it is time by this machine's clock, if it is by the ensemble's, too.
func (c Claims) endAll(ctx context.Context, store Store, due []claimRecord) (failures error) {
	if len(due) == 0 {
		return nil
	}
	now, _, err := setClock(ctx, store, c.Clock)
	if err != nil {
		return err
	}
	for i := range due {
		of := &due[i]
		err := c.tend(ctx, store, *of, now)
		switch {
		case errors.Is(err, ErrUnreachable), ctx.Err() != nil:
			return err
		case err != nil && again(err) != nil && !errors.Is(err, ErrNoClaim):
			failures = errors.Join(failures, fmt.Errorf("%s: %w", of.path, err))
		}
	}
	return failures
}

// tend does about one claim what it is time for.
func (c Claims) tend(ctx context.Context, store Store, of claimRecord, now time.Time) error {
	at, place, err := "", Node{}, ErrNoNode
	if of.State != claimEnded {
		at, place, err = of.place(ctx, store)
	}
	over := c.isOver(of, now) && c.isOver(of, wall())
	switch {
	case errors.Is(err, ErrNoNode) && (over || of.State != claimEnded):
		return c.endPlaceless(ctx, store, of)
	case errors.Is(err, ErrNoNode):
		return nil
	case err != nil:
		return err
	case over:
		err = of.finish(ctx, store, at, false)
		if err == nil && of.State == claimHeld && c.Expired != nil {
			c.Expired(of.Lock, place.Czxid)
		}
		return err
	case c.isAhead(of, now) && c.isAhead(of, wall()):
		return c.writeAnew(ctx, store, of, at)
	}
	return nil
}

// writeAnew has a claim count from now on that was written by a clock which was ahead, or it would block its lock for as long.
func (c Claims) writeAnew(ctx context.Context, store Store, of claimRecord, at string) error {
	of.Said, of.Least = wall(), earlier(of.Least, wall().Add(MaxClaimSpan))
	_, err := store.Commit(ctx, Check(at, -1), Set(of.path, of.encode(), of.version))
	return err
}

// endPlaceless ends a claim whose place is gone. So there is no place whose removal could be named: of two machines that find the same, one
// removes the record. The other has seen an older version of the clock's node. ErrNoClaim or ErrBadVersion if the record is another by now.
func (c Claims) endPlaceless(ctx context.Context, store Store, of claimRecord) (err error) {
	for range maxAttempts { // others set the clock, too
		var version int32
		if _, version, err = setClock(ctx, store, c.Clock); err != nil {
			return err
		}
		if err := store.CatchUp(ctx); err != nil {
			return unsent(err)
		}
		var found claimRecord
		if found, err = c.read(ctx, store, of.path); err != nil {
			return err
		}
		if found.version != of.version || found.Place != of.Place {
			return ErrBadVersion
		}
		if _, err = store.Commit(ctx, Set(c.Clock, []byte{}, version), of.final(false)); err == nil || again(err) != nil {
			return err
		}
	}
	return err
}
