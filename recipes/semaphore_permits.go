package recipes

import (
	"cmp"
	"context"
	"errors"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Permits are what one caller has of a semaphore, or waits for. Their calls are for one goroutine, but Leave is for any.
type Permits struct {
	Token int64 // tells what was granted from all else, and is larger than that of everything granted before; 0 before the grant

	semaphore Semaphore
	session   Session
	about     About
	count     int
	place     *Place // in the queue; nil of permits that were come back to
	first     bool   // it is the first there
	nodes     []*Place
	number    numberRecord // as it was chosen, of a permit with a number
	borne     bool         // the record says that the permit bears it

	seen  seenPermits
	gone  *Signal // given when one of the nodes is gone after the grant
	leave sync.Once

	room, own, ends either // of what is waited for, of seen, and of gone
}

// seenPermits is what the nodes of permits have shown.
type seenPermits struct {
	revocation Revocation
	changed    *Signal // given when it is worth to look again; nil before the first look
}

// PermitsTurn is how a caller stands that waits for permits.
type PermitsTurn struct {
	Granted  bool
	Position int     // callers before it in the queue
	Limit    int     // as it is now
	Changed  *Signal // given when it is worth to look again; as the following
	Marked   *Signal
	Resized  *Signal
	Asked    Revocation // what is asked of the place in the queue, or of what was granted

	Quarantined int       // numbers that rest, where there is none for the permit
	Due         time.Time // when the first of them may be over, then
}

// Join takes the last place in the semaphore's queue, for so many permits. It cannot be cancelled. The caller must Leave.
func (s Semaphore) Join(ctx context.Context, session Session, count int, about About) (*Permits, error) {
	place, err := s.queue().Join(ctx, session, Exclusive, about)
	if err != nil {
		return nil, err
	}
	return s.newPermits(session, count, about, place), nil
}

func (s Semaphore) newPermits(session Session, count int, about About, place *Place) *Permits {
	made := &Permits{semaphore: s, session: session, about: about, count: count, place: place}
	return made
}

// Rejoin takes permits, or a place in the queue, again that stood when a process came back to its session. ErrGone if some are not there, or
// their end was asked for.
func (s Semaphore) Rejoin(session Adopter, standing []Standing, count int, about About) (*Permits, error) {
	if len(standing) == 1 && path.Dir(standing[0].Path) == s.queue().Path {
		place, err := s.queue().Rejoin(session, standing[0], about)
		if err != nil {
			return nil, err
		}
		return s.newPermits(session, count, about, place), nil
	}
	if len(standing) != count {
		return nil, ErrGone
	}
	made := s.newPermits(session, count, about, nil)
	for _, of := range standing {
		node, err := s.permits().Rejoin(session, of, about)
		if err != nil {
			return nil, err
		}
		if node.own.numbered != (s.Numbers != nil) {
			return nil, ErrGone
		}
		made.nodes, made.number.number = append(made.nodes, node), node.own.number
	}
	made.first = true
	return made, nil
}

// IsPermit says whether a node is one of a semaphore's permits, by its path.
func IsPermit(node string) bool {
	directory, name := path.Split(node)
	_, ok := parsePermit(name)
	return ok && strings.HasSuffix(directory, "/leases/")
}

// Look reads how the caller stands, and has the permits granted if its turn has come and there is room. Errors: ErrGone, ErrNoSemaphore,
// ErrTooManyPermits, and those of the session.
func (p *Permits) Look(ctx context.Context) (PermitsTurn, error) {
	turn, err := p.lookAtQueue(ctx)
	if err == nil && !turn.Asked.Break {
		turn.Limit, turn.Resized, err = p.semaphore.Admit(ctx, p.session, p.count)
	}
	if err != nil || turn.Asked.Break || !p.first {
		return turn, err
	}
	turn.Changed, err = p.lookForRoom(ctx, &turn)
	return turn, err
}

// lookAtQueue finds out whether the place is the first.
func (p *Permits) lookAtQueue(ctx context.Context) (turn PermitsTurn, _ error) {
	switch {
	case p.place == nil:
		return turn, nil
	case p.first:
		own, marked, err := p.place.watchOwn(ctx)
		return PermitsTurn{Marked: marked, Asked: revocationIn(own.Data)}, err
	case p.nodes == nil && p.place.isFirst():
		p.first = true
		return turn, nil
	}
	seen, err := p.place.Look(ctx)
	p.first = seen.First
	return PermitsTurn{Position: seen.Position, Changed: seen.Changed, Marked: seen.Marked, Asked: seen.Revocation}, err
}

// lookForRoom makes the permits' nodes, and has them granted if there are no more than the limit, which is read behind a list that shows them.
// Otherwise it returns what to wait for. What is asked of permits before they are granted is answered by giving them up, and others are
// made.
func (p *Permits) lookForRoom(ctx context.Context, turn *PermitsTurn) (changed *Signal, err error) {
	if changed, err := p.chooseNumber(ctx, turn); changed != nil || err != nil {
		return changed, err
	}
	if err := p.make(ctx); err != nil {
		return nil, err
	}
	if p.hasRoomAtOnce() {
		turn.Granted, err = p.grant(ctx)
		turn.Asked = Revocation{} // which was the place's in the queue
		return Given(), err
	}
	names, standing, changed, err := p.list(ctx)
	if err != nil {
		return nil, err
	}
	if turn.Limit, turn.Resized, err = p.semaphore.watchLimit(ctx, p.session); err != nil {
		return nil, err
	}
	isGranted := p.inTheWay(names, standing) <= turn.Limit
	if !isGranted || !p.isJustMade() {
		if _, _, err := p.lookAtOwn(ctx); err != nil {
			return nil, err
		}
	}
	switch {
	case p.seen.revocation.Asked && p.place != nil, p.isBeyond(turn.Limit):
		p.leaveNodes(ctx)
		return Given(), nil
	case !isGranted:
		queue, err := p.lookAtQueue(ctx)
		turn.Marked, turn.Asked = queue.Marked, queue.Asked
		return p.room.of(changed, p.seen.changed), err
	}
	turn.Granted, err = p.grant(ctx)
	turn.Asked = p.seen.revocation
	return Given(), err
}

// hasRoomAtOnce says whether nodes that were just made may be granted by what came with one of them: a list that shows them all, and the limit
// as it was read behind that.
func (p *Permits) hasRoomAtOnce() bool {
	return p.isJustMade() && slices.ContainsFunc(p.nodes, func(of *Place) bool {
		limit, err := decodeLimit(of.made.Beside)
		missing := func(node *Place) bool { return !slices.Contains(of.made.Queue, node.own.name) }
		return err == nil && len(of.made.Queue) <= limit && !p.isBeyond(limit) && !slices.ContainsFunc(p.nodes, missing)
	})
}

// list lists the permits, its own among them. A reader that has not heard of them yet is made to.
func (p *Permits) list(ctx context.Context) (names []string, standing queue, changed *Signal, err error) {
	for _, late := range []bool{true, false} {
		names, changed, err = p.session.WatchChildren(ctx, p.semaphore.permits().Path)
		if err != nil && !errors.Is(err, ErrNoNode) {
			return nil, nil, nil, err
		}
		standing, _ = p.semaphore.permits().readQueue(names)
		missing := slices.ContainsFunc(p.nodes, func(node *Place) bool { return !standing.contains(node.own) })
		if !missing {
			return names, standing, changed, nil
		}
		if late {
			if _, _, err := p.lookAtOwn(ctx); err != nil {
				return nil, nil, nil, err
			}
		}
	}
	return nil, nil, nil, ErrGone
}

// isJustMade says whether all is known of the nodes that it takes to grant them, though none of them was read yet: see Place.GrantAtOnce.
func (p *Permits) isJustMade() bool {
	return p.place != nil && p.seen.changed == nil && !slices.ContainsFunc(p.nodes, func(node *Place) bool { return node.made.Czxid == 0 })
}

// inTheWay counts the permits that must be within the limit: all that there are, since some may not have been granted before ours; of
// permits that were granted once, and that a process comes back to, those that are not newer.
func (p *Permits) inTheWay(names []string, standing queue) int {
	if p.place != nil || !standing.numbersTell() {
		return len(names)
	}
	newest := slices.MaxFunc(p.nodes, func(a, b *Place) int { return cmp.Compare(a.own.sequence, b.own.sequence) })
	ahead, _ := standing.inOrder().aheadOf(newest.own.name)
	return len(ahead) + 1
}

// make makes the nodes of the permits. It cannot be cancelled.
func (p *Permits) make(ctx context.Context) error {
	if p.nodes != nil {
		return nil
	}
	nodes, of := make([]*Place, p.count), p.semaphore.permits()
	if p.semaphore.Numbers != nil {
		of.bears = numberMark + strconv.Itoa(p.number.number)
	}
	err := EachOf(p.count, func(i int) (err error) {
		nodes[i], err = of.Join(ctx, p.session, Read, p.about)
		return err
	})
	p.nodes, p.seen = slices.DeleteFunc(nodes, func(made *Place) bool { return made == nil }), seenPermits{}
	if err != nil {
		p.leaveNodes(ctx)
	}
	return err
}

// lookAtOwn reads each of the nodes, unless nothing has changed in them.
func (p *Permits) lookAtOwn(ctx context.Context) (Revocation, *Signal, error) {
	if p.seen.changed != nil && !p.seen.changed.IsGiven() {
		return p.seen.revocation, p.seen.changed, nil
	}
	p.seen = seenPermits{}
	var asked Revocation
	changes := make([]*Signal, len(p.nodes))
	for i, node := range p.nodes {
		own, changed, err := node.watchOwn(ctx)
		if err != nil {
			return Revocation{}, nil, err
		}
		node.made.Czxid, changes[i] = own.Czxid, changed
		asked = asked.with(revocationIn(own.Data))
	}
	p.seen = seenPermits{asked, p.own.of(changes...)}
	return asked, p.seen.changed, nil
}

// sortNodes puts the nodes in the order in which they were made.
func (p *Permits) sortNodes() {
	slices.SortFunc(p.nodes, func(a, b *Place) int { return cmp.Compare(a.made.Czxid, b.made.Czxid) })
}

// with is what is asked of one who is asked for both.
func (r Revocation) with(other Revocation) Revocation {
	switch {
	case !r.Asked:
		return other
	case !other.Asked:
		return r
	}
	r.Grace, r.Break = sooner(r.Grace, other.Grace), r.Break || other.Break
	return r
}

// grant has the permits held if their session is valid and nothing has become of their nodes meanwhile. Then the queue is left. A permit whose
// number another one bears by now is given up.
func (p *Permits) grant(ctx context.Context) (bool, error) {
	if bears, err := p.bear(ctx); !bears {
		if err == nil {
			p.leaveNodes(ctx)
		}
		return false, err
	}
	if err := p.session.Prove(ctx); err != nil {
		return false, err
	}
	gone := make([]*Signal, len(p.nodes))
	for i, node := range p.nodes {
		if gone[i] = node.Gone(); gone[i].IsGiven() {
			return false, ErrGone
		}
	}
	if p.seen.changed != nil && p.seen.changed.IsGiven() {
		return false, nil
	}
	p.sortNodes()
	p.Token, p.gone = p.nodes[0].made.Czxid, p.ends.of(gone...)
	return true, nil
}

// LookAgain reads what is asked of permits that were granted. The signal is given when it is worth to look again. ErrGone if another program has
// deleted one of their nodes; other errors are those of the session, and say nothing about the permits.
func (p *Permits) LookAgain(ctx context.Context) (Revocation, *Signal, error) {
	return p.lookAtOwn(ctx)
}

// Changed is given when it is worth to LookAgain, once the permits are granted; nil if their nodes were not read yet: look again soon.
func (p *Permits) Changed() *Signal { return p.seen.changed }

// Gone is given when the session finds that another program has deleted one of the nodes of permits that were granted.
func (p *Permits) Gone() *Signal { return p.gone }

// Disregard says that no caller counts on the permits any more, though they are kept for a while.
func (p *Permits) Disregard() {
	for _, node := range p.nodes {
		node.Disregard()
	}
}

// LeaveQueue lets the next in the queue have its turn, once the permits are granted. It cannot be cancelled.
func (p *Permits) LeaveQueue(ctx context.Context) {
	if p.place != nil {
		p.place.Leave(ctx)
	}
}

// Leave gives the permits up, held or not, and returns when their nodes are gone, or the session is. First go the permits, so that the next
// in the queue does not find them. It cannot be cancelled. Later calls wait for the first.
func (p *Permits) Leave(ctx context.Context) {
	p.leave.Do(func() {
		p.leaveNodes(ctx)
		p.LeaveQueue(ctx)
		for _, each := range []*either{&p.room, &p.own, &p.ends} {
			each.drop()
		}
	})
}

// leaveNodes gives up the permits' nodes. A number of which the caller was never told is free at once.
func (p *Permits) leaveNodes(ctx context.Context) {
	if p.Token == 0 && p.place != nil {
		p.LetGo(ctx)
	}
	_ = EachOf(len(p.nodes), func(i int) error {
		p.nodes[i].Leave(ctx)
		return nil
	})
	p.nodes, p.seen, p.number, p.borne = nil, seenPermits{}, numberRecord{}, false
}
