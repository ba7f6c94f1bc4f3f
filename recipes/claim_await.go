package recipes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/sidekeeper/sidekeeper/internal/trace"
)

// ErrClaimWaits means that the time was over in which a claim was to be granted: it is withdrawn.
var ErrClaimWaits = errors.New("the claim was not granted in time")

// A claiming is a claim that waits for its turn.
type claiming struct {
	Claims

	store  Store
	record claimRecord
	said   time.Time // when the record was last written by this one
	place  *Place
	wanted ClaimRequest
	lost   lostReply
}

// Claim makes a claim and returns when its turn has come; late ends the wait. It may be called again with the same id, after a reply that was
// lost, also through another sidecar, and goes on where the claim stands: it says how a claim stands that was granted before. If ctx ends, the
// claim goes on waiting for a while, for who calls again. ErrClaimEnded if the claim has ended, also if another call has released it meanwhile;
// ErrClaimWaits, ErrOtherClaim, ErrTooManyClaims; ErrGone if an operator has ended it; ErrKindMismatch, ErrDirectory.
func (c Claims) Claim(ctx context.Context, store Store, lock Lock, wanted ClaimRequest, late <-chan struct{}) (ClaimState, error) {
	waits := &claiming{Claims: c, store: store, wanted: wanted}
	for {
		found, err := c.find(ctx, store, wanted.ID)
		switch {
		case errors.Is(err, ErrNoClaim) && waits.place == nil:
			err = c.make(ctx, store, lock, wanted)
		case errors.Is(err, ErrNoClaim): // it does not come back: its owner may have released it
			return ClaimState{}, ErrClaimEnded
		case !found.isOf(lock, wanted.Mode):
			return ClaimState{}, ErrOtherClaim
		case errors.Is(err, ErrClaimEnded) && found.State == claimWaits:
			err = waits.removed(ctx, found.claimRecord)
		case err == nil && found.State == claimHeld:
			return found.state(), nil
		case err == nil:
			done, err := waits.turn(ctx, lock, found, late)
			if done != nil || err != nil {
				return *cmp.Or(done, &ClaimState{}), err
			}
			continue
		default:
			return ClaimState{}, waits.lost.or(err)
		}
		if err := waits.lost.again(err); err != nil {
			return ClaimState{}, err
		}
	}
}

// removed ends a claim whose place an operator has removed while it waited.
func (c *claiming) removed(ctx context.Context, of claimRecord) error {
	err := c.endPlaceless(ctx, c.store, of)
	switch {
	case err == nil:
		return ErrGone
	case errors.Is(err, ErrNoClaim):
		return ErrClaimEnded
	}
	return err
}

// turn waits for a claim's turn at the place that was found. It returns nil as await does.
func (c *claiming) turn(ctx context.Context, lock Lock, found standingClaim, late <-chan struct{}) (*ClaimState, error) {
	if err := c.takePlace(lock, found); err != nil {
		return nil, err
	}
	done, err := c.await(ctx, late)
	if errors.Is(err, ErrGone) { // as what, the record tells
		return nil, nil
	}
	if err != nil {
		err = c.withdraw(ctx, err)
	}
	return done, err
}

// make makes a record and its place. ErrTooManyClaims.
func (c Claims) make(ctx context.Context, store Store, lock Lock, wanted ClaimRequest) error {
	names, err := childrenNamed(store.Children(ctx, lock.Path))
	if err != nil {
		return err
	}
	contenders, _ := lock.readQueue(names)
	records, err := childrenOf(ctx, store, c.Path)
	switch of := slices.DeleteFunc(contenders, func(c child) bool { return !c.claims }); {
	case err != nil:
		return err
	case len(of) >= MaxClaimsOfLock:
		return fmt.Errorf("%w of this lock: %d", ErrTooManyClaims, len(of))
	case records > MaxClaims: // with the clock
		return fmt.Errorf("%w, with those that have ended: %d", ErrTooManyClaims, records-1)
	}
	if wanted.Admit != nil {
		done, err := wanted.Admit()
		if err != nil {
			return err
		}
		defer done()
	}
	for _, directory := range []string{lock.Path, c.Path} {
		if err := store.MakeDirectory(ctx, directory); err != nil {
			return err
		}
	}
	form := claimForm{
		State: claimWaits, Said: wall(), Lock: lock.Path, Place: "_c_" + entrantName() + claimMark + lock.marker(wanted.Mode), Caller: wanted.Caller,
	}
	about := wanted.About
	about.Timeout, about.Request, about.Reserved = claimTimeout, 0, &Reserved{Reason: wanted.Reason}
	_, err = store.Commit(ctx, Create(c.record(wanted.ID), form.encode()), CreateNumbered(lock.Path+"/"+form.Place, about.encode()))
	return err
}

// isOf says whether a claim is one of this lock, in this mode, as far as it was read.
func (f claimForm) isOf(lock Lock, mode Mode) bool {
	return f.Lock == "" || f.Lock == lock.Path && strings.Contains(f.Place, claimMark+lock.marker(mode))
}

// takePlace has the claim's node be a place as others are. It belongs to no session, which could end.
func (c *claiming) takePlace(lock Lock, found standingClaim) error {
	name := path.Base(found.at)
	own, ok := lock.parse(name)
	if !ok || found.place.Owner != 0 {
		return ErrMalformedRecord
	}
	c.record, c.said = found.claimRecord, time.Time{}
	made := Enqueued{Path: found.at, Name: name, Gone: &Signal{}}
	c.place = &Place{lock: lock, session: sessionless{Store: c.store}, own: own, path: found.at, made: made}
	return nil
}

// await returns how the claim stands when it is granted; nil if its record or its place is another by now, so that it is to be read again.
func (c *claiming) await(ctx context.Context, late <-chan struct{}) (*ClaimState, error) {
	for {
		turn, left, err := c.look(ctx)
		if err == nil && turn.First && left == 0 {
			granted, err := c.grant(ctx)
			return granted, c.lost.again(err)
		}
		if err != nil {
			return nil, err
		}
		if err := c.wait(ctx, turn, left, late); err != nil {
			return nil, err
		}
		if time.Since(c.said) < claimRenewal {
			continue
		}
		if changed, err := c.renew(ctx); changed || err != nil {
			return nil, err
		}
	}
}

// wait returns when it is worth to look again, or to say that the claim waits.
func (c *claiming) wait(ctx context.Context, turn Turn, left time.Duration, late <-chan struct{}) error {
	pause := claimRenewal - time.Since(c.said)
	if left > 0 {
		pause = min(pause, left)
	}
	select {
	case <-turn.Changed.Done():
	case <-turn.Marked.Done():
	case <-time.After(pause):
	case <-late:
		return ErrClaimWaits
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// look says whether it is the claim's turn, and how much of an earlier hold's delay is left then.
func (c *claiming) look(ctx context.Context) (turn Turn, left time.Duration, err error) {
	turn, err = c.place.Look(ctx)
	if err == nil && turn.Revocation.Break {
		err = ErrClaimAsked
	}
	if err == nil && turn.First {
		left, err = c.place.OutwaitDelay(ctx, c.store)
	}
	return turn, left, err
}

// grant records that the claim is held.
func (c *claiming) grant(ctx context.Context) (*ClaimState, error) {
	own, _, err := c.place.watchOwn(ctx)
	if err != nil {
		return nil, err
	}
	if revocationIn(own.Data).Break {
		return nil, ErrClaimAsked
	}
	if c.wanted.May != nil {
		if err := c.wanted.May(); err != nil {
			return nil, err
		}
	}
	held := standingClaim{claimRecord: c.record, at: c.place.path, place: own}
	held.State, held.Place, held.Span = claimHeld, path.Base(c.place.path), c.wanted.For
	about := c.wanted.About
	about.Reserved = &Reserved{Reason: c.wanted.Reason}
	if err := held.write(ctx, c.store, about); err != nil {
		return nil, err
	}
	if trace.Told() {
		trace.Tell(trace.Step{Kind: trace.Granted, Place: held.at, Token: own.Czxid})
	}
	return new(held.state()), nil
}

// renew says that the claim still waits. It says whether the record is another by now.
func (c *claiming) renew(ctx context.Context) (changed bool, _ error) {
	c.record.Said = wall()
	nodes, err := c.store.Commit(ctx, Check(c.place.path, -1), Set(c.record.path, c.record.encode(), c.record.version))
	if err == nil {
		c.record.version, c.said = nodes[1].Version, time.Now()
		return false, nil
	}
	return true, c.lost.again(err)
}

// withdrawalTime is for how long it is tried to withdraw a claim. What stands then goes by itself.
const withdrawalTime = 5 * time.Second

// withdraw takes a claim back that waits, unless its caller may come back to it, and says why it was not granted.
func (c *claiming) withdraw(ctx context.Context, why error) error {
	if ctx.Err() != nil || errors.Is(why, ErrUnreachable) || errors.Is(why, ErrOutcomeUnknown) {
		return c.lost.or(why)
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), withdrawalTime)
	defer stop()
	for {
		err := c.record.finish(ctx, c.store, c.place.path, false) // not if another call has written the record, and waits, too
		if errors.Is(err, ErrOutcomeUnknown) && c.store.CatchUp(ctx) == nil {
			continue
		}
		if errors.Is(why, ErrClaimAsked) {
			return ErrGone
		}
		return why
	}
}

// A sessionless is the session of a place that belongs to none.
type sessionless struct {
	Store
	Placer // of none
}

func (s sessionless) Update(ctx context.Context, at string, data []byte, version int32, guards ...Guard) (Node, error) {
	nodes, err := Guarded(s.Store, guards).Commit(ctx, Set(at, data, version))
	if err != nil {
		return Node{}, err
	}
	return nodes[0], nil
}

func (sessionless) SawDeleted(string) bool      { return false }
func (sessionless) Owns(node Node) bool         { return node.Owner == 0 }
func (sessionless) Seen(string, int32)          {}
func (sessionless) Disregard(string)            {}
func (sessionless) Prove(context.Context) error { return nil }
func (sessionless) Done() <-chan struct{}       { return nil }
func (s sessionless) WatchOwn(ctx context.Context, place string) (Node, *Signal, func(), error) {
	node, changed, err := s.Watch(ctx, place)
	return node, changed, func() {}, err
}
