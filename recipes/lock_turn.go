package recipes

import (
	"context"
	"errors"
	"maps"
	"slices"
)

// MaxHolders is how many holders a Turn names at most.
const MaxHolders = 16

// Turn is how a place stands in its queue.
type Turn struct {
	First      bool        // the place has to wait for no contender: Grant
	Position   int         // contenders ahead; those of them that need not be waited for count too
	Holders    []Contender // those that hold the lock, as far as they are known; at most MaxHolders
	Changed    *Signal     // given when it is worth to look again; nil if First
	Revocation Revocation  // what is asked of this place, though it only waits: an operator may break it
	Marked     *Signal     // given when the place's own node may have changed or gone: look again too
}

// wait is whom a place waits for.
type wait struct {
	fresh       bool // found by the first look, and not glanced at since
	position    int
	holders     queue // the first of those that hold the lock
	predecessor child // the nearest contender that keeps the place from its turn
	last        bool  // when the predecessor is gone it is the place's turn, without another look at the queue
	blocking    queue // all that have to go, of a mutex whose order the numbers tell; otherwise nil
	changed     *Signal
}

// Look reads how the place stands and watches the nearest contender that it must wait for, and that one alone, so that a
// release wakes one waiter. Errors: ErrGone, ErrKindMismatch, ErrDirectory, and those of the session.
//
// A list that contains our node contains every earlier place that still existed when it was read. So a reader that lags
// may delay a turn and never causes one.
func (p *Place) Look(ctx context.Context) (Turn, error) {
	p.lookEarly(ctx)
	own, marked, err := p.watchOwn(ctx)
	if err != nil {
		return Turn{}, err
	}
	turn, err := p.look(ctx)
	if err != nil {
		return Turn{}, err
	}
	turn.Revocation, turn.Marked = revocationIn(own.Data), marked
	return turn, nil
}

// isFirst says whether the list that came with the place shows that it is its turn. A list in which anything is unusual says nothing.
func (p *Place) isFirst() bool {
	if p.made.Queue == nil || p.made.Czxid == 0 || p.delayed.own > 0 || p.delayed.any {
		return false
	}
	contenders, foreignChildren := p.lock.readQueue(p.made.Queue)
	if foreignChildren > 0 && p.lock.Nested || !contenders.numbersTell() {
		return false
	}
	ahead, ok := contenders.inOrder().aheadOf(p.own.name)
	return ok && !ahead.hasOtherKind(p.own.mode) && len(ahead.blocking(p.own.mode)) == 0
}

// lookEarly lists the queue before the place's own node has been read, which Join's session is about then: so the two reads
// take the time of one. A list that does not show the place yet, or an error, says nothing.
func (p *Place) lookEarly(ctx context.Context) {
	if p.listed || p.early != nil {
		return
	}
	names, err := p.session.Children(ctx, p.lock.Path)
	if err == nil && slices.Contains(names, p.own.name) {
		p.early = names
	}
}

// list lists the children of the queue's directory, unless that was done early.
func (p *Place) list(ctx context.Context) ([]string, error) {
	if early := p.early; early != nil {
		p.early = nil
		return early, nil
	}
	return p.session.Children(ctx, p.lock.Path)
}

// look goes through the queue until there is no contender to wait for, or one that can be watched.
func (p *Place) look(ctx context.Context) (Turn, error) {
	if p.sawAllDeleted() {
		return Turn{First: true}, nil
	}
	for !p.wait.last {
		ahead, err := p.ahead(ctx)
		if err != nil {
			return Turn{}, err
		}
		blocking := ahead.blocking(p.own.mode)
		if len(blocking) == 0 {
			return Turn{First: true}, nil
		}
		p.waitFor(ahead, blocking)
		if err := p.watchPredecessor(ctx); !errors.Is(err, ErrNoNode) {
			return p.turn(), err
		}
	}
	err := p.watchPredecessor(ctx)
	if errors.Is(err, ErrNoNode) {
		return Turn{First: true}, nil
	}
	return p.turn(), err
}

// sawAllDeleted says whether the reader has heard of the deletion of every contender that the place waits for. They were all that stood
// ahead in a list with our node, none comes in between (see waitFor), and what was deleted stays so: it is our turn, whichever
// of the reader's connections told. A look that read our own node has just found it standing, and Grant looks again.
func (p *Place) sawAllDeleted() bool {
	for _, c := range slices.Backward(p.wait.blocking) { // the nearest is most likely to stand
		if !p.session.SawDeleted(p.lock.child(c)) {
			return false
		}
	}
	return len(p.wait.blocking) > 0
}

// ahead lists the contenders ahead, in order.
func (p *Place) ahead(ctx context.Context) (queue, error) {
	names, err := p.list(ctx)
	if errors.Is(err, ErrNoNode) {
		return nil, ErrGone
	}
	if err != nil {
		return nil, err
	}
	contenders, foreignChildren := p.lock.readQueue(names)
	if p.lock.Nested && foreignChildren > 0 {
		return nil, ErrDirectory
	}
	contenders, err = p.inOrder(ctx, contenders)
	if err != nil {
		return nil, err
	}
	ahead, ok := contenders.aheadOf(p.own.name)
	switch {
	case !ok: // the tree has shown it before, so it is not the reader that lags
		return nil, ErrGone
	case ahead.hasOtherKind(p.own.mode):
		return nil, ErrKindMismatch
	}
	return ahead, p.learnOfDelays(ctx, ahead)
}

// inOrder sorts a list of contenders, of which those that came later than this place may be missing. How it is done is found
// out with the first list, since a contender that was not in it came later.
func (p *Place) inOrder(ctx context.Context, contenders queue) (queue, error) {
	if !p.listed && !contenders.numbersTell() {
		dates, err := contenders.dates(p.lock.reader(ctx, p.session))
		if err != nil {
			return nil, err
		}
		p.dates = dates
	}
	p.listed = true
	if p.dates != nil {
		return contenders.dated(p.dates).inOrder(), nil
	}
	return contenders.numbered().inOrder(), nil
}

// waitFor notes whom the place waits for. Once it has seen those ahead, no other comes in between: numbers are given out in
// order, and the directory that gives them out cannot start anew while our node is in it; where they are not, the order is
// that of the czxids. The exception is Curator's writer, who may become a reader and keep its number, which matters to
// those who wait for readers.
func (p *Place) waitFor(ahead, blocking queue) {
	predecessor := blocking[len(blocking)-1]
	holders := ahead.holders()
	p.wait = wait{
		fresh:       p.wait.predecessor.name == "",
		position:    len(ahead),
		holders:     holders[:min(len(holders), MaxHolders)],
		predecessor: predecessor,
		last:        len(blocking) == 1 && !(p.own.mode == Write && predecessor.mode == Write),
	}
	if p.own.mode == Exclusive && p.dates == nil {
		p.wait.blocking = ahead // all of the same kind
	}
}

// watchPredecessor reads the predecessor with a watch. ErrNoNode if it is gone. Reading and not asking whether it exists
// leaves no watch behind on a node that does not.
func (p *Place) watchPredecessor(ctx context.Context) error {
	if p.denied == p.wait.predecessor.name {
		return p.watchList(ctx)
	}
	node, changed, err := p.session.Watch(ctx, p.lock.child(p.wait.predecessor))
	if errors.Is(err, ErrDenied) {
		p.denied = p.wait.predecessor.name
		return p.watchList(ctx)
	}
	if err != nil {
		return err
	}
	p.wait.changed = changed
	if p.wait.holders.contains(p.wait.predecessor) {
		p.know(p.wait.predecessor, node)
	}
	return nil
}

// watchList is watchPredecessor for one that may not be read: the list of all shows its end, too.
func (p *Place) watchList(ctx context.Context) error {
	names, changed, err := p.session.WatchChildren(ctx, p.lock.Path)
	if err != nil {
		return err
	}
	if !slices.Contains(names, p.wait.predecessor.name) {
		return ErrNoNode
	}
	p.wait.changed = changed
	return nil
}

// turn is how a place stands that has to wait.
func (p *Place) turn() Turn {
	turn := Turn{Position: p.wait.position, Changed: p.wait.changed}
	for _, holder := range p.wait.holders {
		if contender, ok := p.known[holder.name]; ok {
			turn.Holders = append(turn.Holders, contender)
		}
	}
	return turn
}

// Glance brings the position and the holders of a waiting place up to date, for people: Look tells of the holders only what
// it learns on its way. It lists the queue, unless the first Look has just done so, reads each holder once, leaves the
// watches alone, and returns a Turn that says neither First nor what is asked of the place. Call it after a Look that was
// not First. Errors as of Look.
func (p *Place) Glance(ctx context.Context) (Turn, error) {
	if err := p.listAgain(ctx); err != nil {
		return Turn{}, err
	}
	for _, holder := range p.wait.holders {
		if err := p.meet(ctx, holder); err != nil {
			return Turn{}, err
		}
	}
	maps.DeleteFunc(p.known, func(name string, _ Contender) bool {
		return !slices.ContainsFunc(p.wait.holders, func(c child) bool { return c.name == name })
	})
	return p.turn(), nil
}

// listAgain brings the position and the holders up to date. The first glance follows the first look at once.
func (p *Place) listAgain(ctx context.Context) error {
	if p.wait.fresh {
		p.wait.fresh = false
		return nil
	}
	ahead, err := p.ahead(ctx)
	if err != nil {
		return err
	}
	holders := ahead.holders()
	p.wait.position, p.wait.holders = len(ahead), holders[:min(len(holders), MaxHolders)]
	return nil
}

// meet reads a holder that is not known yet. One that has just gone, or that may not be read, stays unknown.
func (p *Place) meet(ctx context.Context, holder child) error {
	if _, ok := p.known[holder.name]; ok || p.session.SawDeleted(p.lock.child(holder)) {
		return nil
	}
	node, err := p.session.Get(ctx, p.lock.child(holder))
	if errors.Is(err, ErrNoNode) || errors.Is(err, ErrDenied) {
		return nil
	}
	if err != nil {
		return err
	}
	p.know(holder, node)
	return nil
}

func (p *Place) know(holder child, node Node) {
	if p.known == nil {
		p.known = map[string]Contender{}
	}
	p.known[holder.name] = holder.contender(node)
}
