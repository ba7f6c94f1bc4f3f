package recipes

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path"
	"slices"
	"sync"
)

// readyName is the node in a double barrier's directory that opens it.
const readyName = "ready"

// An Entrant is one caller at a double barrier. Each has an ephemeral node there. One that finds as many as are to enter makes the node `ready`,
// or writes it anew: with that transaction begins a round, of those whose nodes are older. So what a round has left behind whose last caller
// died lets no caller in.
//
// To leave, each deletes its node and waits until the others of its round have. The first of them in the order of names does so last, and
// deletes `ready` with it: Curator's and kazoo's callers wait for the first. Entrants are for any goroutine.
type Entrant struct {
	Token int64 // the transaction that made its node

	barrier Barrier
	session MemberSession
	name    string
	gone    *Signal
	leave   sync.Once
}

// An Entrance is how an entrant stands at a double barrier.
type Entrance struct {
	Round   Round   // that it is inside with; zero if it waits
	Present int     // how many stand there, if it waits
	Changed *Signal // given when it is worth to look again; as the following
	Others  *Signal // nil unless a round has left `ready` behind: Curator's callers who come then do not touch it
}

// A Round is those who are inside a double barrier together, as one of them sees them.
type Round struct {
	Number int64 // the transaction that has opened the barrier for them

	barrier Barrier
	own     string
}

func (b Barrier) ready() string            { return b.child(readyName) }
func (b Barrier) child(name string) string { return b.Path + "/" + name }
func (e *Entrant) path() string            { return e.barrier.child(e.name) }

// Join takes a place at the double barrier. It cannot be cancelled. The caller must Leave.
func (b Barrier) Join(ctx context.Context, session MemberSession, about About) (*Entrant, error) {
	name := entrantName()
	node, gone, err := session.Create(ctx, b.child(name), about.encode())
	if err != nil {
		return nil, fmt.Errorf("place at the barrier: %w", err)
	}
	return &Entrant{Token: node.Czxid, barrier: b, session: session, name: name, gone: gone}, nil
}

// entrantName is a uuid, as Curator draws them.
func entrantName() string {
	bits := make([]byte, 16)
	_, _ = rand.Read(bits) // never fails: see its documentation
	bits[6], bits[8] = bits[6]&0x0f|0x40, bits[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", bits[:4], bits[4:6], bits[6:8], bits[8:10], bits[10:])
}

// Rejoin takes a place again that stood when a process came back to its session. ErrGone if it is no place at this barrier.
func (b Barrier) Rejoin(session Adopter, standing Standing) (*Entrant, error) {
	if path.Dir(standing.Path) != b.Path {
		return nil, ErrGone
	}
	gone, err := session.Adopt(standing, true)
	if err != nil {
		return nil, err
	}
	return &Entrant{Token: standing.Node.Czxid, barrier: b, session: session, name: path.Base(standing.Path), gone: gone}, nil
}

// Enter finds out whether the caller is inside, and opens the barrier if as many stand there as are to enter. ErrGone if its place is gone;
// other errors are those of the session and of the store.
func (e *Entrant) Enter(ctx context.Context, store Store, size int) (entrance Entrance, err error) {
	ready, changed, err := e.watchReady(ctx)
	switch {
	case err != nil:
		return entrance, err
	case ready.Mzxid > e.Token:
		_, err = e.Look(ctx) // the place may be gone
		return Entrance{Round: Round{ready.Mzxid, e.barrier, e.name}}, err
	}
	present, err := e.present(ctx)
	if err != nil {
		return entrance, err
	}
	inside, newer, err := e.barrier.before(ctx, e.session, present, ready.Mzxid)
	switch {
	case err != nil:
		return entrance, err
	case len(inside) > 0, newer < size: // a late entrant is of the next round: one that joined this one would be counted for that, too
		entrance = Entrance{Present: newer, Changed: changed}
		if ready.Czxid != 0 {
			entrance.Others, err = e.watchOthers(ctx, present)
		}
		return entrance, err
	}
	return Entrance{Present: newer, Changed: Given()}, e.open(ctx, store, ready)
}

// watchOthers returns a signal that is given when others stand at the barrier than those who are present.
func (e *Entrant) watchOthers(ctx context.Context, present []string) (*Signal, error) {
	listed, changed, err := e.session.WatchChildren(ctx, e.barrier.Path)
	if errors.Is(err, ErrNoNode) || err == nil && !slices.Equal(entrants(listed), present) {
		return Given(), nil
	}
	return changed, err
}

// watchReady reads the node that opens the barrier, zero if there is none, and returns a signal that is given when that changes.
func (e *Entrant) watchReady(ctx context.Context) (Node, *Signal, error) {
	node, changed, err := e.session.Watch(ctx, e.barrier.ready())
	if errors.Is(err, ErrNoNode) {
		_, changed, err = e.session.WatchChildren(ctx, e.barrier.ready())
		if err == nil { // made meanwhile
			return Node{}, Given(), nil
		}
	}
	if errors.Is(err, ErrNoNode) {
		return Node{}, changed, nil
	}
	return node, changed, err
}

// present lists those who stand at the barrier, itself among them. A reader that has not heard of it yet is made to.
func (e *Entrant) present(ctx context.Context) ([]string, error) {
	names, err := e.barrier.present(ctx, e.session)
	if err == nil && !slices.Contains(names, e.name) {
		if err = e.session.CatchUp(ctx); err == nil {
			names, err = e.barrier.present(ctx, e.session)
		}
	}
	if err == nil && !slices.Contains(names, e.name) {
		err = ErrGone
	}
	return names, err
}

// present lists those who stand at the barrier, in the order of names.
func (b Barrier) present(ctx context.Context, tree Tree) ([]string, error) {
	listed, err := tree.Children(ctx, b.Path)
	if err != nil && !errors.Is(err, ErrNoNode) {
		return nil, err
	}
	return entrants(listed), nil
}

// entrants are the names of those who stand at a barrier, in their order.
func entrants(listed []string) []string {
	names := slices.DeleteFunc(slices.Clone(listed), func(name string) bool { return name == readyName })
	slices.Sort(names)
	return names
}

// An entrant is one caller at a double barrier, perhaps another program's.
type entrant struct {
	name string
	ours bool // it is a caller of Sidekeeper's
}

// before are those of the names whose nodes are older than a transaction, none if that is 0, and how many are newer. A caller that has left
// since the names were listed is neither.
func (b Barrier) before(ctx context.Context, tree Tree, names []string, transaction int64) (older []entrant, newer int, _ error) {
	if transaction == 0 {
		return nil, len(names), nil
	}
	older, gone := make([]entrant, len(names)), make([]bool, len(names))
	err := EachOf(len(names), func(i int) error {
		node, err := tree.Get(ctx, b.child(names[i]))
		if err == nil && node.Czxid < transaction {
			older[i] = entrant{names[i], isOurs(node.Data)}
		}
		if gone[i] = errors.Is(err, ErrNoNode); gone[i] {
			err = nil
		}
		return err
	})
	older = slices.DeleteFunc(older, func(a entrant) bool { return a.name == "" })
	newer = len(names) - len(older)
	for _, left := range gone {
		if left {
			newer--
		}
	}
	return older, newer, err
}

// open begins a round, unless another caller has, or the entrant's place is gone. ready is as it was read.
func (e *Entrant) open(ctx context.Context, store Store, ready Node) error {
	begin := Create(e.barrier.ready(), []byte{})
	if ready.Czxid != 0 {
		begin = Set(e.barrier.ready(), []byte{}, ready.Version)
	}
	_, err := store.Commit(ctx, Check(e.path(), -1), begin)
	if err == nil || isMoved(err) || errors.Is(err, ErrOutcomeUnknown) {
		return e.session.CatchUp(ctx)
	}
	return err
}

// Look says whether the place stands. The signal is given when it is worth to look again. ErrGone if another program deleted it; other
// errors are those of the session, and say nothing about the place.
func (e *Entrant) Look(ctx context.Context) (*Signal, error) {
	for _, late := range []bool{true, false} { // the reader may be
		_, changed, seen, err := e.session.WatchOwn(ctx, e.path())
		if err == nil {
			seen() // no caller asks an entrant for its end
		}
		if !errors.Is(err, ErrNoNode) {
			return changed, err
		}
		if err := e.session.CatchUp(ctx); late && err != nil {
			return nil, err
		}
	}
	return nil, ErrGone
}

// AwaitTurn returns when the caller may leave its place: at once, unless that is the first of the round, which is left last, or the first of
// Sidekeeper's, which is left after the others of Sidekeeper's, so that one of them is the last: see Close.
func (r Round) AwaitTurn(ctx context.Context, tree Tree) error {
	inside, err := r.inside(ctx, tree)
	if err != nil || len(inside) == 0 {
		return err
	}
	if inside[0].name != r.own {
		inside = slices.DeleteFunc(inside, func(a entrant) bool { return !a.ours })
	}
	if len(inside) == 0 || inside[0].name != r.own {
		return nil
	}
	return r.awaitGone(ctx, tree, inside[1:])
}

// AwaitOthers returns when no other caller of the round stands at the barrier.
func (r Round) AwaitOthers(ctx context.Context, tree Tree) error {
	inside, err := r.inside(ctx, tree)
	if err != nil {
		return err
	}
	return r.awaitGone(ctx, tree, slices.DeleteFunc(inside, func(a entrant) bool { return a.name == r.own }))
}

// inside are those of the round who stand at the barrier, in the order of names.
func (r Round) inside(ctx context.Context, tree Tree) ([]entrant, error) {
	if err := tree.CatchUp(ctx); err != nil {
		return nil, err
	}
	present, err := r.barrier.present(ctx, tree)
	if err != nil {
		return nil, err
	}
	inside, _, err := r.barrier.before(ctx, tree, present, r.Number)
	return inside, err
}

// awaitGone returns when none of those stands. Their names are never given again.
func (r Round) awaitGone(ctx context.Context, tree Tree, those []entrant) error {
	for _, each := range those {
		_, changed, err := tree.Watch(ctx, r.barrier.child(each.name))
		for err == nil {
			if err = changed.Await(ctx); err == nil {
				_, changed, err = tree.Watch(ctx, r.barrier.child(each.name))
			}
		}
		if !errors.Is(err, ErrNoNode) {
			return err
		}
	}
	return nil
}

// Close has the last of Sidekeeper's who leaves take with it what opens the barrier, so that no caller comes between the two. Curator's and
// kazoo's callers do not need it once they have heard of it, and kazoo's first waits for its end, too. If that fails, it is only left.
func (e *Entrant) Close(ctx context.Context, store Store) {
	ctx = context.WithoutCancel(ctx) // its caller may have gone
	if e.isLast(ctx) {
		_, _ = store.Commit(ctx, Delete(e.path(), -1), Delete(e.barrier.ready(), -1))
	}
}

// isLast says whether no other caller of Sidekeeper's stands at the barrier.
func (e *Entrant) isLast(ctx context.Context) bool {
	present, err := e.barrier.present(ctx, e.session)
	for _, name := range present {
		node, err := e.session.Get(ctx, e.barrier.child(name))
		if err != nil && !errors.Is(err, ErrNoNode) || name != e.name && isOurs(node.Data) {
			return false
		}
	}
	return err == nil
}

// Leave gives the place up, and returns when its node or the session is gone. It cannot be cancelled, since it is done for callers that have
// gone themselves. Later calls wait for the first.
func (e *Entrant) Leave(ctx context.Context) {
	e.leave.Do(func() { e.session.Delete(ctx, e.path()) })
}

// Disregard says that no caller counts on the place any more, though it is kept for a while.
func (e *Entrant) Disregard() { e.session.Disregard(e.path()) }

// Gone is given when the session finds that another program deleted the node. Look finds it sooner.
func (e *Entrant) Gone() *Signal { return e.gone }
