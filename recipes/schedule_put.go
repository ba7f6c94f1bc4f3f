package recipes

import (
	"context"
	"errors"
	"fmt"
	"path"
	"time"
)

// Put makes a schedule or changes its rule. to is given the rule as it is, or none. ErrMalformedRecord, ErrClocksDisagree, ErrDirectoryTooLarge.
func (s Schedule) Put(ctx context.Context, store Store, to func(rule *Rule) (Rule, error)) (ScheduleState, error) {
	for {
		of, err := s.change(ctx, store, nil, func(of *ScheduleState) error {
			rule, err := to(&of.Rule)
			if err == nil && rule == of.Rule {
				err = errAsItIs
			}
			if err != nil {
				return err
			}
			return s.become(ctx, store, of, rule)
		})
		if !errors.Is(err, ErrNoSchedule) {
			return of, err
		}
		if of, err = s.create(ctx, store, of, to); err == nil {
			return of, nil
		}
		if err := again(err); err != nil {
			return of, err
		}
	}
}

// become gives a schedule a rule. Its next tick stays, unless the rule has others.
func (s Schedule) become(ctx context.Context, store Store, of *ScheduleState, rule Rule) (err error) {
	before := of.Rule
	of.Rule = rule
	if before.hasTicksOf(rule) && before.Paused == rule.Paused {
		return nil
	}
	now, err := s.now(ctx, store)
	if err != nil {
		return err
	}
	of.Since = now
	next, unread := s.Line(rule.Line, rule.Zone)
	switch due := !before.Paused && of.isDue(now); {
	case due && rule.CatchUp && !rule.Paused:
		of.keepLast(now)
	case unread == nil || rule.Paused && before.hasTicksOf(rule): // then what comes next is found when it goes on
		if due {
			of.missAll(now)
		}
		if unread == nil {
			of.Next = next(later(now, of.Last))
		}
	default:
		return unread
	}
	of.next, of.unread = next, nil
	if unread != nil {
		of.next, of.unread = nil, fmt.Errorf("%w: %w", ErrMalformedRecord, unread)
	}
	return nil
}

// hasTicksOf says whether another rule has the same ticks.
func (r Rule) hasTicksOf(other Rule) bool { return r.Line == other.Line && r.Zone == other.Zone }

// missAll notes the ticks that are due as missed.
func (s *ScheduleState) missAll(now time.Time) {
	missed := 0
	if s.unread == nil {
		_, missed = s.latest(now)
	}
	s.miss(s.Next, missed+1, now)
}

// keepLast has the last tick that is due be the next one, and notes those before it as missed.
func (s *ScheduleState) keepLast(now time.Time) {
	if s.unread != nil {
		return
	}
	last, missed := s.latest(now)
	if missed > 0 {
		s.miss(s.Next, missed, now)
	}
	s.Next = last
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func (s Schedule) create(ctx context.Context, store Store, of ScheduleState, to func(*Rule) (Rule, error)) (_ ScheduleState, err error) {
	if of.Rule, err = to(nil); err != nil {
		return of, err
	}
	if of.next, err = s.Line(of.Line, of.Zone); err != nil {
		return of, err
	}
	count, err := childrenOf(ctx, store, path.Dir(s.Path))
	if err == nil && count >= MaxSchedules {
		err = ErrDirectoryTooLarge
	}
	if err != nil {
		return of, err
	}
	now, err := s.now(ctx, store)
	if err != nil {
		return of, err
	}
	of.Next, of.Since = of.next(now), now
	return of, s.commit(ctx, store, of, Create(s.Path, of.encode()))
}
