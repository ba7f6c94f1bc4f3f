package recipes

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"time"
)

// guardPrefix begins the names of guards.
const guardPrefix = "_i_"

// A sequenceState is what one look has shown of a sequence, and what a compare-and-set starts from.
type sequenceState struct {
	last        int64
	version     int32
	guard       string // the name of a child that is there for as long as this incarnation is
	incarnation int64
	empty       bool // no bytes are stored, which is 0
}

func (s sequenceState) count() Count { return Count{Last: s.last, Incarnation: s.incarnation} }

// know looks at the sequence and sees to it that it has a guard. It does not believe that there is no sequence before the
// tree has caught up: what was made a moment ago may not have come to this server yet.
func (s Sequence) know(ctx context.Context, store Store) (sequenceState, error) {
	found, err := s.guarded(ctx, store)
	if !errors.Is(err, ErrNoSequence) && !errors.Is(err, ErrMalformed) {
		return found, err
	}
	if err := store.CatchUp(ctx); err != nil {
		return sequenceState{}, err
	}
	return s.guarded(ctx, store)
}

// guarded looks until there is a guard, which is as good as another: what became of an attempt to make one without a reply
// shows itself in the next look. So does what another program has stored meanwhile, which may be no number.
func (s Sequence) guarded(ctx context.Context, store Store) (sequenceState, error) {
	for {
		found, err := s.look(ctx, store)
		if err != nil || found.guard != "" {
			return found, err
		}
		guard := newGuard()
		_, err = store.Commit(ctx, s.adopt(found, guard)...)
		switch {
		case err == nil:
			found, _, err = s.reread(ctx, store, guard)
			return found, err
		case errors.Is(err, ErrNoNode):
			return sequenceState{}, ErrNoSequence
		case errors.Is(err, ErrBadVersion):
			err = store.CatchUp(ctx)
		case errors.Is(err, ErrOutcomeUnknown):
			err = pause(ctx, jittered(time.Millisecond))
		}
		if err != nil {
			return sequenceState{}, err
		}
	}
}

// adopt makes a guard for a node that another program made. One that is empty becomes a number, since a counter of text that
// begins just then would go on from it.
func (s Sequence) adopt(found sequenceState, guard string) []Change {
	changes := []Change{Create(s.Path+"/"+guard, []byte{})}
	if found.empty {
		return append(changes, s.set(found.version, 0)...)
	}
	return append(changes, Check(s.Path, found.version))
}

// look reads the guards and then the node. A write that finds the guard shows that it was there all the time, so that
// what was read in between is of the same incarnation.
func (s Sequence) look(ctx context.Context, tree Tree) (sequenceState, error) {
	guards, foreignChildren, err := s.guards(ctx, tree)
	if err != nil {
		return sequenceState{}, err
	}
	found, node, err := s.reread(ctx, tree, "")
	switch {
	case err != nil:
		return sequenceState{}, err
	case node.Owner != 0, len(guards) == 0 && (foreignChildren > 0 && found.empty || isText(node.Data)): // another program's
		return sequenceState{}, ErrMalformed
	}
	for guard := range guards {
		if found.guard == "" || guard < found.guard {
			found.guard = guard
		}
	}
	return found, nil
}

// reread reads the node again for a caller that knows its guard. Without it, there is none in the state.
func (s Sequence) reread(ctx context.Context, tree Tree, guard string) (sequenceState, Node, error) {
	node, err := tree.Get(ctx, s.Path)
	if errors.Is(err, ErrNoNode) {
		return sequenceState{}, Node{}, ErrNoSequence
	}
	if err != nil {
		return sequenceState{}, Node{}, err
	}
	last, err := decodeNumber(node.Data)
	if err != nil || node.Version == -1 { // which a write would take for any version
		return sequenceState{}, node, ErrMalformed
	}
	return sequenceState{
		last: last, version: node.Version, guard: guard, incarnation: node.Czxid, empty: len(node.Data) == 0,
	}, node, nil
}

// guards lists the sequence's children.
func (s Sequence) guards(ctx context.Context, tree Tree) (guards map[string]bool, foreignChildren int, _ error) {
	names, err := tree.Children(ctx, s.Path)
	if errors.Is(err, ErrNoNode) {
		return nil, 0, ErrNoSequence
	}
	if err != nil {
		return nil, 0, err
	}
	guards = map[string]bool{}
	for _, name := range names {
		if strings.HasPrefix(name, guardPrefix) {
			guards[name] = true
		}
	}
	return guards, len(names) - len(guards), nil
}

// advance is the compare-and-set. The incarnation it returns is that of the node it has written.
func (s Sequence) advance(ctx context.Context, store Store, from sequenceState, last int64) (sequenceState, error) {
	nodes, err := store.Commit(ctx, s.changes(from, last)...)
	if err != nil {
		return sequenceState{}, err
	}
	written := nodes[len(nodes)-1]
	return sequenceState{last: last, version: written.Version, guard: from.guard, incarnation: written.Czxid}, nil
}

// changes are those of a compare-and-set.
func (s Sequence) changes(from sequenceState, last int64) []Change {
	return append([]Change{Check(s.Path+"/"+from.guard, -1)}, s.set(from.version, last)...)
}

// set writes a number over a version. The node is never left at version −1, which ZooKeeper takes for any.
func (s Sequence) set(version int32, last int64) []Change {
	data := encodeNumber(last)
	if version == -2 {
		return []Change{Set(s.Path, data, version), Set(s.Path, data, -1)}
	}
	return []Change{Set(s.Path, data, version)}
}

func encodeNumber(number int64) []byte {
	return binary.BigEndian.AppendUint64(nil, uint64(number))
}

func decodeNumber(data []byte) (int64, error) {
	switch len(data) {
	case 0:
		return 0, nil
	case 8:
		return int64(binary.BigEndian.Uint64(data)), nil
	}
	return 0, ErrMalformed
}

// isText says that eight bytes are characters rather than a number: those of a kazoo counter that has come to 12345678, say.
func isText(data []byte) bool {
	return len(data) == 8 && !slices.ContainsFunc(data, func(b byte) bool { return b < ' ' || b > '~' })
}

func newGuard() string {
	unique := make([]byte, 16)
	_, _ = rand.Read(unique) // never fails
	return guardPrefix + hex.EncodeToString(unique)
}
