package recipes

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"
)

// A Delivery is an item that a caller has taken, or waits for. Its calls are for one goroutine, but Done and Leave are for any.
type Delivery struct {
	Token  int64    // larger than that of every earlier delivery of the item; 0 before the delivery
	Values [][]byte // what the item holds
	Times  int      // how often it was delivered, with this delivery: at least so often; 0 before that is known

	queue   Queue
	session MemberSession
	store   Store
	about   About
	place   *Place          // among those who wait
	first   bool            // it is the first there
	item    string          // the name of the item that was taken; empty if none is
	node    Node            // the item as it was read
	counted bool            // the delivery is, in the item
	denied  map[string]bool // the names of items that the ensemble does not let the session read
	doubted atomic.Bool     // whether it has been removed is not known
	own     *Place          // the delivery's
	items   either          // that may have come or gone
	leave   sync.Once
}

// A Taker is how a caller stands that waits for an item.
type Taker struct {
	Delivered bool
	Position  int       // callers before it
	Due       time.Time // when the next one is due, then; zero if none is delayed
	Changed   *Signal   // given when it is worth to look again; as the following
	Marked    *Signal
	Asked     Revocation // what is asked of the place, or of the delivery
}

// Take takes the last place among those who wait for items. It cannot be cancelled. The caller must Leave. A session must not take again
// from the same queue before it has left.
func (q Queue) Take(ctx context.Context, session MemberSession, store Store, about About) (*Delivery, error) {
	place, err := q.takers().Join(ctx, session, Exclusive, about)
	if err != nil {
		return nil, err
	}
	made := &Delivery{queue: q, session: session, store: store, about: about, place: place, denied: map[string]bool{}}
	return made, nil
}

// Look reads how the caller stands, and has an item delivered if its turn has come and there is one. Errors: ErrGone, and those of the
// session.
func (d *Delivery) Look(ctx context.Context) (turn Taker, _ error) {
	if !d.first {
		seen, err := d.place.Look(ctx)
		turn = Taker{Position: seen.Position, Changed: seen.Changed, Marked: seen.Marked, Asked: seen.Revocation}
		if d.first = seen.First; err != nil || !d.first || turn.Asked.Break {
			return turn, err
		}
	}
	own, marked, err := d.place.watchOwn(ctx)
	turn = Taker{Marked: marked, Asked: revocationIn(own.Data)}
	if err != nil || turn.Asked.Break {
		return turn, err
	}
	if d.item == "" {
		if err := d.lookForItem(ctx, &turn); err != nil || d.item == "" {
			return turn, err
		}
	}
	return d.deliver(ctx)
}

// lookForItem takes the first item that is due and that no other caller has.
func (d *Delivery) lookForItem(ctx context.Context, turn *Taker) error {
	names, changed, err := d.session.WatchChildren(ctx, d.queue.Path)
	if names, err = childrenNamed(names, err); err != nil {
		return err
	}
	taken, given, err := d.session.WatchChildren(ctx, d.queue.Path+TakenSuffix)
	if taken, err = childrenNamed(taken, err); err != nil {
		return err
	}
	others := setOf(taken)
	for _, of := range readItems(names) {
		if others[of.name] {
			d.queue.Rests.taken(d.queue.item(of.name))
		}
		if others[of.name] || d.denied[of.name] {
			continue
		}
		due, err := d.dueAt(ctx, of)
		switch {
		case err != nil:
			return err
		case !due.After(time.Now()):
			return d.take(ctx, of.name, turn)
		case turn.Due.IsZero() || due.Before(turn.Due):
			turn.Due = due
		}
	}
	turn.Changed = d.items.of(changed, given)
	return nil
}

// dueAt is when an item that is not taken is due: not before it was to be, and not while it rests.
func (d *Delivery) dueAt(ctx context.Context, of item) (time.Time, error) {
	if due := time.UnixMilli(of.due); due.After(time.Now()) {
		return due, nil
	}
	path := d.queue.item(of.name)
	if until := d.queue.Rests.until(path); until.After(time.Now()) {
		return until, nil
	}
	node, err := d.session.Get(ctx, path)
	switch {
	case errors.Is(err, ErrDenied), errors.Is(err, ErrNoNode):
		return time.Time{}, nil // the transaction that takes it finds out
	case err != nil:
		return time.Time{}, err
	}
	return d.queue.Rests.rest(path, node), nil
}

// take takes an item, if that is there in the very transaction. If it is not, or another caller has it, the reader did not know: it catches up.
func (d *Delivery) take(ctx context.Context, name string, turn *Taker) error {
	_, _, err := d.session.Create(ctx, d.queue.taken(name), d.about.encode(), Guard{Path: d.queue.item(name)})
	switch {
	case errors.Is(err, ErrExists), errors.Is(err, ErrGuardLost):
		turn.Changed = Given()
		return d.session.CatchUp(ctx)
	case err == nil:
		d.item = name
		d.queue.Rests.taken(d.queue.item(name))
		d.session.Disregard(d.queue.taken(name)) // what bounds the validity is the delivery's own place
	}
	return err
}

// deliver reads the item that was taken, and makes the delivery's place. The delivery is the caller's then, with a running validity. It goes on
// where an earlier one broke off.
func (d *Delivery) deliver(ctx context.Context) (Taker, error) {
	again := Taker{Changed: Given()}
	if d.Values == nil {
		if err := d.read(ctx); err != nil || d.item == "" {
			return again, err
		}
	}
	if d.own == nil {
		own, err := d.queue.deliveries().Join(ctx, d.session, Read, d.about)
		if err != nil {
			return again, err
		}
		d.own = own
	}
	if !d.counted {
		if err := d.count(ctx); err != nil || !d.counted {
			return again, err
		}
	}
	node, changed, err := d.own.watchOwn(ctx)
	if err == nil {
		err = d.session.Prove(ctx)
	}
	if err != nil || changed.IsGiven() || d.own.Gone().IsGiven() {
		return again, err
	}
	d.Token = node.Czxid
	return Taker{Delivered: true, Changed: changed, Asked: revocationIn(node.Data)}, nil
}

// read reads the item. What the reader shows may be one of the same name that was there before. An item that another program has removed without
// taking it is given up; so is one that the session may not read, for which the delivery does not ask again.
func (d *Delivery) read(ctx context.Context) error {
	if err := d.session.CatchUp(ctx); err != nil {
		return err
	}
	node, err := d.session.Get(ctx, d.queue.item(d.item))
	switch {
	case errors.Is(err, ErrDenied):
		d.denied[d.item] = true
		fallthrough
	case errors.Is(err, ErrNoNode):
		if d.own != nil { // whose token may be smaller than one of the next item's
			d.own.Leave(ctx)
			d.own = nil
		}
		d.session.Delete(ctx, d.queue.taken(d.item))
		d.item, d.counted, d.Times = "", false, 0
		return nil
	case err != nil:
		return err
	}
	d.Values, d.node = decodeItem(node.Data), node
	return nil
}

// count notes in the item that it is delivered once more. That is no reason to deliver it not: where the note cannot be made, or a reply is
// lost, it is delivered all the same. An item that others have removed or changed meanwhile is looked at anew.
func (d *Delivery) count(ctx context.Context) error {
	set := Set(d.queue.item(d.item), d.node.Data, d.node.Version)
	_, err := Guarded(d.store, []Guard{{Path: d.own.path}}).Commit(ctx, set)
	switch {
	case errors.Is(err, ErrUnreachable):
		return err
	case errors.Is(err, ErrBadVersion), errors.Is(err, ErrNoNode):
		d.Values = nil
		return nil
	}
	d.Times, d.counted = int(d.node.Version)+1, true
	return nil
}

// LookAgain reads what is asked of a delivery. The signal is given when it is worth to look again. ErrGone if another program has deleted its
// place; other errors are those of the session, and say nothing about the delivery.
func (d *Delivery) LookAgain(ctx context.Context) (Revocation, *Signal, error) {
	node, changed, err := d.own.watchOwn(ctx)
	return revocationIn(node.Data), changed, err
}

// Guard is the delivery as a guard.
func (d *Delivery) Guard() Guard { return Guard{d.own.path, d.Token} }

// Done removes the item, while the delivery stands. ErrGuardLost if it does not; ErrOutcomeUnknown if a reply was lost, and asking again is
// safe.
func (d *Delivery) Done(ctx context.Context, store Store) error {
	var failure error
	for range maxAttempts {
		if removed, err := d.isRemoved(ctx, store); removed || err != nil {
			return err
		}
		_, err := Guarded(store, []Guard{d.Guard()}).Commit(ctx, Delete(d.queue.item(d.item), -1))
		switch {
		case err == nil, errors.Is(err, ErrNoNode): // it was carried out, if a reply was lost
			d.queue.Rests.forget(d.queue.item(d.item))
			return nil
		case !errors.Is(err, ErrOutcomeUnknown):
			return errors.Join(failure, err)
		}
		d.doubted.Store(true)
		if failure = err; ctx.Err() != nil {
			return failure
		}
	}
	return failure
}

// isRemoved says, where a reply was lost, whether the item is gone: another of its name may be there, since names are given again in a queue
// whose nodes were removed by hand.
func (d *Delivery) isRemoved(ctx context.Context, store Store) (bool, error) {
	if !d.doubted.Load() {
		return false, nil
	}
	if err := store.CatchUp(ctx); err != nil {
		return false, errors.Join(ErrOutcomeUnknown, err)
	}
	node, err := store.Get(ctx, d.queue.item(d.item))
	switch {
	case errors.Is(err, ErrNoNode):
		return true, nil
	case err != nil:
		return false, errors.Join(ErrOutcomeUnknown, err)
	}
	return node.Czxid != d.node.Czxid, nil
}

// LeaveQueue lets the next of those who wait have its turn, once the item is delivered. It cannot be cancelled.
func (d *Delivery) LeaveQueue(ctx context.Context) { d.place.Leave(ctx) }

// Leave gives the item back, unless it is done, and returns when what it made is gone, or the session is. First goes the delivery's place,
// so that nothing guards a write any more when another caller takes the item. It cannot be cancelled. Later calls wait for the first.
func (d *Delivery) Leave(ctx context.Context) {
	d.leave.Do(func() {
		if d.own != nil {
			d.own.Leave(ctx)
		}
		if d.item != "" {
			d.session.Delete(ctx, d.queue.taken(d.item))
		}
		d.place.Leave(ctx)
		d.items.drop()
	})
}

// Gone is given when the session finds that another program has deleted the place of a delivery.
func (d *Delivery) Gone() *Signal { return d.own.Gone() }

// Disregard says that no caller counts on the delivery any more, though it is kept for a while.
func (d *Delivery) Disregard() {
	d.place.Disregard()
	if d.own != nil {
		d.own.Disregard()
	}
}
