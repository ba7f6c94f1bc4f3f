package recipes

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"
)

// finished is the record with the outcome of its attempt. It has as many bytes as before.
func (r Record) finished(outcome Outcome, note string) recordForm {
	form := r.recordForm
	form.Outcome, form.Note, form.At, form.Finished = outcome, note, time.Time{}, time.Now().UTC().Truncate(time.Second)
	return form
}

// Finish records the outcome of an attempt and gives up its hold, in one transaction that is carried out only while the hold stands. With an
// error, ask FinishLost: the transaction may have been carried out, or be yet, as long as the hold stands.
func (o Once) Finish(ctx context.Context, store Store, of Record, hold *Hold, outcome Outcome, note string) error {
	set := Set(o.record(of.Key), of.finished(outcome, note).encode(), of.node.Version)
	_, err := Guarded(store, []Guard{hold.Guard()}).Commit(ctx, set, Delete(hold.place.path, -1))
	return err
}

// IsFinished says whether this outcome of an attempt is recorded. A *RecordError with ErrSuperseded or ErrDone if it never will be.
func (o Once) IsFinished(ctx context.Context, store Store, of Record, outcome Outcome) (bool, error) {
	_, is, err := o.findFinished(ctx, store, of, outcome)
	return is, err
}

func (o Once) findFinished(ctx context.Context, store Store, of Record, outcome Outcome) (found Record, is bool, err error) {
	found, err = o.Get(ctx, store, of.Key)
	switch {
	case errors.Is(err, ErrNoRecord), err == nil && found.Token != of.Token:
		err = &RecordError{ErrSuperseded, found}
	case err == nil && found.Outcome != Begun && found.Outcome != outcome:
		err = &RecordError{ErrDone, found}
	}
	return found, err == nil && found.Outcome == outcome, err
}

// FinishLost records the outcome of an attempt whose own hold is over, under a later hold of the same lock. Errors as of IsFinished; ErrGone if
// that hold is lost, too.
func (o Once) FinishLost(ctx context.Context, store Store, of Record, under *Hold, outcome Outcome, note string) error {
	for {
		found, is, err := o.findFinished(ctx, store, of, outcome)
		if is || err != nil {
			return err
		}
		set := Set(o.record(of.Key), found.finished(outcome, note).encode(), found.node.Version)
		_, err = Guarded(store, []Guard{under.Guard()}).Commit(ctx, set)
		if err == nil {
			return nil
		}
		if err := again(err); err != nil {
			return err
		}
	}
}

// Forget removes a record under a hold of the lock that guards it, as of shows it. ErrNoRecord; ErrOtherLock if another lock guards it by now;
// ErrGone if the hold is lost.
func (o Once) Forget(ctx context.Context, store Store, of Record, under *Hold) error {
	for tried := false; ; tried = true {
		found, err := o.Get(ctx, store, of.Key)
		switch {
		case errors.Is(err, ErrNoRecord) && tried: // a reply was lost
			return nil
		case err != nil && !errors.Is(err, ErrMalformedRecord):
			return err
		case found.PerKey != of.PerKey:
			return &RecordError{ErrOtherLock, found}
		}
		if err = o.remove(ctx, store, found, under); err == nil {
			return nil
		}
		if err := again(err); err != nil {
			return err
		}
	}
}

func (o Once) remove(ctx context.Context, store Store, of Record, under *Hold) error {
	_, err := Guarded(store, []Guard{under.Guard()}).Commit(ctx, Delete(o.record(of.Key), of.node.Version))
	return err
}

// removeOld removes a record whose time is over, under a hold of the lock that guards it. It reads the record again: before the hold, others
// may have made another one with the same version.
func (o Once) removeOld(ctx context.Context, store Store, of Record, now time.Time, under *Hold) error {
	found, err := o.Get(ctx, store, of.Key)
	switch {
	case err != nil:
		return err
	case found.Token != of.Token || found.PerKey != of.PerKey || !found.seemsOver() || !found.isOverAt(now):
		return &RecordError{ErrNoRecord, of}
	}
	return o.remove(ctx, store, found, under)
}

// A caller waits for a sweep before it is told `begun`: each is short. As many records are removed as are made once an eighth of them is old.
const (
	// sweepEvery is how many new records are made for each sweep.
	sweepEvery = 4
	// sweepLooks is at how many records it looks.
	sweepLooks = 32
	// fullLooks is at how many where there is no room.
	fullLooks = 256
	// sweepRemovals is how many it removes at most.
	sweepRemovals = 4
)

// makeRoom removes some records whose time is over, where there are many or from time to time. ErrTooManyKeys if there are as many as may be.
func (o Once) makeRoom(ctx context.Context, store Store, hold *Hold, about About) error {
	count, err := childrenOf(ctx, store, o.Path)
	full := count >= MaxKeys
	if err != nil || !full && rand.IntN(sweepEvery) > 0 { //nolint:gosec // spreads work, and needs no secrecy
		return err
	}
	if !full {
		_, _ = o.Sweep(ctx, store, hold, about) // whatever keeps others' records from being removed
		return nil
	}
	removed, err := o.sweep(ctx, store, hold, about, fullLooks)
	if removed == 0 {
		return cmp.Or(err, ErrTooManyKeys)
	}
	return nil
}

// Sweep looks at some records and removes a few whose time is over, each under the lock that guards it, if that is the holder's or free. It
// returns how many.
func (o Once) Sweep(ctx context.Context, store Store, hold *Hold, about About) (removed int, _ error) {
	return o.sweep(ctx, store, hold, about, sweepLooks)
}

func (o Once) sweep(ctx context.Context, store Store, hold *Hold, about About, looks int) (removed int, _ error) {
	keys, err := o.Keys(ctx, store)
	if err != nil {
		return 0, err
	}
	// The places are none of the request's, which may come back to its own.
	about.Request = 0
	rand.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] }) //nolint:gosec // as above
	keys = keys[:min(len(keys), looks)]
	found := make([]Record, len(keys))
	err = EachOf(len(keys), func(i int) error {
		of, err := o.Read(ctx, store, keys[i])
		if err == nil {
			found[i] = of
		}
		return ignored(err)
	})
	old := slices.DeleteFunc(found, func(of Record) bool { return !of.seemsOver() })
	if err != nil || len(old) == 0 {
		return 0, err
	}
	now, _, err := setClock(ctx, store, o.Clock)
	for i := range old[:min(len(old), looks/4)] { // others may hold some of the locks
		of := &old[i]
		if err != nil || removed == sweepRemovals {
			return removed, err
		}
		if !of.isOverAt(now) {
			continue
		}
		remove := func(under *Hold) error { return o.removeOld(ctx, store, *of, now, under) }
		if guard := o.LockOf(of.Key, of.PerKey); guard.Path == hold.place.lock.Path {
			err = remove(hold)
		} else {
			err = guard.Do(ctx, hold.place.session, store, about, nil, remove)
		}
		if err == nil {
			removed++
		}
		err = ignored(err)
	}
	return removed, err
}

// ignored is an error that ends no look at other records.
func ignored(err error) error {
	for _, other := range []error{ErrNoRecord, ErrMalformedRecord, ErrHeld, ErrGone, ErrDenied, ErrKindMismatch} {
		if errors.Is(err, other) {
			return nil
		}
	}
	if err == nil {
		return nil
	}
	return again(err)
}
