package recipes

import (
	"bytes"
	"context"
	"errors"
	"time"
)

// An election is a lock whose contenders are candidates: its holder leads. What a candidate shows stands in its place's node, beside what
// it says about itself, so that contenders of all kinds stand in one queue. This is the leader election of ZooKeeper's manual.

// Errors of elections.
var (
	// ErrNoCandidate means that no candidate waits in the election under this name.
	ErrNoCandidate = errors.New("no such candidate")
	// ErrForeignCandidate means that a contender is in the way that cannot do what is asked.
	ErrForeignCandidate = errors.New("a contender that cannot do so")
)

// A ForeignCandidate says which contender is in the way, if that is known.
type ForeignCandidate struct{ Owner string }

func (f *ForeignCandidate) Error() string { return f.Owner + ": " + ErrForeignCandidate.Error() }
func (f *ForeignCandidate) Unwrap() error { return ErrForeignCandidate }

// A Handover is how leadership is handed over.
type Handover struct {
	To, By, Reason string
	Grace          *time.Duration // until the leader's hold is ended by force, if it is Sidekeeper's; nil if it never is
	Patience       time.Duration  // with each candidate that is to step back
}

// Transfer has the leader asked to let go for another candidate, the first of that name. Before that, those that stand between them step back.
// Nothing comes in between while they do: places are taken at the end. ErrNoCandidate, *ForeignCandidate; ErrNoProcess if a claim holds the
// election's lock; ErrOutcomeUnknown if a reply was lost: asking again is safe.
func (l Lock) Transfer(ctx context.Context, store Store, asked Handover) error {
	if err := store.CatchUp(ctx); err != nil {
		return err
	}
	for {
		ahead, next, err := l.aheadOf(ctx, store, asked.To)
		switch {
		case err != nil:
			return err
		case len(ahead) == 0:
			return nil
		case ahead[0].claims:
			return ErrNoProcess
		case next.asked.To != "": // it is about to step back itself, for an earlier one
			err = l.awaitGone(ctx, store, []*candidate{next}, asked.Patience)
		case len(ahead) == 1:
			err = l.yield(ctx, store, ahead[0], asked)
		default:
			err = l.stepBack(ctx, store, ahead[1:], asked)
		}
		if !errors.Is(err, ErrNoNode) { // else a contender went meanwhile
			return err
		}
	}
}

// A candidate is a contender whose node was read.
type candidate struct {
	child

	Contender

	asked Revocation
}

// aheadOf reads a candidate and the contenders ahead of it: the leader first. There are none if it leads.
func (l Lock) aheadOf(ctx context.Context, store Store, to string) (ahead []*candidate, next *candidate, _ error) {
	contenders, _, err := l.queue(ctx, store)
	if err != nil {
		return nil, nil, err
	}
	none := ErrNoCandidate
	for _, c := range contenders {
		node, err := store.Get(ctx, l.child(c))
		switch {
		case errors.Is(err, ErrNoNode):
			continue
		case errors.Is(err, ErrDenied): // it may be this one, unless another one is
			none = err
		case err != nil:
			return nil, nil, err
		}
		if next = (&candidate{c, c.contender(node), revocationIn(node.Data)}); next.Owner == to {
			return ahead, next, nil
		}
		ahead = append(ahead, next)
	}
	return nil, nil, none
}

// yield asks the leader to let go.
func (l Lock) yield(ctx context.Context, store Store, leader *candidate, asked Handover) error {
	request := Revocation{By: asked.By, Reason: asked.Reason, To: asked.To, Grace: asked.Grace}
	_, err := l.ask(ctx, store, leader.child, request, leader.Token)
	return err
}

// stepBack has candidates step back, and returns ErrNoNode when they have. Those that lead by then see that they are to yield.
func (l Lock) stepBack(ctx context.Context, store Store, between []*candidate, asked Handover) error {
	for _, c := range between {
		if c.Value == nil {
			return &ForeignCandidate{c.Owner}
		}
	}
	for _, c := range between {
		_, err := l.ask(ctx, store, c.child, Revocation{By: asked.By, Reason: asked.Reason, To: asked.To}, c.Token)
		if err != nil && !errors.Is(err, ErrNoNode) {
			return err
		}
	}
	return l.awaitGone(ctx, store, between, asked.Patience)
}

// awaitGone returns ErrNoNode when all of the candidates have left their places, or one is the first and does not step back any more.
func (l Lock) awaitGone(ctx context.Context, store Store, leaving []*candidate, patience time.Duration) error {
	for _, c := range leaving {
		bounded, cancel := context.WithTimeoutCause(ctx, patience, &ForeignCandidate{c.Owner})
		err := l.awaitOneGone(bounded, store, c.child)
		cancel()
		if err != nil {
			return err
		}
	}
	return ErrNoNode
}

func (l Lock) awaitOneGone(ctx context.Context, store Store, c child) error {
	for {
		contenders, changed, err := l.watchQueue(ctx, store)
		if err != nil || len(contenders) == 0 || contenders[0] == c || !contenders.contains(c) {
			return err
		}
		if err := changed.Await(ctx); err != nil {
			return err
		}
	}
}

// Proclaim replaces what a leader shows, as long as its place stands, and returns ErrNoNode when it does not. *ForeignCandidate if its node's
// data are not in our form. ErrOutcomeUnknown if a reply was lost: asking again is safe.
func Proclaim(ctx context.Context, store Store, leader Guard, value string) (failure error) {
	for range maxAttempts {
		if err := store.CatchUp(ctx); err != nil {
			return errors.Join(failure, err)
		}
		node, err := store.Get(ctx, leader.Path)
		if err != nil {
			return err
		}
		form, ours := decode(node.Data)
		if !ours { // its sidecar says again what another program has overwritten
			failure = &ForeignCandidate{}
			continue
		}
		form.Value = &value
		proclaimed := encode(form)
		if bytes.Equal(proclaimed, node.Data) {
			return nil
		}
		_, failure = store.Commit(ctx, Set(leader.Path, proclaimed, node.Version))
		if !errors.Is(failure, ErrBadVersion) && !errors.Is(failure, ErrOutcomeUnknown) {
			return failure
		}
	}
	return failure
}
