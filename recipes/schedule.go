package recipes

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"
	"time"
)

// Errors of schedules. The other ones are those of work that is done once.
var (
	// ErrNoSchedule means that there is no such schedule.
	ErrNoSchedule = errors.New("no such schedule")
	// ErrClocksDisagree means that it is not certain what time it is.
	ErrClocksDisagree = errors.New("the clocks of this machine and of the ensemble are too far apart")
	// ErrTooManyRuns means that as many runs wait as may.
	ErrTooManyRuns = errors.New("too many runs of a schedule wait")
)

// More outcomes, of schedules.
const (
	Lost   Outcome = "LOST"   // the attempt's place is gone, and it was not finished
	Missed Outcome = "MISSED" // no attempt has begun
)

const (
	// MaxSchedules bounds how many schedules there are: their directory is listed as a whole.
	MaxSchedules = 10000
	// MaxOutcomes is how many outcomes a schedule keeps.
	MaxOutcomes = 100
	// MaxRuns bounds how many runs of a schedule wait.
	MaxRuns = 16
	// MaxFires bounds how many attempts there are at one tick.
	MaxFires = 3
	// maxCounted bounds how many ticks are counted that were missed at a time.
	maxCounted = 1000
	// lookEvery is how often a worker looks at the ensemble's time that waits for a tick.
	lookEvery = 10 * time.Minute
)

// Schedule is the schedule of one name: a node that holds what it is, its next tick and what became of the last ones.
//
// Only the next tick can begin. The transaction that begins it checks the place of the lock, and changes the node by its version. A version
// never comes back: each transaction also checks the version of a node that every removal of a schedule changes. So none that is
// late is taken for one about another schedule of the same name.
type Schedule struct {
	Path      string        // of its node
	Clock     string        // a node whose time is the ensemble's when it is set
	Removals  string        // the node that every removal changes
	Tolerance time.Duration // between the ensemble's clock and that of this machine

	// Showed is called with what the ensemble's clock has just shown; nil for nothing.
	Showed func(time.Time)

	// Line reads a line of a crontab in a zone: next is the first tick after a time, or zero if there is none.
	Line func(line, zone string) (next func(after time.Time) time.Time, err error)
}

// A Rule is what callers say of a schedule.
type Rule struct {
	Line        string        `json:"cron"`
	Zone        string        `json:"zone"`
	CatchUp     bool          `json:"catch_up,omitempty"` // however late it is
	StartWithin time.Duration `json:"start_within_ns"`    // otherwise
	SkipLost    bool          `json:"skip_lost,omitempty"`
	Paused      bool          `json:"paused,omitempty"`
}

// A Fire is an attempt at a tick or a run, or ticks that were missed.
type Fire struct {
	Tick     time.Time `json:"tick"`
	Run      string    `json:"run,omitempty"` // the id of a run
	Outcome  Outcome   `json:"outcome"`
	Attempt  int       `json:"attempt,omitempty"`
	Missed   int       `json:"missed,omitempty"`
	Token    int64     `json:"token,omitempty"`
	Owner    string    `json:"owner,omitempty"`
	Identity string    `json:"identity,omitempty"`
	Begun    time.Time `json:"begun,omitzero"` // by the ensemble's clock, as the next
	Ended    time.Time `json:"ended,omitzero"`
	Note     string    `json:"note,omitempty"`
}

// A Run is an attempt that was asked for.
type Run struct {
	ID string    `json:"id"`
	At time.Time `json:"at"`
}

// scheduleForm is the data of a schedule's node.
type scheduleForm struct {
	Rule

	Next    time.Time `json:"next,omitzero"`  // tick, if there is one
	Last    time.Time `json:"last,omitzero"`  // the last tick that has begun
	Since   time.Time `json:"since,omitzero"` // from when on its ticks are as they are: it was made, resumed or reset then, or its line changed
	Running *Fire     `json:"running,omitempty"`
	Place   string    `json:"place,omitempty"` // path of that attempt's
	Runs    []Run     `json:"runs,omitempty"`  // that wait
	Recent  []Fire    `json:"recent,omitempty"`

	noted []Fire // as of ScheduleState
}

// A ScheduleState is what is known of a schedule.
type ScheduleState struct {
	scheduleForm

	Gone     bool   // the place is, of the attempt that runs
	Noted    []Fire // what the change that led to this has added to the outcomes, or set anew
	node     Node
	removals int32 // the version of Removals; −1 if it is missing
	next     func(after time.Time) time.Time
	unread   error // why there is no next: another sidecar may know the zone
}

// IsTooFar says whether the next tick lies further ahead than the line says, by the clock of this machine, which may be late by the tolerance.
func (s *ScheduleState) IsTooFar(tolerance time.Duration) bool {
	return s.next != nil && s.Next.After(s.next(wall().Add(tolerance)))
}

// IsUnread says whether this sidecar does not know the line or its zone, which another one may.
func (s *ScheduleState) IsUnread() bool { return s.unread != nil }

// OverdueFrom is from when on the schedule is without success for longer than it may: two ticks that follow the last success are over. One that
// runs is over at the next. It is zero if that is never so, as of a schedule that is paused.
func (s *ScheduleState) OverdueFrom() time.Time {
	since := s.Since
	for i := range s.Recent {
		if of := &s.Recent[i]; of.Outcome == Succeeded && of.Ended.After(since) {
			since = of.Ended
		}
	}
	if s.Paused || s.next == nil || since.IsZero() {
		return time.Time{}
	}
	after := func(tick time.Time) time.Time {
		if tick.IsZero() {
			return tick
		}
		return s.next(tick)
	}
	second := after(s.next(since))
	third, over := after(second), second.Add(s.StartWithin)
	runs := s.Running != nil && !s.Gone && s.Running.Run == "" && !s.Running.Tick.Before(second)
	switch {
	case second.IsZero(), runs && third.IsZero():
		return time.Time{}
	case runs, !third.IsZero() && third.Before(over):
		return third
	}
	return over
}

// encode takes the room that Finish needs at once, so that no quota can refuse it later.
func (f *scheduleForm) encode() []byte {
	if f.Running == nil {
		return compact(f)
	}
	full := *f
	full.end(*f.Running, Succeeded, strings.Repeat(`"`, MaxNote), f.Running.Begun.Add(time.Nanosecond))
	return padded(compact(f), len(compact(full)))
}

// isOurs says whether a schedule is in our form. Any program may have written it.
func (f *scheduleForm) isOurs() bool {
	known := func(of Fire) bool {
		return slices.Contains([]Outcome{Succeeded, Failed, Lost, Missed}, of.Outcome) && of.Attempt >= 0 && of.Attempt <= MaxFires &&
			of.Missed >= 0 && of.Missed <= math.MaxInt32
	}
	if of := f.Running; of != nil {
		runs := *of
		runs.Outcome = Lost
		place := recordForm{Ended: Ended{Outcome: of.Outcome, Attempt: of.Attempt}, Token: of.Token, Place: f.Place}
		if of.Outcome != Begun || !known(runs) || !place.isOurs() {
			return false
		}
	}
	return f.StartWithin >= 0 && len(f.Recent) <= MaxOutcomes && len(f.Runs) <= MaxRuns && !slices.ContainsFunc(f.Recent, func(of Fire) bool {
		return !known(of)
	})
}

// Get reads a schedule. ErrNoSchedule, ErrMalformedRecord.
func (s Schedule) Get(ctx context.Context, tree Tree) (ScheduleState, error) {
	if err := tree.CatchUp(ctx); err != nil {
		return ScheduleState{}, unsent(err)
	}
	return s.Read(ctx, tree)
}

// Read reads a schedule as the tree shows it. Errors as of Get.
func (s Schedule) Read(ctx context.Context, tree Tree) (ScheduleState, error) {
	for before := int32(-1); ; {
		of, err := s.readAt(ctx, tree)
		if err != nil || of.Running == nil {
			return of, err
		}
		if _, err = tree.Get(ctx, of.Place); !errors.Is(err, ErrNoNode) {
			return of, err
		}
		if of.Gone = of.node.Version == before; of.Gone { // Finish is read before the place is gone that it gives up
			return of, nil
		}
		before = of.node.Version
	}
}

func (s Schedule) readAt(ctx context.Context, tree Tree) (of ScheduleState, err error) {
	removals, err := tree.Get(ctx, s.Removals) // first: a removal that is not read yet changes it
	of.removals = removals.Version
	if errors.Is(err, ErrNoNode) {
		of.removals, err = -1, nil
	}
	if err == nil {
		of.node, err = tree.Get(ctx, s.Path)
	}
	if errors.Is(err, ErrNoNode) {
		err = ErrNoSchedule
	}
	if err != nil {
		return of, err
	}
	if err := json.Unmarshal(of.node.Data, &of.scheduleForm); err != nil || !of.isOurs() {
		return of, ErrMalformedRecord
	}
	if of.next, err = s.Line(of.Line, of.Zone); err != nil {
		of.next, of.unread = nil, fmt.Errorf("%w: %w", ErrMalformedRecord, err)
	}
	return of, nil
}

// now is the ensemble's time, later than all that was read before.
func (s Schedule) now(ctx context.Context, store Store) (time.Time, error) {
	at, _, err := setClock(ctx, store, s.Clock)
	if err == nil && s.Showed != nil {
		s.Showed(at)
	}
	if err == nil && wall().Sub(at).Abs() > s.Tolerance {
		err = ErrClocksDisagree
	}
	return at.UTC(), err
}

// errAsItIs ends a change that changes nothing.
var errAsItIs = errors.New("it is as it shall be")

// change changes a schedule as to does, while the guards stand. It may call to again, which then finds what it has done before: what was noted
// then is noted by this change.
func (s Schedule) change(ctx context.Context, store Store, guards []Guard, to func(of *ScheduleState) error) (ScheduleState, error) {
	var unknown, before []Fire
	for {
		of, err := s.Get(ctx, store)
		if err == nil {
			if of.has(unknown) {
				before = append(before, unknown...)
			}
			unknown, err = nil, to(&of)
		}
		switch {
		case errors.Is(err, errAsItIs):
			of.Noted = before
			return of, nil
		case err != nil:
			return of, err
		}
		err = s.commit(ctx, Guarded(store, guards), of, Set(s.Path, of.encode(), of.node.Version))
		if err == nil {
			of.Noted = slices.Concat(before, of.noted)
			return of, nil
		}
		if errors.Is(err, ErrOutcomeUnknown) {
			unknown = of.noted
		}
		if err := again(err); err != nil {
			return of, err
		}
	}
}

// has says whether all of these stand among the outcomes.
func (f *scheduleForm) has(fires []Fire) bool {
	return !slices.ContainsFunc(fires, func(noted Fire) bool {
		return !slices.ContainsFunc(f.Recent, func(of Fire) bool {
			return of.Token == noted.Token && of.Outcome == noted.Outcome && of.Tick.Equal(noted.Tick) && of.Ended.Equal(noted.Ended)
		})
	})
}

// commit carries out a change, unless a schedule was removed since the state was read.
func (s Schedule) commit(ctx context.Context, store Store, of ScheduleState, change Change) error {
	if of.removals < 0 {
		if err := store.MakeDirectory(ctx, path.Dir(s.Removals)); err != nil {
			return err
		}
		_, err := store.Commit(ctx, Create(s.Removals, []byte{}))
		return cmp.Or(err, ErrBadVersion) // read again
	}
	_, err := store.Commit(ctx, Check(s.Removals, of.removals), change)
	return err
}

// Remove removes a schedule. ErrNoSchedule.
func (s Schedule) Remove(ctx context.Context, store Store) error {
	for tried := false; ; tried = true {
		of, err := s.Get(ctx, store)
		switch {
		case errors.Is(err, ErrNoSchedule) && tried: // a reply was lost
			return nil
		case err != nil && !errors.Is(err, ErrMalformedRecord):
			return err
		case of.removals < 0:
			err = s.commit(ctx, store, of, Change{})
		default:
			_, err = store.Commit(ctx, Set(s.Removals, []byte{}, of.removals), Delete(s.Path, of.node.Version))
		}
		if err == nil {
			return nil
		}
		if err := again(err); err != nil {
			return err
		}
	}
}

// Ask has an attempt begin beside the ticks. The same id is one run, as long as it waits, runs or is among the outcomes. ErrTooManyRuns.
func (s Schedule) Ask(ctx context.Context, store Store, id string) error {
	_, err := s.change(ctx, store, nil, func(of *ScheduleState) error {
		is := func(fire Fire) bool { return fire.Run == id }
		switch {
		case slices.ContainsFunc(of.Runs, func(run Run) bool { return run.ID == id }), of.Running != nil && is(*of.Running),
			slices.ContainsFunc(of.Recent, is):
			return errAsItIs
		case len(of.Runs) >= MaxRuns:
			return ErrTooManyRuns
		}
		now, err := s.now(ctx, store)
		of.Runs = append(of.Runs, Run{id, now})
		return err
	})
	return err
}

// Reset sets the next tick to the first one after now, whatever has begun. Ticks that are due are noted as missed.
func (s Schedule) Reset(ctx context.Context, store Store) (ScheduleState, error) {
	return s.change(ctx, store, nil, func(of *ScheduleState) error {
		now, err := s.now(ctx, store)
		if err := cmp.Or(err, of.unread); err != nil {
			return err
		}
		next := of.next(now)
		if of.Next.Equal(next) && !of.Last.After(now) {
			return errAsItIs
		}
		if !of.Paused && of.isDue(now) {
			of.missAll(now)
		}
		of.Next, of.Last, of.Since = next, time.Time{}, now
		return nil
	})
}
