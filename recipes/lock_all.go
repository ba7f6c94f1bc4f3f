package recipes

import (
	"context"
	"fmt"
	"path"
	"slices"
	"sync"
	"time"
)

// A Wanted is one of several locks that are taken at once.
type Wanted struct {
	Lock Lock
	Mode Mode
}

// Places are one caller's in the queues of several locks, waited for and held together. Their calls are for one goroutine, but Leave is for any.
type Places struct {
	session Session
	all     []*Place
	first   []bool // whose turn has come: no contender takes a place before one that stands
	holds   []*Hold
	gone    *Signal // given when one of the nodes is gone after the grant
	leave   sync.Once

	changes, ends either // of what the newest look found, and of gone
}

// AllTurn is how several places stand in their queues.
type AllTurn struct {
	Granted bool
	Turns   []Turn        // of each place
	At      int           // which place an error is about
	Delay   time.Duration // for how long all must wait yet, though it is the turn of each: see Place.OutwaitDelay
	Changed *Signal       // given when it is worth to look again
	Asked   Revocation    // what is asked of any of the places
}

// JoinAll takes the last place in the queues of several locks, in one transaction: of any two that join so, the one is ahead of the other in
// each queue in which both stand. So a caller that waits for another waits for one that joined before, and none waits in a circle. It cannot be
// cancelled. The caller must Leave.
func JoinAll(ctx context.Context, session Session, wanted []Wanted, about About) (*Places, error) {
	ends := make([]QueueEnd, len(wanted))
	for i, of := range wanted {
		ends[i] = QueueEnd{of.Lock.Path, of.Lock.marker(of.Mode)}
	}
	made, err := session.EnqueueAll(ctx, ends, about.encode())
	if err != nil {
		return nil, err
	}
	joined := newPlaces(session)
	var strange error
	for i, of := range wanted {
		own, ok := of.Lock.parse(made[i].Name)
		if !ok {
			strange = fmt.Errorf("place %q has no sequence number", made[i].Name)
			own.name = made[i].Name // by which it is left
		}
		joined.add(&Place{lock: of.Lock, session: session, about: about, own: own, path: of.Lock.child(own), made: made[i]})
	}
	if strange != nil {
		joined.Leave(ctx)
		return nil, strange
	}
	return joined, nil
}

// RejoinAll takes places again that stood when a process came back to their session, as Lock.Rejoin does. ErrGone if one is not there any more.
func RejoinAll(session Adopter, standing []Standing, wanted []Wanted, about About) (*Places, error) {
	joined := newPlaces(session)
	for _, of := range wanted {
		own := slices.IndexFunc(standing, func(s Standing) bool { return path.Dir(s.Path) == of.Lock.Path })
		if own < 0 || len(standing) != len(wanted) {
			return nil, ErrGone
		}
		place, err := of.Lock.Rejoin(session, standing[own], about)
		if err != nil {
			return nil, err
		}
		joined.add(place)
	}
	return joined, nil
}

func newPlaces(session Session) *Places {
	made := &Places{session: session}
	return made
}

func (p *Places) add(place *Place) { p.all, p.first = append(p.all, place), append(p.first, false) }

// Look reads how the places stand, and has all of them granted if it is the turn of each. Errors as of Place.Look.
func (p *Places) Look(ctx context.Context, store Store) (turn AllTurn, err error) {
	var changes []*Signal
	waits := false
	for i := range p.all {
		of, err := p.lookAt(ctx, i)
		if turn.At = i; err != nil {
			return turn, err
		}
		p.first[i] = of.First
		waits = waits || !of.First
		turn.Turns, turn.Asked = append(turn.Turns, of), turn.Asked.with(of.Revocation)
		changes = append(changes, of.Changed, of.Marked)
	}
	if waits || turn.Asked.Break {
		turn.Changed = p.changes.of(changes...)
		return turn, nil
	}
	for i, place := range p.all {
		left, err := place.OutwaitDelay(ctx, store)
		if turn.At = i; err != nil {
			return turn, err
		}
		turn.Delay = max(turn.Delay, left)
	}
	if turn.Delay > 0 {
		turn.Changed = p.changes.of(changes...)
		return turn, nil
	}
	turn.Granted, err = p.grant(ctx)
	turn.Changed = Given()
	return turn, err
}

// lookAt looks at one place. Of one whose turn has come, only what is asked can be new.
func (p *Places) lookAt(ctx context.Context, i int) (Turn, error) {
	if !p.first[i] {
		return p.all[i].Look(ctx)
	}
	own, marked, err := p.all[i].watchOwn(ctx)
	return Turn{First: true, Revocation: revocationIn(own.Data), Marked: marked}, err
}

// grant has the places held if nothing has become of any while the session was proving itself for the last one, as Place.Grant does for one.
func (p *Places) grant(ctx context.Context) (bool, error) {
	holds, gone := make([]*Hold, len(p.all)), make([]*Signal, len(p.all))
	for i, place := range p.all {
		var err error
		if holds[i], err = place.Grant(ctx); err != nil {
			return false, err
		}
		gone[i] = place.Gone()
	}
	for i, hold := range holds {
		if hold.Changed.IsGiven() || gone[i].IsGiven() {
			return false, nil
		}
	}
	p.holds, p.gone = holds, p.ends.of(gone...)
	return true, nil
}

// Glance brings the positions of waiting places up to date, for people; see Place.Glance. Call it after a Look that granted nothing.
func (p *Places) Glance(ctx context.Context) ([]Turn, error) {
	turns := make([]Turn, len(p.all))
	for i, place := range p.all {
		var err error
		switch {
		case p.first[i]:
			turns[i].First = true
		case place.wait.position == 1: // of a place right behind the holder, Look has told everything
			turns[i] = place.turn()
		default:
			turns[i], err = place.Glance(ctx)
		}
		if err != nil {
			return nil, err
		}
	}
	return turns, nil
}

// Asked is what was asked of any of the locks as they were granted. The signal is given when it is worth to LookAgain.
func (p *Places) Asked() (asked Revocation, changed *Signal) {
	changes := make([]*Signal, len(p.holds))
	for i, hold := range p.holds {
		asked, changes[i] = asked.with(hold.Revocation), hold.Changed
	}
	return asked, p.changes.of(changes...)
}

// LookAgain reads what is asked of any of the locks that are held; see Hold.Look.
func (p *Places) LookAgain(ctx context.Context) (asked Revocation, changed *Signal, err error) {
	changes := make([]*Signal, len(p.holds))
	for i, hold := range p.holds {
		of, changed, err := hold.Look(ctx)
		if err != nil {
			return Revocation{}, nil, err
		}
		asked, changes[i] = asked.with(of), changed
	}
	return asked, p.changes.of(changes...), nil
}

// Guards are the locks that are held as guards, in the order of JoinAll.
func (p *Places) Guards() []Guard {
	guards := make([]Guard, len(p.holds))
	for i, hold := range p.holds {
		guards[i] = hold.Guard()
	}
	return guards
}

// Gone is given when the session finds that another program has deleted one of the nodes of places that were granted.
func (p *Places) Gone() *Signal { return p.gone }

// Disregard says that no caller counts on the places any more, though they are kept for a while.
func (p *Places) Disregard() {
	for _, place := range p.all {
		place.Disregard()
	}
}

// Leave gives all places up, held or not, and returns when their nodes are gone, or the session is. It cannot be cancelled. Later calls wait
// for the first.
func (p *Places) Leave(ctx context.Context) {
	p.leave.Do(func() {
		_ = EachOf(len(p.all), func(i int) error {
			p.all[i].Leave(ctx)
			return nil
		})
		p.changes.drop()
		p.ends.drop()
	})
}
