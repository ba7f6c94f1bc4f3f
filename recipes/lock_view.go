package recipes

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"time"
)

// maxViewBytes bounds what a View may take as a message.
const maxViewBytes = 3 << 20

// Contender is a holder of a lock, or a waiter for it.
type Contender struct {
	About
	Mode    Mode
	Token   int64         // the fencing token it holds the lock with, or will hold it with
	Age     time.Duration // in the queue, by the ensemble's clock
	Foreign bool          // its node's data is not in our form
	Revoked bool          // a caller or another program has asked it to let go
	Delay   time.Duration // of a holder, after its hold
	Session int64         // of the ensemble, that its place lives with
	Unread  bool          // the ensemble does not let the sidecar read its node: of it only the mode is known
}

// View is who holds a lock and who waits for it, each in order. Those that came or went while it was read may be missing.
type View struct {
	Holders         []Contender
	Waiters         []Contender
	Omitted         int // waiters left out because the view would be too large
	ForeignChildren int // children of the lock's directory that are no contenders

	Lost      int64         // token of a hold whose delay is kept; the lock has no holder then
	LostDelay time.Duration // the whole of it
}

// contender is what the node of a child tells.
func (c child) contender(node Node) Contender {
	about, foreign := aboutIn(node.Data)
	if c.claims && about.Reserved == nil {
		about.Reserved = &Reserved{} // another client has overwritten what it says
	}
	return Contender{
		About: about, Mode: c.mode, Token: node.Czxid, Age: max(0, node.Read.Sub(node.Created)),
		Foreign: foreign, Revoked: revocationIn(node.Data).Asked, Session: node.Owner,
	}
}

// Readable is ErrDenied if the ensemble does not let the sidecar read a holder's node: the holder and its token are not known then.
func (v *View) Readable() error {
	if slices.ContainsFunc(v.Holders, isUnread) {
		return ErrDenied
	}
	return nil
}

// Contenders counts those that hold the lock or wait for it, and the claims among them.
func (l Lock) Contenders(ctx context.Context, tree Tree) (all, claims int, err error) {
	names, err := tree.Children(ctx, l.Path)
	contenders, _, err := l.contenders(names, err)
	for _, c := range contenders {
		if c.claims {
			claims++
		}
	}
	return len(contenders), claims, err
}

// View reads who holds the lock and who waits for it. A lock that no contender has asked for has an empty view.
func (l Lock) View(ctx context.Context, tree Tree) (View, error) {
	delay, err := l.delayState(ctx, tree)
	if err != nil {
		return View{}, err
	}
	contenders, foreignChildren, err := l.queue(ctx, tree)
	if err != nil {
		return View{}, err
	}
	view, err := l.view(contenders, foreignChildren, l.reader(ctx, tree))
	if err == nil && view.delay(delay) {
		now, err := l.delayState(ctx, tree)
		view.lose(delay, now)
		return view, err
	}
	return view, err
}

// WatchView reads as View does and returns what to wait for before the view is read again.
func (l Lock) WatchView(ctx context.Context, tree Tree) (View, Changes, error) {
	delay, err := l.delayState(ctx, tree)
	if err != nil {
		return View{}, nil, err
	}
	names, changed, err := tree.WatchChildren(ctx, l.Path)
	changes := Changes{changed.Done()}
	contenders, foreignChildren, err := l.contenders(names, err)
	if err == nil {
		contenders, err = l.inOrder(ctx, tree, contenders)
	}
	if err != nil {
		return View{}, nil, err
	}
	holders := contenders.holders()
	read := func(c child) (Node, error) {
		if len(changes) > MaxHolders || !holders.contains(c) {
			return tree.Get(ctx, l.child(c))
		}
		node, changed, err := tree.Watch(ctx, l.child(c))
		if err == nil {
			changes = append(changes, changed.Done())
		}
		return node, err
	}
	view, err := l.view(contenders, foreignChildren, read)
	if err == nil && view.delay(delay) {
		directory, changed, err := tree.Watch(ctx, l.Path)
		now := delayStateIn(directory.Data)
		view.lose(delay, now)
		return view, append(changes, changed.Done()), err
	}
	return view, changes, err
}

// queue lists the contenders in order.
func (l Lock) queue(ctx context.Context, tree Tree) (ordered queue, foreignChildren int, _ error) {
	names, err := tree.Children(ctx, l.Path)
	contenders, foreignChildren, err := l.contenders(names, err)
	if err != nil {
		return nil, 0, err
	}
	ordered, err = l.inOrder(ctx, tree, contenders)
	return ordered, foreignChildren, err
}

// contenders picks them out of a list. A directory that is missing has none.
func (l Lock) contenders(names []string, err error) (contenders queue, foreignChildren int, _ error) {
	if err != nil && !errors.Is(err, ErrNoNode) {
		return nil, 0, err
	}
	contenders, foreignChildren = l.readQueue(names)
	if l.Nested && foreignChildren > 0 {
		return nil, foreignChildren, ErrDirectory
	}
	return contenders, foreignChildren, nil
}

func (l Lock) inOrder(ctx context.Context, tree Tree, contenders queue) (queue, error) {
	if contenders.numbersTell() {
		return contenders.inOrder(), nil
	}
	dates, err := contenders.dates(l.reader(ctx, tree))
	return contenders.dated(dates).inOrder(), err
}

// view reads each contender, until the view has its size.
func (l Lock) view(contenders queue, foreignChildren int, read func(child) (Node, error)) (View, error) {
	view := View{ForeignChildren: foreignChildren}
	holders := len(contenders.holders())
	size := 0
	for i, c := range contenders {
		if size > maxViewBytes-4096 {
			view.Omitted = len(contenders) - max(i, holders)
			break
		}
		node, err := read(c)
		if errors.Is(err, ErrNoNode) {
			continue
		}
		denied := errors.Is(err, ErrDenied) // the node stands there all the same, and hides no other
		if err != nil && !denied {
			return View{}, err
		}
		contender := c.contender(node)
		contender.Unread = denied
		size += contender.sizeInMessage()
		if i < holders {
			view.Holders = append(view.Holders, contender)
		} else {
			view.Waiters = append(view.Waiters, contender)
		}
	}
	return view, nil
}

// Changes is what may change in a view: the contenders, and what is asked of the first MaxHolders holders.
type Changes []<-chan struct{}

// Wait returns when something may have changed, or with ctx's cause when that ends.
func (c Changes) Wait(ctx context.Context) error {
	cases := []reflect.SelectCase{{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(ctx.Done())}}
	for _, changed := range c {
		cases = append(cases, reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(changed)})
	}
	if chosen, _, _ := reflect.Select(cases); chosen == 0 {
		return context.Cause(ctx)
	}
	return nil
}
