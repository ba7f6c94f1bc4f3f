package recipes

import (
	"context"
	"errors"
	"time"
)

// A ClaimBook is what a sidecar remembers of claims between two looks at them: the earliest time at which each can be over. An extension makes
// that later at most. Its zero value is empty. It is for one goroutine.
type ClaimBook struct{ ends map[string]time.Time }

// Sweep ends the claims whose time is over, and removes the records of those that ended long ago. It reads the claims that it has not read yet
// and those whose time may be over, and returns when the next of them may be; zero if there is none.
func (c Claims) Sweep(ctx context.Context, store Store, book *ClaimBook) (next time.Time, _ error) {
	names, err := childrenNamed(store.Children(ctx, c.Path))
	if err != nil {
		return next, err
	}
	before := book.ends
	book.ends = make(map[string]time.Time, len(names))
	var over []claimRecord
	for _, name := range names {
		if end, known := before[name]; known && wall().Before(end) {
			book.ends[name] = end
			continue
		}
		of, err := c.read(ctx, store, c.Path+"/"+name)
		switch end := of.end().Add(c.Tolerance); {
		case errors.Is(err, ErrNoClaim), errors.Is(err, ErrMalformedRecord): // the clock is none
		case err != nil:
			return next, err
		case !wall().After(end):
			book.ends[name] = end
		default:
			over = append(over, of)
		}
	}
	for _, end := range book.ends {
		if next.IsZero() || end.Before(next) {
			next = end
		}
	}
	return next, c.endAll(ctx, store, over)
}

// endAll ends claims that are over by this machine's clock, if they are by the ensemble's.
func (c Claims) endAll(ctx context.Context, store Store, over []claimRecord) error {
	if len(over) == 0 {
		return nil
	}
	now, _, err := c.now(ctx, store)
	if err != nil {
		return err
	}
	for _, of := range over {
		if !now.After(of.end().Add(c.Tolerance)) {
			continue
		}
		if err := c.endOver(ctx, store, of); err != nil && again(err) != nil {
			return err
		}
	}
	return nil
}

// endOver ends one claim, or removes the record of one that has ended.
func (c Claims) endOver(ctx context.Context, store Store, of claimRecord) error {
	at, err := "", ErrNoNode
	if of.State != claimEnded {
		at, err = of.place(ctx, store)
	}
	if err == nil {
		if err = c.finish(ctx, store, of, at, false); !errors.Is(err, ErrNoNode) {
			return err
		}
	}
	if !errors.Is(err, ErrNoNode) {
		return err
	}
	return c.endPlaceless(ctx, store, of)
}

// endPlaceless ends a claim whose place is gone. So there is no place whose removal could be named: of two machines that find the same, one
// removes the record. The other has seen an older version of the clock's node.
func (c Claims) endPlaceless(ctx context.Context, store Store, of claimRecord) error {
	_, version, err := c.now(ctx, store)
	if err != nil {
		return err
	}
	if err := store.CatchUp(ctx); err != nil {
		return unsent(err)
	}
	found, err := c.read(ctx, store, of.path)
	if errors.Is(err, ErrNoClaim) {
		return nil
	}
	if err != nil || found.version != of.version || found.claimForm != of.claimForm {
		return err
	}
	change := Delete(of.path, of.version)
	if of.State == claimHeld { // it was broken
		change = Set(of.path, of.ended(false).encode(), of.version)
	}
	_, err = store.Commit(ctx, Set(c.Clock, []byte{}, version), change)
	return err
}
