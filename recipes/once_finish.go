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

const (
	// sweepEvery is how many new records are made for each look at others whose time is over.
	sweepEvery = 16
	// sweepLooks is at how many of them: so that few stand whose time is over, however many there are.
	sweepLooks = 128
	// sweepRemovals is how many of them are removed at most.
	sweepRemovals = 32
)

// makeRoom removes some records whose time is over, where there are many or from time to time. ErrTooManyKeys if there are as many as may be.
func (o Once) makeRoom(ctx context.Context, store Store, hold *Hold, about About) error {
	count, err := childrenOf(ctx, store, o.Path)
	full := count >= MaxKeys
	if err != nil || !full && rand.IntN(sweepEvery) > 0 { //nolint:gosec // spreads work, and needs no secrecy
		return err
	}
	removed, err := o.Sweep(ctx, store, hold, about)
	if full && removed == 0 {
		return cmp.Or(err, ErrTooManyKeys)
	}
	return nil // whatever kept others' records from being removed
}

// Sweep looks at some records and removes those whose time is over, each under the lock that guards it, if that is the holder's or free. It
// returns how many.
func (o Once) Sweep(ctx context.Context, store Store, hold *Hold, about About) (removed int, _ error) {
	keys, err := o.Keys(ctx, store)
	if err != nil {
		return 0, err
	}
	about.Request = 0                                                               // the places are none of the request's, which may come back to its own
	rand.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] }) //nolint:gosec // as above
	keys = keys[:min(len(keys), sweepLooks)]
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
	now, err := o.now(ctx, store)
	for i := range old[:min(len(old), sweepRemovals)] {
		of := &old[i]
		if err != nil {
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
