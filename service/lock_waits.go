package service

import (
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/sidekeeper/sidekeeper/recipes"
)

// How often a lease looks whether it must publish anew what it waits for, and a stream whether it waits in a circle. So most waits, which are
// shorter, are never published, and whoever closes a circle is told in two seconds: it is published after one, and seen twice.
const (
	publishInterval = 500 * time.Millisecond
	circleInterval  = 500 * time.Millisecond
)

// waits is where leases publish what they wait for.
func (s *Services) waits() recipes.Waits { return s.options.waits() }

func (o Options) waits() recipes.Waits {
	return recipes.Waits{Path: o.WaitRoot, Lock: func(text string) (recipes.Lock, bool) {
		return directory{root: o.LockRoot, nested: o.NestedLocks}.lock(name{text}), BrokenNameRule(text) == ""
	}}
}

// waitsFor are the locks that the lease waits for; none if it has and wants fewer than that in all.
func (l *lease) waitsFor(least int) recipes.Waiting {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.waitsForLocked(least)
}

func (l *lease) waitsForLocked(least int) recipes.Waiting {
	waiting, locks := recipes.Waiting{Lease: l.logID}, 0
	for of, had := range l.resources {
		if of.kind != kindLock {
			continue
		}
		locks++
		if !had.held {
			waiting.Locks = append(waiting.Locks, of.name)
		}
		if !had.held && had.asks {
			waiting.Asks = append(waiting.Asks, of.name)
		}
	}
	if locks < least {
		return recipes.Waiting{Lease: l.logID}
	}
	slices.Sort(waiting.Locks)
	slices.Sort(waiting.Asks)
	return waiting
}

// asksOfCircle notes that the caller asks to be told if it waits for the lock in a circle.
func (l *lease) asksOfCircle(of resource) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.resources[of].asks = true
}

// publishLocked has what the lease waits for published from now on, if it may be several.
func (l *lease) publishLocked() {
	if len(l.resources) > 1 && !l.publishing {
		l.publishing = true
		l.streams.enter(math.MaxInt)
		run(func() (struct{}, error) {
			defer l.streams.leave()
			l.publish(context.Background())
			return struct{}{}, nil
		})
	}
}

// publish returns when the lease waits for nothing any more, or is over: then what it has published goes with its session.
func (l *lease) publish(ctx context.Context) {
	var told recipes.Waiting
	node := ""
	for l.liveFor(publishInterval) {
		waiting := l.waitsFor(2)
		if !slices.Equal(waiting.Locks, told.Locks) || !slices.Equal(waiting.Asks, told.Asks) {
			before := node
			node, told = l.tellWaiting(ctx, waiting)
			if before != "" {
				l.session.Dequeue(ctx, before)
			}
		}
		if node == "" && l.publishesNoMore() {
			return
		}
	}
}

// tellWaiting publishes what there is to publish. What could not be is tried again.
func (l *lease) tellWaiting(ctx context.Context, waiting recipes.Waiting) (node string, told recipes.Waiting) {
	if len(waiting.Locks) == 0 {
		return "", waiting
	}
	node, err := l.waits.Publish(ctx, l.session, l.session.Key().ID, waiting)
	if err != nil {
		return "", recipes.Waiting{}
	}
	return node, waiting
}

// publishesNoMore is false if there is something to publish again.
func (l *lease) publishesNoMore() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.publishing = len(l.waitsForLocked(2).Locks) > 0
	return !l.publishing
}

// liveFor says whether the lease is still there after a pause.
func (l *lease) liveFor(pause time.Duration) bool {
	select {
	case <-after(pause):
		return true
	case <-l.over.Done():
	}
	return false
}

// detectDeadlock ends the waiting when the caller, who has asked for that, waits in a circle. A lease of its own waits for nobody who waits for
// it.
func (a *lockStream[M]) detectDeadlock(ctx context.Context) (bounded context.Context, stop func()) {
	if !a.params.detectDeadlock || a.single {
		return ctx, func() {}
	}
	a.lease.asksOfCircle(a.recipe.resource)
	bounded, cancel := context.WithCancelCause(ctx)
	looking := run(func() (struct{}, error) {
		cancel(a.waitInCircle(bounded))
		return struct{}{}, nil
	})
	a.calls = append(a.calls, looking.done)
	return bounded, func() { cancel(nil) }
}

// waitInCircle returns when the stream has closed a circle that has been seen twice, or with ctx's end.
func (a *lockStream[M]) waitInCircle(ctx context.Context) error {
	var before []recipes.Link
	for {
		select {
		case <-after(circleInterval):
		case <-ctx.Done():
			return nil
		}
		var circle []recipes.Link
		session := a.lease.session.Key().ID
		if names := a.lease.waitsFor(2).Locks; len(names) > 0 {
			circle, _ = a.services.waits().CircleOf(ctx, a.services.ensemble, session, names) // an error says nothing
		}
		if recipes.Closes(session, circle) && recipes.Same(before, circle) {
			return deadlock(circle, a.params.name)
		}
		before = circle
	}
}

func deadlock(circle []recipes.Link, waitsFor name) error {
	leases := strings.Join(each(circle, func(link recipes.Link) string { return link.Lease }), ",")
	return &detailedError{kind: errDeadlock, facts: map[string]string{"lock": waitsFor.text, "leases": leases}, text: "leases " + leases}
}
