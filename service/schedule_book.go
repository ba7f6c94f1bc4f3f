package service

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/sidekeeper/sidekeeper/recipes"
)

// What metrics say of a schedule.
const (
	scheduleOnTime  = "on_time"
	scheduleOverdue = "overdue" // two ticks in a row are over, and none has succeeded
	schedulePaused  = "paused"
	scheduleTooFar  = "next_too_far"
	scheduleUnknown = "unknown" // it cannot be read, or was not for long
)

// ScheduleStates are what Services.ScheduleStates tells.
var ScheduleStates = []string{scheduleOnTime, scheduleOverdue, schedulePaused, scheduleTooFar, scheduleUnknown}

var scheduleWarnings = map[string]string{
	scheduleOverdue: "schedule overdue", scheduleTooFar: "schedule whose next tick is too far ahead",
}

const (
	readScheduleEvery = 15 * time.Minute // one that is on time
	readBadEvery      = time.Minute      // another one
	scheduleStale     = time.Hour        // what was read tells nothing more
	mostSchedulesRead = 200              // for one look
	scheduleLook      = time.Second      // how long one look reads at most
)

// A scheduleBook is the schedules that callers have named to this sidecar, as they were read last. They are read again only when they are
// asked for. So a sidecar whose metrics are not read reads nothing for them.
type scheduleBook struct {
	looking sync.Mutex // held by the look that reads

	mu    sync.Mutex
	known map[string]*bookedSchedule
	ahead time.Duration // of the ensemble's clock, as it was shown last
}

type bookedSchedule struct {
	called   string
	of       recipes.Schedule
	state    string // as it was read
	overdue  time.Time
	read     time.Time // when it was; zero if it could not be
	next     time.Time // when it is to be read again
	reported string    // the state of which the log tells
}

// note enters a schedule as it was read.
func (b *scheduleBook) note(called string, of recipes.Schedule, found recipes.ScheduleState) {
	b.mu.Lock()
	defer b.mu.Unlock()
	booked := b.known[called]
	switch {
	case booked == nil && len(b.known) >= recipes.MaxSchedules:
		return
	case booked == nil:
		booked = &bookedSchedule{called: called, of: of}
		b.known[called] = booked
	}
	booked.read, booked.overdue, booked.state = time.Now(), found.OverdueFrom(), scheduleOnTime
	if !booked.overdue.IsZero() {
		booked.overdue = booked.overdue.Add(-b.ahead)
	}
	switch {
	case found.Paused:
		booked.state = schedulePaused
	case found.IsTooFar(of.Tolerance):
		booked.state = scheduleTooFar
	case found.IsUnread():
		booked.state = scheduleUnknown
	}
	booked.readAgain()
}

// readAgain sets when a schedule is to be read again. The lock is held.
func (b *bookedSchedule) readAgain() {
	now := time.Now()
	b.next = now.Add(readBadEvery)
	if state := b.now(now); state == scheduleOnTime || state == schedulePaused {
		b.next = now.Add(readScheduleEvery)
	}
	if b.overdue.After(now) && b.overdue.Before(b.next) {
		b.next = b.overdue
	}
}

// now is how the schedule stands. One that may have become overdue since it was read is not known. The lock is held.
func (b *bookedSchedule) now(at time.Time) string {
	due := !b.overdue.IsZero() && !at.Before(b.overdue)
	switch {
	case b.read.IsZero(), at.Sub(b.read) > scheduleStale:
		return scheduleUnknown
	case b.state != scheduleOnTime || !due:
		return b.state
	case b.read.Before(b.overdue):
		return scheduleUnknown
	}
	return scheduleOverdue
}

func (b *scheduleBook) forget(called string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.known, called)
}

// unread notes that a schedule could not be read.
func (b *scheduleBook) unread(called string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if booked := b.known[called]; booked != nil {
		booked.read = time.Time{}
		booked.readAgain()
	}
}

// due are some schedules that are to be read again, those first that have waited for longest.
func (b *scheduleBook) due() (due []*bookedSchedule) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := time.Now()
	for _, booked := range b.known {
		if !now.Before(booked.next) {
			due = append(due, booked)
		}
	}
	slices.SortFunc(due, func(a, c *bookedSchedule) int { return a.next.Compare(c.next) })
	return due[:min(len(due), mostSchedulesRead)]
}

// showed notes what the ensemble's clock has shown.
func (b *scheduleBook) showed(at time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ahead = time.Until(at)
}

// look reads what is due, unless another look does.
func (b *scheduleBook) look(ctx context.Context, tree recipes.Tree) {
	if !b.looking.TryLock() {
		return
	}
	defer b.looking.Unlock()
	ctx, stop := context.WithTimeout(ctx, scheduleLook)
	defer stop()
	for _, one := range b.due() {
		found, err := one.of.Read(ctx, tree)
		switch {
		case err == nil:
			b.note(one.called, one.of, found)
		case errors.Is(err, recipes.ErrNoSchedule):
			b.forget(one.called)
		case errors.Is(err, recipes.ErrMalformedRecord), errors.Is(err, recipes.ErrDenied):
			b.unread(one.called)
		default: // there is no contact, or no more time
			return
		}
	}
}

// states are those of the schedules, by name. What is bad is told once.
func (b *scheduleBook) states(reachable bool, log *zap.Logger) map[string]string {
	b.mu.Lock()
	defer b.mu.Unlock()
	states, now := make(map[string]string, len(b.known)), time.Now()
	for called, booked := range b.known {
		state := scheduleUnknown
		if reachable {
			state = booked.now(now)
		}
		states[called] = state
		if state == scheduleUnknown || state == booked.reported {
			continue
		}
		if warning := scheduleWarnings[state]; warning != "" {
			log.Warn(warning, zap.String("name", called))
		}
		booked.reported = state
	}
	return states
}

// ScheduleStates are the states of the schedules that callers have named to this sidecar, by name. Without contact none is known.
func (s *Services) ScheduleStates() map[string]string {
	reachable, _ := s.ensemble.Reachable()
	if reachable {
		s.schedules.look(context.Background(), s.ensemble)
	}
	return s.schedules.states(reachable, s.options.Log)
}
