package recipes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"time"
)

// Errors of sequences.
var (
	// ErrNoSequence means that there is no such sequence.
	ErrNoSequence = errors.New("no such sequence")
	// ErrSequenceExists means that there is such a sequence already.
	ErrSequenceExists = errors.New("there is such a sequence already")
	// ErrExhausted means that the sequence has come to the end of 64-bit numbers, or would.
	ErrExhausted = errors.New("no numbers of 64 bits are left")
	// ErrMalformed means that what is stored is no number of 8 bytes, or that it cannot be told when it changes.
	ErrMalformed = errors.New("what is stored is not a number of 8 bytes")
	// ErrFell means that what is stored is smaller than a number that was stored before: another program has set it back.
	ErrFell = errors.New("what is stored is smaller than numbers that were handed out")
	// ErrForeignChildren means that others have put nodes below the sequence's.
	ErrForeignChildren = errors.New("others have put things below the sequence")
)

// A Sequence hands out numbers, each once. Its node holds the last one issued in the format of Curator's
// DistributedAtomicLong (8 bytes, big-endian; no bytes are 0), so that either goes on where the other has stopped.
//
// Versions restart when a node is deleted and made again, and ZooKeeper cannot compare czxids in a write. So the node has a
// child, its guard, whose name is unique; it is made and deleted together with the node, and every write checks that it is
// there. A node that another program made gets a guard when it is first used, unless its eight bytes are text. The numbers beyond 2^61
// that they could be as well are believed where there is a guard, since a sequence of ours may come to them.
type Sequence struct {
	Path string
}

// A Count is how far one incarnation of a sequence has come.
type Count struct {
	Last        int64 // the last number issued or reserved
	Incarnation int64 // the czxid of the node: later incarnations have larger ones
}

// Create makes the sequence, whose first number will be first: not the smallest number there is, since the one before it is
// stored. ErrSequenceExists. ErrOutcomeUnknown if a reply was lost and the ensemble went away before it was found out.
func (s Sequence) Create(ctx context.Context, store Store, first int64) (made Count, err error) {
	data := encodeNumber(first - 1)
	guards := map[string]bool{} // what was tried
	err = insist(ctx, func(lost bool) error {
		guard := newGuard()
		guards[guard] = true
		nodes, err := store.Commit(ctx, Create(s.Path, data), Create(s.Path+"/"+guard, []byte{}), Set(s.Path, data, 0))
		switch {
		case errors.Is(err, ErrNoNode):
			return cmp.Or(store.MakeDirectory(ctx, path.Dir(s.Path)), err)
		case errors.Is(err, ErrExists):
			if lost {
				made, err = s.madeWith(ctx, store, guards)
				return err
			}
			return ErrSequenceExists
		case err == nil:
			made = Count{Last: first - 1, Incarnation: nodes[2].Czxid}
		}
		return err
	})
	return made, err
}

// madeWith finds out whether the sequence that is there was made with one of these guards.
func (s Sequence) madeWith(ctx context.Context, store Store, guards map[string]bool) (Count, error) {
	found, err := s.know(ctx, store)
	if errors.Is(err, ErrMalformed) || err == nil && !guards[found.guard] {
		return Count{}, ErrSequenceExists
	}
	return found.count(), err
}

// Read looks at the sequence. Every number that was issued before is counted.
func (s Sequence) Read(ctx context.Context, tree Tree) (Count, error) {
	if err := tree.CatchUp(ctx); err != nil {
		return Count{}, err
	}
	return s.Peek(ctx, tree)
}

// Peek looks at the sequence as the tree shows it, which may be late. ErrMalformed comes with the incarnation.
func (s Sequence) Peek(ctx context.Context, tree Tree) (Count, error) {
	node, err := tree.Get(ctx, s.Path)
	if errors.Is(err, ErrNoNode) {
		return Count{}, ErrNoSequence
	}
	if err != nil {
		return Count{}, err
	}
	last, err := decodeNumber(node.Data)
	if isText(node.Data) {
		last, err = s.believe(ctx, tree, last)
	}
	return Count{Last: last, Incarnation: node.Czxid}, err
}

// believe believes in a number that could be text as well where there is a guard.
func (s Sequence) believe(ctx context.Context, tree Tree, last int64) (int64, error) {
	guards, _, err := s.guards(ctx, tree)
	if err == nil && len(guards) == 0 {
		return 0, ErrMalformed
	}
	return last, err
}

// AdvanceTo has the sequence go on behind last, and leaves it as it is if it is there or further. ErrOutcomeUnknown if a
// reply was lost and the ensemble went away before it was found out: asking again is safe.
func (s Sequence) AdvanceTo(ctx context.Context, store Store, last int64) (Count, error) {
	var found sequenceState
	err := insist(ctx, func(bool) error {
		err := store.CatchUp(ctx)
		if err == nil {
			found, err = s.know(ctx, store)
		}
		if err == nil && found.last < last {
			found, err = s.advance(ctx, store, found, last)
		}
		return err
	})
	return found.count(), err
}

// Delete removes the sequence with its guards. ErrMalformed and ErrForeignChildren leave it as it is. ErrOutcomeUnknown if a reply
// was lost and the ensemble went away before it was found out.
func (s Sequence) Delete(ctx context.Context, store Store) error {
	if err := store.CatchUp(ctx); err != nil { // an incarnation that is gone already may be shown still
		return err
	}
	found, err := s.know(ctx, store)
	if err != nil {
		return err
	}
	return insist(ctx, func(lost bool) error {
		if err := store.CatchUp(ctx); err != nil {
			return err
		}
		guards, foreignChildren, err := s.guards(ctx, store)
		switch {
		case lost && errors.Is(err, ErrNoSequence), err == nil && !guards[found.guard]:
			return nil // this incarnation is gone
		case err != nil:
			return err
		case foreignChildren > 0:
			return ErrForeignChildren
		}
		var changes []Change
		for guard := range guards {
			changes = append(changes, Delete(s.Path+"/"+guard, -1))
		}
		_, err = store.Commit(ctx, append(changes, Delete(s.Path, -1))...)
		return err
	})
}

// insist repeats an attempt that another write has overtaken, or whose reply was lost, until it says for certain what has become of
// it. If it cannot any more after a reply was lost, that is ErrOutcomeUnknown.
func insist(ctx context.Context, attempt func(lost bool) error) error {
	lost := false
	for {
		err := attempt(lost)
		lost = lost || errors.Is(err, ErrOutcomeUnknown)
		if err == nil || isOfSequences(err) {
			return err
		}
		if isOvertaken(err) || errors.Is(err, ErrOutcomeUnknown) {
			err = pause(ctx, jittered(time.Millisecond))
		}
		switch {
		case err != nil && lost:
			return fmt.Errorf("%w: %w", ErrOutcomeUnknown, err)
		case err != nil:
			return err
		}
	}
}

// isOvertaken says that another write has changed what a write depended on.
func isOvertaken(err error) bool {
	return errors.Is(err, ErrBadVersion) || errors.Is(err, ErrNoNode) || errors.Is(err, ErrNotEmpty)
}

// isOfSequences says that an error is an answer, and no failure.
func isOfSequences(err error) bool {
	return errors.Is(err, ErrNoSequence) || errors.Is(err, ErrSequenceExists) || errors.Is(err, ErrMalformed) ||
		errors.Is(err, ErrForeignChildren)
}
