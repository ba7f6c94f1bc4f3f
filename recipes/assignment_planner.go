package recipes

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

const (
	// settleDelay is for how long nothing may have changed before a plan is made, and how long a member is there before it gets what others have
	// room for.
	settleDelay = 3 * time.Second
	// longestSettle is how long after the first change a plan is made in any case.
	longestSettle = 10 * time.Second
	// longestFresh bounds for how long a member gets nothing that comes back again and again, while others have room.
	longestFresh = 60 * time.Second
	// planTurns is over how long the sidecars of the members spread their attempts to write one plan. The first one leaves nothing to do.
	planTurns = time.Second
)

// A Planner makes the plans of a set. Its calls are for one goroutine. It remembers for a minute which members come back again and again. One
// that has just begun does not know them, and leaves the plans of its first minute to those of members that are there for longer.
type Planner struct {
	Assignment

	Own    func(member string) bool // whether it plans for this member
	Failed func(err error)          // is told why a plan could not be written

	began   time.Time              // zero before the first look
	elder   bool                   // another member is there for longer than this planner
	seen    map[string]knownMember // by name
	items   int32                  // their version as it was seen last
	planned int32                  // likewise, the plan\'s
	first   time.Time              // when the first change was seen that no plan has answered; zero if there is none
	changed time.Time              // likewise, the last one
	next    time.Time              // when the next plan is due; zero if none is
	timer   *time.Timer            // to then
}

// A knownMember is what a planner knows of a member.
type knownMember struct {
	incarnation int64
	capacity    int
	came        time.Time     // when this incarnation was first seen
	pause       time.Duration // for which it got nothing new then
	fresh       time.Time     // until when that is
	gone        time.Time     // when it was; zero of one that is there
}

// Look shows the set, writes a plan if one is due, and returns what to wait for before the next look. Errors as of Watch. A plan that cannot be
// written is tried again some time later.
func (p *Planner) Look(ctx context.Context, store Store) (AssignmentView, Changes, error) {
	for {
		view, changes, err := p.watch(ctx, store)
		if err != nil {
			return view, nil, err
		}
		now := time.Now()
		p.observe(view, now)
		if pause := p.next.Sub(now); p.next.IsZero() || pause > 0 {
			if !p.next.IsZero() {
				changes = append(changes, p.after(pause))
			}
			return view, changes, nil
		}
		if err := p.plan(ctx, store, view); err != nil {
			return view, nil, err
		}
	}
}

// watch is Watch, by no view that is older than what others knew when the planner began, or that lacks a set which is there.
func (p *Planner) watch(ctx context.Context, store Store) (view AssignmentView, changes Changes, err error) {
	if p.seen == nil {
		if err := store.CatchUp(ctx); err != nil {
			return view, nil, unsent(err)
		}
	}
	return p.WatchExisting(ctx, store)
}

// after is closed after a time. The one before is not closed any more.
func (p *Planner) after(pause time.Duration) <-chan struct{} {
	if p.timer != nil {
		p.timer.Stop()
	}
	over := make(chan struct{})
	p.timer = time.AfterFunc(pause, func() { close(over) })
	return over
}

// observe notes what has changed since the last look, and when that makes a plan due.
func (p *Planner) observe(view AssignmentView, now time.Time) {
	changed := p.seen == nil || view.version != p.items
	if view.planned != p.planned { // which answers what was seen before; whether it does so well is looked at once more
		p.first, changed = time.Time{}, true
	}
	if p.seen == nil {
		p.seen, p.began = map[string]knownMember{}, now
	}
	p.items, p.planned, p.elder = view.version, view.planned, p.hasElder(view)
	there := map[string]bool{}
	for _, member := range view.Members {
		there[member.Name] = true
		changed = p.sees(member, now) || changed
	}
	for _, member := range view.hidden {
		there[member.Name] = true
	}
	for name, member := range p.seen {
		switch {
		case there[name]:
		case member.gone.IsZero():
			member.gone, changed = now, true
			p.seen[name] = member
		case now.Sub(member.gone) > longestFresh:
			delete(p.seen, name)
		}
	}
	if !changed {
		return
	}
	p.changed = now
	if p.first.IsZero() {
		p.first = now
	}
	p.schedule(now)
}

// hasElder says whether another sidecar's member is there for longer than all that the planner plans for.
func (p *Planner) hasElder(view AssignmentView) bool {
	oldest, own := int64(math.MaxInt64), int64(math.MaxInt64)
	for _, member := range view.Members {
		switch {
		case p.Own(member.Name):
			own = min(own, member.Incarnation)
		case !member.Foreign:
			oldest = min(oldest, member.Incarnation)
		}
	}
	return oldest < own
}

// sees notes a member, and says whether anything about it is new. One that comes back within a minute, and was there for less, waits for twice
// as long as before.
func (p *Planner) sees(member *SetMember, now time.Time) (changed bool) {
	before, known := p.seen[member.Name]
	found := before
	found.incarnation, found.capacity, found.gone = member.Incarnation, member.Capacity, time.Time{}
	if !known || found.incarnation != before.incarnation {
		found.came, found.pause = now, settleDelay
		if known && now.Sub(before.came) < longestFresh && (before.gone.IsZero() || now.Sub(before.gone) < longestFresh) {
			found.pause = min(2*before.pause, longestFresh)
		}
		found.fresh = now.Add(found.pause)
	}
	p.seen[member.Name] = found
	return found != before
}

// schedule finds when the next plan is due: when all has settled, or when a member is not fresh any more.
func (p *Planner) schedule(now time.Time) {
	at := time.Time{}
	if !p.first.IsZero() {
		at = soonest(p.first.Add(longestSettle), p.changed.Add(settleDelay))
	}
	for _, member := range p.seen {
		if member.gone.IsZero() && member.fresh.After(now) {
			at = soonest(at, member.fresh)
		}
	}
	if p.next = at; at.IsZero() {
		return
	}
	if known := p.began.Add(longestFresh); p.elder && at.Before(known) {
		at = known
	}
	p.next = at.Add(rand.N(planTurns)) //nolint:gosec // spreads attempts
}

// plan writes the next plan if it differs from the one that was seen. The views on which it rests are read after that one. Where more has
// changed by then it leaves all to the next look.
func (p *Planner) plan(ctx context.Context, store Store, seen AssignmentView) error {
	if err := store.CatchUp(ctx); err != nil {
		return unsent(err)
	}
	view, _, err := p.Watch(ctx, store)
	now := time.Now()
	if err != nil || view.planned != seen.planned {
		return err
	}
	if p.observe(view, now); p.next.After(now) {
		return nil
	}
	form, same := p.balanced(view, now)
	if !same {
		change := Set(p.planPath(), compact(form), view.planned)
		if view.planned < 0 {
			change = Create(change.Path, change.Data)
		}
		_, err := store.Commit(ctx, change)
		switch {
		case err == nil:
		case ctx.Err() != nil, errors.Is(err, ErrUnreachable):
			return err
		case again(err) == nil:
			return nil
		default: // a quota, or the ensemble's access control
			p.Failed(err)
			p.next = now.Add(longestFresh)
			return nil
		}
	}
	p.first, p.changed = time.Time{}, time.Time{}
	p.schedule(now)
	return nil
}

// balanced is the plan that follows, and whether it says what the last one says. A hidden member, whose capacity is not known, gets no more.
func (p *Planner) balanced(view AssignmentView, now time.Time) (form planForm, same bool) {
	members := slices.Concat(view.Members, view.hidden)
	shares := make([]*share, len(members))
	for i, member := range members {
		fresh := i >= len(view.Members) || p.seen[member.Name].fresh.After(now)
		shares[i] = &share{name: member.Name, capacity: member.Capacity, items: slices.Clone(member.Items), fresh: fresh}
		if i >= len(view.Members) {
			shares[i].capacity = len(member.Items)
		}
	}
	balance(view.All(), shares)
	form.Members, same = map[string][]string{}, true
	left := view.Total()
	for i, of := range shares {
		same = same && slices.Equal(of.items, members[i].Items)
		form.Members[of.name] = of.items
		left -= len(of.items)
	}
	if left > 0 {
		form.Short = wall().UTC().Truncate(time.Second)
		if !view.Short.IsZero() {
			form.Short = earlier(form.Short, view.Short) // a clock that is ahead may have written that
		}
	}
	return form, same && form.Short.Equal(view.Short)
}
