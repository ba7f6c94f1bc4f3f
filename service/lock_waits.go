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
		locks := directory{root: o.LockRoot, nested: o.NestedLocks}
		shown, err := locks.parseShown(text)
		return locks.lock(shown), err == nil
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

// A circleWatch is what a caller that has asked for that knows of the circle in which it may wait.
type circleWatch struct {
	next   time.Time      // when it is looked for again; zero before that has begun
	before []recipes.Link // the newest
}

// left is how long it is until the circle is looked for again; 0 for ever.
func (c circleWatch) left() time.Duration {
	if c.next.IsZero() {
		return 0
	}
	return max(time.Millisecond, time.Until(c.next))
}

// lookForCircle refuses a caller that has closed a circle which has been seen twice, if it has asked for that. No other request stands on
// a lease of its own, so none can wait for it in a circle.
func (a *lockRequest[M]) lookForCircle(ctx context.Context) error {
	if !a.params.detectDeadlock || a.single || time.Now().Before(a.circle.next) {
		return nil
	}
	var circle []recipes.Link
	if names := a.lease.waitsFor(2).Locks; len(names) > 0 && !a.circle.next.IsZero() {
		circle, _ = a.services.waits().CircleOf(ctx, a.services.ensemble, a.lease.session.Key().ID, names) // an error says nothing
	}
	if recipes.Closes(a.lease.session.Key().ID, circle) && recipes.Same(a.circle.before, circle) {
		return deadlock(circle, a.params.name)
	}
	a.circle = circleWatch{time.Now().Add(circleInterval), circle}
	return nil
}

func deadlock(circle []recipes.Link, waitsFor name) error {
	leases := strings.Join(each(circle, func(link recipes.Link) string { return link.Lease }), ",")
	return &detailedError{kind: errDeadlock, facts: map[string]string{"lock": waitsFor.text, "leases": leases}, text: "leases " + leases}
}
