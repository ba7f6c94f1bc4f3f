package recipes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strconv"
)

// mostExplained is how many locks one explanation goes through.
const mostExplained = 64

// Waits is where a lease that has or wants several locks publishes which of them it waits for. With that, a sidecar that looks at the queues
// knows what those who stand there wait for elsewhere, whichever sidecar they came through. What is published says only where to look: the
// order of the contenders is read from the queues themselves, so that what is old or missing explains too little and nothing wrong.
type Waits struct {
	Path string
	Lock func(name string) (lock Lock, ok bool) // not ok if that is no name
}

// Waiting is what one lease publishes.
type Waiting struct {
	Form  int      `json:"sidekeeper"`
	Locks []string `json:"waits"`          // their names, in order
	Asks  []string `json:"asks,omitempty"` // for which of them its caller asks to be told of a circle

	Lease string `json:"-"` // the lease's number, which stands in the node's name
}

// A Link is one session in a circle: it waits for a lock for which the next one stands ahead of it.
type Link struct {
	Session, Next int64
	Lease         string
	Lock          string
	Contender     Contender // its place there
	Ahead         int64     // the token of the next one's place there
	Asks          bool
}

// An Explanation is the locks that some callers wait for, directly or since those wait who are ahead of them.
type Explanation struct {
	Locks      []*ExplainedLock
	Cycles     [][]Link
	Incomplete bool              // there was more than could be looked at
	Waiting    map[int64]Waiting // what those who stand there have published, by session

	met []int64 // those sessions, in the order in which they were found
}

// An ExplainedLock is one of them.
type ExplainedLock struct {
	Name string
	View
}

// publication is how the name of a node ends in which something is published: with the session and the number of its lease.
var publication = regexp.MustCompile(`-([0-9a-f]{16})-([0-9a-f]{8})--?[0-9]+$`)

// Publish publishes what a lease waits for that stands on the session with this id, and returns the node, for Dequeue.
func (w Waits) Publish(ctx context.Context, session Session, id int64, waiting Waiting) (node string, err error) {
	waiting.Form, waiting.Locks = currentForm, waiting.Locks[:min(len(waiting.Locks), mostExplained)]
	made, err := session.Enqueue(ctx, w.Path, fmt.Sprintf("-%016x-%s-", uint64(id), waiting.Lease), encode(waiting))
	if err != nil {
		return "", err
	}
	node = made.Path
	session.Disregard(node)
	return node, nil
}

// LocksOf are the locks that the lease with this number has published; none if it has not.
func (w Waits) LocksOf(ctx context.Context, tree Tree, lease string) (locks []string, err error) {
	published, err := w.published(ctx, tree)
	for session, names := range published {
		if publication.FindStringSubmatch(names[0])[2] == lease {
			waiting, err := w.waiting(ctx, tree, session, names)
			return waiting.Locks, err
		}
	}
	return nil, err
}

// published lists the nodes in which something is published, by session.
func (w Waits) published(ctx context.Context, tree Tree) (map[int64][]string, error) {
	names, err := tree.Children(ctx, w.Path)
	if err != nil && !errors.Is(err, ErrNoNode) {
		return nil, err
	}
	published := map[int64][]string{}
	for _, name := range names {
		if found := publication.FindStringSubmatch(name); found != nil {
			id, _ := strconv.ParseUint(found[1], 16, 64)
			published[int64(id)] = append(published[int64(id)], name)
		}
	}
	return published, nil
}

// waiting reads what a session has published: in one node, or in two while it publishes something new.
func (w Waits) waiting(ctx context.Context, tree Tree, session int64, names []string) (all Waiting, err error) {
	for _, name := range names {
		node, err := tree.Get(ctx, w.Path+"/"+name)
		if errors.Is(err, ErrNoNode) {
			continue
		}
		if err != nil {
			return all, err
		}
		var one Waiting
		if json.Unmarshal(node.Data, &one) == nil && node.Owner == session {
			all.Lease = publication.FindStringSubmatch(name)[2]
			all.Locks, all.Asks = append(all.Locks, one.Locks...), append(all.Asks, one.Asks...)
		}
	}
	slices.Sort(all.Locks)
	all.Locks = slices.Compact(all.Locks)
	return all, nil
}

// Explain looks at the locks with these names, at those that the callers there wait for, and so on.
func (w Waits) Explain(ctx context.Context, tree Tree, names []string) (*Explanation, error) {
	explained, err := w.follow(ctx, tree, names)
	if err != nil {
		return nil, err
	}
	inCircle, cleared := map[int64]bool{}, map[int64]bool{}
	for _, session := range explained.met { // those that stand ahead come first: a cleared session is in no circle
		if inCircle[session] {
			continue
		}
		circle := explained.circle(session, cleared)
		cleared[session] = circle == nil
		for i := range circle {
			inCircle[circle[i].Session] = true
		}
		if circle != nil {
			explained.Cycles = append(explained.Cycles, circle)
		}
	}
	return explained, nil
}

// CircleOf finds a circle in which a session waits that waits for the locks with these names; nil if there is none. A caller that finds the same
// circle again has proved it: each place in it stood from the one look to the other, and with it who is ahead of whom, hence all of it did at
// the moment between.
func (w Waits) CircleOf(ctx context.Context, tree Tree, session int64, names []string) ([]Link, error) {
	explained, err := w.follow(ctx, tree, names)
	if err != nil {
		return nil, err
	}
	return explained.circle(session, nil), nil
}

func (w Waits) follow(ctx context.Context, tree Tree, names []string) (*Explanation, error) {
	published, err := w.published(ctx, tree)
	if err != nil {
		return nil, err
	}
	e, names := &Explanation{Waiting: map[int64]Waiting{}}, slices.Clone(names)
	for i := 0; i < len(names) && i < mostExplained; i++ {
		lock, ok := w.Lock(names[i])
		if !ok {
			continue
		}
		view, err := lock.View(ctx, tree)
		if err != nil {
			return nil, err
		}
		shown := &ExplainedLock{names[i], view}
		e.Locks, e.Incomplete = append(e.Locks, shown), e.Incomplete || view.Omitted > 0 || slices.ContainsFunc(shown.all(), isUnread)
		wanted, err := w.meet(ctx, tree, e, shown, published)
		if err != nil {
			return nil, err
		}
		for _, name := range wanted {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	e.Incomplete = e.Incomplete || len(names) > mostExplained
	return e, nil
}

// meet reads what those at a lock have published, and returns the locks that they wait for.
func (w Waits) meet(
	ctx context.Context, tree Tree, e *Explanation, lock *ExplainedLock, published map[int64][]string,
) (wanted []string, err error) {
	for _, contender := range lock.all() {
		session := contender.Session
		if _, known := e.Waiting[session]; known || published[session] == nil {
			continue
		}
		e.Waiting[session], err = w.waiting(ctx, tree, session, published[session])
		switch {
		case errors.Is(err, ErrDenied):
			e.Incomplete = true
		case err != nil:
			return nil, err
		}
		e.met = append(e.met, session)
		wanted = append(wanted, e.Waiting[session].Locks...)
	}
	return wanted, nil
}

func isUnread(c Contender) bool { return c.Unread }

func (l *ExplainedLock) all() []Contender { return slices.Concat(l.Holders, l.Waiters) }

// circle is the shortest circle through a session that does not lead through those that are cleared; nil if there is none.
func (e *Explanation) circle(session int64, cleared map[int64]bool) (circle []Link) {
	reached := map[int64]Link{} // the first by which each was
	for next := []int64{session}; len(next) > 0; next = next[1:] {
		for link := range e.waitsFor(next[0]) {
			if _, again := reached[link.Next]; again || cleared[link.Next] {
				continue
			}
			reached[link.Next] = link
			next = append(next, link.Next)
			if link.Next == session {
				for at := session; len(circle) == 0 || at != session; at = reached[at].Session {
					circle = append(circle, reached[at])
				}
				slices.Reverse(circle)
				return circle
			}
		}
	}
	return nil
}

// waitsFor are whom a session waits for: at each lock that it waits for, those who keep it from its turn.
func (e *Explanation) waitsFor(session int64) iter.Seq[Link] {
	return func(yield func(Link) bool) {
		waiting := e.Waiting[session]
		for _, lock := range e.Locks {
			if !slices.Contains(waiting.Locks, lock.Name) {
				continue
			}
			all := lock.all()
			own := slices.IndexFunc(all, func(c Contender) bool { return c.Session == session })
			for _, ahead := range all[:max(0, own)] {
				if ahead.Session == session || !all[own].Mode.waitsFor(ahead.Mode) {
					continue
				}
				link := Link{session, ahead.Session, waiting.Lease, lock.Name, all[own], ahead.Token, slices.Contains(waiting.Asks, lock.Name)}
				if !yield(link) {
					return
				}
			}
		}
	}
}

// Same says whether two looks have found the same circle, with the same places.
func Same(before, now []Link) bool {
	return slices.EqualFunc(before, now, func(a, b Link) bool {
		return a.Session == b.Session && a.Lock == b.Lock && a.Contender.Token == b.Contender.Token && a.Ahead == b.Ahead
	})
}

// Closes says whether a session began to wait last of those in a circle that ask to be told of it.
func Closes(session int64, circle []Link) (closes bool) {
	last := int64(0)
	for i := range circle {
		if link := &circle[i]; link.Asks && link.Contender.Token > last {
			last, closes = link.Contender.Token, link.Session == session
		}
	}
	return closes
}
