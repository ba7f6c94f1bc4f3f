package recipes

import (
	"context"
	"errors"
	"slices"
	"time"
)

// SemaphoreView is who has a semaphore's permits and who waits for some. Those that came or went while it was read may be missing.
type SemaphoreView struct {
	Limit   int
	Taken   int            // permits that are held, also by holders for whom the view has no room
	Holders []PermitHolder // in the order of their grants: the first of them, if all would be too large
	Waiters []Contender    // in the order of their turn
	Omitted int            // waiters left out because the view would be too large

	Quarantines []Quarantine // numbers that rest, in order
}

// A PermitHolder is a holder of permits.
type PermitHolder struct {
	Contender

	Permits int
	Number  *int  // that its permit bears; nil of others
	owner   int64 // the session
}

// View reads who has permits and who waits for some. ErrNoSemaphore, ErrMalformedLimit.
func (s Semaphore) View(ctx context.Context, tree Tree) (SemaphoreView, error) {
	view, _, err := s.WatchView(ctx, tree)
	return view, err
}

// WatchView reads as View does, and returns what to wait for before the view is read again.
func (s Semaphore) WatchView(ctx context.Context, tree Tree) (view SemaphoreView, changes Changes, err error) {
	var resized, moved, queued *Signal
	var permits, waiters queue
	view.Limit, resized, err = s.Admit(ctx, tree, 0)
	if err == nil {
		permits, moved, err = s.permits().watchQueue(ctx, tree)
	}
	if err == nil {
		waiters, queued, err = s.queue().watchQueue(ctx, tree)
	}
	if err != nil {
		return SemaphoreView{}, nil, err
	}
	waiting, err := s.queue().view(waiters, 0, s.queue().reader(ctx, tree))
	view.Waiters, view.Omitted = slices.Concat(waiting.Holders, waiting.Waiters), waiting.Omitted
	var taken map[int64]int
	if err == nil {
		taken, err = s.readHolders(ctx, tree, &view, permits)
	}
	if err == nil && view.Taken > view.Limit {
		err = s.dropFirst(ctx, tree, &view, taken, waiters)
	}
	if err == nil {
		view.Quarantines, err = s.quarantines(ctx, tree, permits)
	}
	return view, Changes{resized.Done(), moved.Done(), queued.Done()}, err
}

// watchQueue lists the contenders in order, with a watch.
func (l Lock) watchQueue(ctx context.Context, tree Tree) (queue, *Signal, error) {
	names, changed, err := tree.WatchChildren(ctx, l.Path)
	contenders, _, err := l.contenders(names, err)
	if err == nil {
		contenders, err = l.inOrder(ctx, tree, contenders)
	}
	return contenders, changed, err
}

// readHolders reads the permits, and counts them by their sessions.
func (s Semaphore) readHolders(ctx context.Context, tree Tree, view *SemaphoreView, permits queue) (taken map[int64]int, _ error) {
	taken = map[int64]int{}
	at := map[int64]int{} // in the view
	size := 0
	for _, c := range permits {
		node, err := tree.Get(ctx, s.permits().child(c))
		if errors.Is(err, ErrNoNode) {
			continue
		}
		denied := errors.Is(err, ErrDenied)
		if err != nil && !denied {
			return nil, err
		}
		view.Taken++
		taken[node.Owner]++
		holder := PermitHolder{Contender: c.contender(node), Permits: 1, owner: node.Owner}
		holder.Unread = denied
		if c.numbered {
			holder.Number = &c.number
		}
		if i, shown := at[node.Owner]; shown && !denied {
			view.Holders[i].Permits++
			view.Holders[i].Revoked = view.Holders[i].Revoked || holder.Revoked
		} else if size <= maxViewBytes/2 {
			at[node.Owner] = len(view.Holders)
			view.Holders = append(view.Holders, holder)
			size += holder.sizeInMessage()
		}
	}
	return taken, nil
}

// dropFirst takes the first in the queue from the holders, who waits with the nodes of its permits until there is room for them.
func (s Semaphore) dropFirst(ctx context.Context, tree Tree, view *SemaphoreView, taken map[int64]int, waiters queue) error {
	first, err := s.first(ctx, tree, waiters)
	if err == nil && first.Owner != 0 && taken[first.Owner] > 0 {
		view.Taken -= taken[first.Owner]
		view.Holders = slices.DeleteFunc(view.Holders, func(h PermitHolder) bool { return h.owner == first.Owner })
	}
	return err
}

// A Quarantine is a number that was lost.
type Quarantine struct {
	Number int
	Until  time.Time // zero if it begins when the next caller wants a number
}

// quarantines are the numbers that none of the permits bears, and that rest by the clock of this machine.
func (s Semaphore) quarantines(ctx context.Context, tree Tree, permits queue) (resting []Quarantine, _ error) {
	names, err := childrenNamed(tree.Children(ctx, s.numbers()))
	if err != nil || len(names) == 0 {
		return nil, err
	}
	known := map[int]bool{}
	for _, name := range names {
		if number, ok := parseNumber(name); ok {
			known[number] = true
		}
	}
	unborne := slices.DeleteFunc(permits.unborne(MaxLimit), func(number int) bool { return !known[number] })
	records := make([]numberRecord, len(unborne))
	err = EachOf(len(unborne), func(i int) (err error) {
		records[i], err = s.readNumber(ctx, tree, unborne[i])
		return err
	})
	for i := range records {
		switch of := &records[i]; {
		case of.isFree():
		case of.isLost:
			resting = append(resting, Quarantine{Number: of.number})
		case of.State == numberLost && !wall().After(of.ends()):
			resting = append(resting, Quarantine{Number: of.number, Until: of.ends()})
		}
	}
	return resting, err
}
