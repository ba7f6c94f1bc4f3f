package recipes

import (
	"context"
	"errors"
	"fmt"
	"regexp"
)

// A Guard is a hold's place that must stand for a write to be carried out.
type Guard struct {
	Path  string // of the place's node
	Token int64
}

// ErrGuardLost means that a guard's place is gone: nothing was written.
var ErrGuardLost = errors.New("a hold that guards the write has ended")

// GuardLost says which of the guards is lost.
type GuardLost struct{ Index int }

func (g *GuardLost) Error() string { return fmt.Sprintf("guard %d: %v", g.Index, ErrGuardLost) }
func (g *GuardLost) Unwrap() error { return ErrGuardLost }

// Guarded is a store whose transactions are carried out only while the places of all the guards stand, which each of them checks itself: what
// a reader believes, or a clock, does not matter, nor how late a transaction comes whose reply was lost. A *GuardLost says that a place is gone.
//
// Its node's being there says that the place is the one that was granted: its name holds a uuid, so that no other node is ever called so. It is
// ephemeral, so that its session has not ended either, for the ensemble deletes the one with the other. And a place that was granted is
// before all that it excludes until it goes.
func Guarded(store Store, guards []Guard) Store {
	if len(guards) == 0 {
		return store
	}
	return guarded{store, guards}
}

type guarded struct {
	Store

	guards []Guard
}

// Commit implements Store.
func (g guarded) Commit(ctx context.Context, changes ...Change) ([]Node, error) {
	nodes, err := g.Store.Commit(ctx, append(Checks(g.guards), changes...)...)
	if err != nil {
		return nil, Unguarded(err, len(g.guards))
	}
	return nodes[len(g.guards):], nil
}

// Checks are the first changes of a transaction that the guards guard.
func Checks(guards []Guard) (checks []Change) {
	for _, guard := range guards {
		checks = append(checks, Check(guard.Path, -1))
	}
	return checks
}

// Unguarded is why the rest of a transaction was not carried out that begins with so many Checks.
func Unguarded(err error, guards int) error {
	refusal, refused := errors.AsType[*Refusal](err)
	switch {
	case !refused:
		return err
	case refusal.Index >= guards:
		return &Refusal{Index: refusal.Index - guards, Err: refusal.Err}
	case errors.Is(refusal.Err, ErrNoNode):
		return &GuardLost{refusal.Index}
	}
	return refusal.Err
}

// Guard is the hold as a guard.
func (h *Hold) Guard() Guard { return Guard{h.place.path, h.Token} }

// neverAgain finds a uuid that was drawn for one node alone, as our places, Curator's and go-zookeeper's have it. A lock of kazoo's has one for
// all that it ever makes, whose numbers begin anew with the directory.
var neverAgain = regexp.MustCompile(`^_c_[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}`)

// Guard is the hold with this token as a guard, regardless of its holder. ErrTokenMismatch if there is no such hold, as the tree shows it, or if
// the name of its node may be another's one day.
func (l Lock) Guard(ctx context.Context, tree Tree, token int64) (Guard, error) {
	contenders, _, err := l.queue(ctx, tree)
	if err != nil {
		return Guard{}, err
	}
	none := ErrTokenMismatch
	for _, c := range contenders.holders() {
		node, err := tree.Get(ctx, l.child(c))
		switch {
		case errors.Is(err, ErrNoNode):
		case errors.Is(err, ErrDenied): // it may be this one, unless another one is
			none = err
		case err != nil:
			return Guard{}, err
		case node.Czxid == token && neverAgain.MatchString(c.name):
			return Guard{l.child(c), token}, nil
		}
	}
	return Guard{}, none
}
