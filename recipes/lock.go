package recipes

import (
	"context"
	"errors"
	"fmt"
	"path"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"
)

// Errors of locks.
var (
	// ErrGone means that another program deleted the node of a place or a hold: the place is lost.
	ErrGone = errors.New("another program removed the place")
	// ErrKindMismatch means that a contender ahead uses the lock as the other kind, mutex or read/write lock.
	ErrKindMismatch = errors.New("in use as a lock of the other kind")
	// ErrDirectory means that the lock's directory holds other things than contenders.
	ErrDirectory = errors.New("holds other things than contenders")
	// ErrTokenMismatch means that no contender holds or waits for the lock with this fencing token.
	ErrTokenMismatch = errors.New("no contender with this fencing token")
)

// About is what a contender says about itself.
type About struct {
	Identity string // as its sidecar verified it; empty if that tells no callers apart
	Owner    string
	Metadata map[string]string
	Timeout  time.Duration // of its session; 0 if that is not known
	Request  uint64        // what it is on the stream of its lease, if that may be resumed; otherwise 0
	Value    *string       // what a candidate of an election shows; nil of other contenders
	Reserved *Reserved     // what a claim says; nil of other contenders
}

// Lock is one lock: a directory of contenders, which stand in the order in which they came. This is the lock recipe of
// ZooKeeper's manual, and its shared lock, with the names that Curator gives the nodes, so that its clients and ours
// exclude each other.
type Lock struct {
	Path string // of the directory

	// Nested says that names may lie inside one another, so that a child which is no contender makes this directory
	// one that is not a lock (ErrDirectory). Otherwise such children are not minded.
	Nested bool

	Latch bool // places are named as Curator's LeaderLatch names them; otherwise as its InterProcessMutex and LeaderSelector do
	// Delay follows a hold of who joins, unless that ends by its holder's own hand; at most MaxLockDelay, and none of readers. Keep comes before.
	Delay time.Duration
	// Losses has later places count a delay from when an earlier one of this process has seen the hold gone; nil if each counts for itself.
	Losses *Losses

	permits bool     // the children are a semaphore's permits, which all hold. See Semaphore
	bears   string   // what the name of a place says before the marker, if anything. See Numbering
	beside  []string // the node that is read when a place is taken, if any
}

// parse reads the name of a child.
func (l Lock) parse(name string) (child, bool) {
	if l.permits {
		return parsePermit(name)
	}
	return parseChild(name)
}

func (l Lock) marker(mode Mode) string {
	switch {
	case l.permits:
		return permitMarker
	case l.Latch:
		return "-latch-"
	}
	return mode.marker()
}

// A Place is one contender's node in a lock's queue. Its calls are for one goroutine, but Leave is for any.
type Place struct {
	lock    Lock
	session Session
	own     child
	path    string // of its node
	about   About
	made    Enqueued
	leaving atomic.Bool
	left    Signal // given when it has been given up

	seen    bool             // the tree has shown the node
	early   []string         // the directory's children, if they were listed before the node was read
	listed  bool             // the queue was listed
	dates   map[string]int64 // then: czxids by name, if numbers do not tell the order; else nil
	wait    wait             // what the last Look found ahead
	delayed delayed
	known   map[string]Contender // holders that were read, by the names of their nodes
	denied  string               // the name of a predecessor that may not be read
}

// Join takes the last place. It cannot be cancelled: a create given up half-way could leave a node that blocks the queue
// until the session ends. The caller must Leave.
func (l Lock) Join(ctx context.Context, session Session, mode Mode, about About) (*Place, error) {
	made, err := session.Enqueue(ctx, l.Path, l.mark(mode), about.encode(), l.beside...)
	return l.placed(ctx, session, about, made, err)
}

// JoinThen is Join for those who must not wait; see Session.EnqueueThen.
func (l Lock) JoinThen(ctx context.Context, session Session, mode Mode, about About, then func(*Place, error)) {
	session.EnqueueThen(ctx, l.Path, l.mark(mode), about.encode(), func(made Enqueued, err error) {
		then(l.placed(ctx, session, about, made, err))
	}, l.beside...)
}

func (l Lock) mark(mode Mode) string {
	if l.Delay > 0 {
		return delayMark + l.marker(mode)
	}
	return l.bears + l.marker(mode)
}

// placed is the place whose node was made.
func (l Lock) placed(ctx context.Context, session Session, about About, made Enqueued, failure error) (place *Place, err error) {
	if failure != nil {
		return nil, failure
	}
	defer func() {
		if reason := recover(); reason != nil { // of names that others chose, perhaps in a goroutine that serves all of the session
			place, err = nil, fmt.Errorf("panic: %v\n%s", reason, debug.Stack())
			session.DequeueThen(ctx, made.Path, func() {})
		}
	}()
	place = &Place{lock: l, session: session, about: about, path: made.Path, made: made, delayed: delayed{own: l.Delay}}
	var ok bool
	if place.own, ok = l.parse(made.Name); !ok {
		session.DequeueThen(ctx, made.Path, func() {})
		return nil, fmt.Errorf("place %q has no sequence number", made.Name)
	}
	if slices.Contains(made.Queue, made.Name) {
		place.early, place.delayed.known, place.delayed.any = made.Queue, true, made.HasData
	}
	return place, nil
}

// Rejoin takes a place again that stood when a process came back to its session. Whether it is its turn is to be found out anew. ErrGone if
// its end was asked for meanwhile; then, and with any other error, it goes with the session, unless the caller deletes it.
func (l Lock) Rejoin(session Adopter, standing Standing, about About) (*Place, error) {
	name := path.Base(standing.Path)
	own, ok := l.parse(name)
	if !ok || standing.Path != l.Path+"/"+name || revocationIn(standing.Node.Data).Break {
		return nil, ErrGone
	}
	gone, err := session.Adopt(standing, false)
	if err != nil {
		return nil, err
	}
	made := Enqueued{Path: standing.Path, Name: name, Gone: gone}
	return &Place{lock: l, session: session, about: about, own: own, path: standing.Path, made: made, delayed: delayed{own: l.Delay}}, nil
}

// Leave gives the place up, held or not, and returns when its node or the session is gone. It cannot be
// cancelled, since it is done for callers that have gone themselves. Later calls wait for the first.
func (p *Place) Leave(ctx context.Context) {
	if p.leaving.CompareAndSwap(false, true) {
		p.session.Dequeue(ctx, p.path)
		p.left.Give()
	}
	<-p.left.Done()
}

// LeaveThen is Leave for those who must not wait; see Session.DequeueThen.
func (p *Place) LeaveThen(ctx context.Context, then func()) {
	if !p.leaving.CompareAndSwap(false, true) {
		p.left.Then(then)
		return
	}
	p.session.DequeueThen(ctx, p.path, func() {
		p.left.Give()
		then()
	})
}

// Gone is given when the session finds that another program deleted the place's node. Look and Hold.Look find it sooner.
func (p *Place) Gone() *Signal { return p.made.Gone }

// GrantAtOnce turns a place that has just been made into a hold, if it was told with it that its turn has come; nil if it must Look. It waits
// for nothing. The node stood there, for it was in the list. A program that asks for its end may not take it before the session's validity is
// over, which counts from the making as long as the node has not been read (see Session).
func (p *Place) GrantAtOnce() (hold *Hold) {
	defer func() { hold.tellGranted() }()
	if !p.isFirst() || p.session.Prove(atOnce) != nil || p.Gone().IsGiven() {
		return nil
	}
	return &Hold{Token: p.made.Czxid, place: p}
}

// atOnce is the context of what waits for nothing.
var atOnce = func() context.Context {
	over, end := context.WithCancel(context.Background())
	end()
	return over
}()

// Grant turns a place whose turn it is into a hold: it checks that the node is still there and this session's, and that the
// session is valid. Errors as of Look.
func (p *Place) Grant(ctx context.Context) (hold *Hold, _ error) {
	defer func() { hold.tellGranted() }()
	for {
		own, changed, err := p.watchOwn(ctx)
		if err != nil {
			return nil, err
		}
		if err := p.session.Prove(ctx); err != nil {
			return nil, err
		}
		if !changed.IsGiven() { // otherwise it is perhaps gone, while the session was proving itself
			return &Hold{Token: own.Czxid, Revocation: revocationIn(own.Data), Changed: changed, place: p}, nil
		}
	}
}

// watchOwn reads the place's own node. What it shows, every later read on the same tree shows too.
func (p *Place) watchOwn(ctx context.Context) (Node, *Signal, error) {
	own, changed, seen, err := p.session.WatchOwn(ctx, p.path)
	if errors.Is(err, ErrNoNode) && !p.seen { // perhaps the reader has not heard of it yet
		if err := p.session.CatchUp(ctx); err != nil {
			return Node{}, nil, err
		}
		own, changed, seen, err = p.session.WatchOwn(ctx, p.path)
	}
	switch {
	case errors.Is(err, ErrNoNode):
		return Node{}, nil, ErrGone
	case err != nil:
		return Node{}, nil, err
	case !p.session.Owns(own):
		return Node{}, nil, ErrGone
	}
	p.seen = true
	if about, _ := aboutIn(own.Data); about.Timeout == 0 && p.about.Timeout >= time.Millisecond {
		return p.restore(ctx, own)
	}
	if !revocationIn(own.Data).Break {
		seen()
	}
	return own, changed, nil
}

// restore says again what the place's node said of itself, which another program has overwritten to ask for the lock: a program that breaks the
// hold must know of the session's timeout. What is asked stays. Nothing that does not tell it counts as seen.
func (p *Place) restore(ctx context.Context, own Node) (Node, *Signal, error) {
	data := p.about.encode()
	if asked := revocationIn(own.Data); asked.Asked {
		data = asked.mark(data)
	}
	_, err := p.session.Update(ctx, p.path, data, own.Version)
	if err != nil && !errors.Is(err, ErrBadVersion) && !errors.Is(err, ErrNoNode) {
		return Node{}, nil, err
	}
	if err := p.session.CatchUp(ctx); err != nil {
		return Node{}, nil, err
	}
	return p.watchOwn(ctx)
}

// Disregard says that no caller counts on the place any more, though it is kept for a while: a program that asks for its end then, and
// is not heard, ends nothing else.
func (p *Place) Disregard() { p.session.Disregard(p.path) }

// child is the path of a contender's node.
func (l Lock) child(c child) string { return l.Path + "/" + c.name }

// reader reads contenders' nodes.
func (l Lock) reader(ctx context.Context, tree Tree) func(child) (Node, error) {
	return func(c child) (Node, error) { return tree.Get(ctx, l.child(c)) }
}
