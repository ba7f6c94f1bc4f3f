package recipes

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"
)

// isDue says whether the next tick is.
func (f *scheduleForm) isDue(now time.Time) bool { return !f.Next.IsZero() && !now.Before(f.Next) }

// end notes what became of an attempt, which runs no more.
func (f *scheduleForm) end(of Fire, outcome Outcome, note string, now time.Time) {
	of.Outcome, of.Note, of.Ended = outcome, note, now
	f.Running, f.Place = nil, ""
	f.note(of)
}

func (f *scheduleForm) note(of Fire) {
	f.noted = append(slices.Clip(f.noted), of)
	f.Recent = append(slices.Clone(f.Recent), of)
	if more := len(f.Recent) - MaxOutcomes; more > 0 {
		f.Recent = f.Recent[more:]
	}
}

func (f *scheduleForm) miss(first time.Time, count int, now time.Time) {
	f.note(Fire{Tick: first, Outcome: Missed, Missed: min(count, maxCounted), Ended: now})
}

// latest is the last tick that is due, and how many are before it: maxCounted of more. The next tick is due.
func (s *ScheduleState) latest(now time.Time) (last time.Time, before int) {
	for last = s.Next; before < maxCounted; before++ {
		following := s.next(last)
		if following.IsZero() || following.After(now) {
			return last, before
		}
		last = following
	}
	for span := time.Minute; ; span *= 2 { // back from now: there may be a million of them
		if first := s.next(now.Add(-span)); !first.IsZero() && !first.After(now) {
			for following := first; !following.IsZero() && !following.After(now); following = s.next(following) {
				last = following
			}
			return last, before
		}
	}
}

// A Worker is a caller that holds the lock of a schedule, and begins what is due.
type Worker struct {
	Hold  *Hold
	About About
}

// A Due is what a worker finds that asks for what is due.
type Due struct {
	Begun *Fire         // its attempt; nil if nothing is due
	Pause time.Duration // after which it is worth to ask again, then; never if it is 0
	Noted []Fire        // as of ScheduleState
}

// Begin begins an attempt at what is due, unless the worker has one. Nothing of it counts before Begin returns, and it may have been recorded
// even if that is with an error. ErrGone if the worker's place is gone; ErrStands; ErrNoSchedule; ErrClocksDisagree; ErrMalformedRecord.
func (s Schedule) Begin(ctx context.Context, store Store, worker Worker) (Due, error) {
	var begun *Fire
	var pause time.Duration
	of, err := s.change(ctx, store, []Guard{worker.Hold.Guard()}, func(of *ScheduleState) error {
		begun, pause = of.begunBy(worker.Hold.Token), 0
		idle := of.Running == nil && len(of.Runs) == 0
		switch {
		case begun != nil, idle && (of.Paused || of.Next.IsZero()):
			return errAsItIs
		case of.Running != nil && !of.Gone: // where locks lay elsewhere once
			return ErrStands
		}
		now, err := s.now(ctx, store)
		if err := cmp.Or(err, of.unread); err != nil {
			return err
		}
		if idle && !of.isDue(now) {
			pause = of.pause(now)
			return errAsItIs
		}
		made := Fire{
			Outcome: Begun, Attempt: 1, Token: worker.Hold.Token, Owner: worker.About.Owner, Identity: worker.About.Identity, Begun: now,
		}
		if of.begin(made, now) {
			of.Place, begun = worker.Hold.place.path, of.Running
			of.Since = cmp.Or(of.Since, now) // a record of an older sidecar does not say so
		} else {
			pause = time.Millisecond // what was lost or missed is noted: look for what is next
		}
		return nil
	})
	if err != nil {
		return Due{}, err
	}
	return Due{Begun: begun, Pause: pause, Noted: of.Noted}, nil
}

// pause is when to look again for the next tick, which is not due. The leader's clock may be set meanwhile, which must not make the tick too
// late.
func (s *ScheduleState) pause(now time.Time) time.Duration {
	pause := min(s.Next.Sub(now), lookEvery)
	if own := s.Next.Sub(wall()); own > 0 {
		pause = min(pause, own)
	}
	if !s.CatchUp {
		pause = min(pause, max(s.StartWithin/2, time.Second))
	}
	return pause
}

// Begun is the worker's attempt, if it has one: nil if it was finished, or never began.
func (s Schedule) Begun(ctx context.Context, tree Tree, hold *Hold) (*Fire, error) {
	of, err := s.Get(ctx, tree)
	if err != nil {
		return nil, err
	}
	return of.begunBy(hold.Token), nil
}

// begunBy is the attempt that runs, if it is that of the hold with the token.
func (f *scheduleForm) begunBy(token int64) *Fire {
	if f.Running == nil || f.Running.Token != token {
		return nil
	}
	return f.Running
}

// begin makes the attempt one at what comes next: a lost one again, a run, or the last tick that is due. A pause
// lets runs alone begin. It notes what comes to nothing, and says whether the attempt has begun.
func (s *ScheduleState) begin(made Fire, now time.Time) bool {
	if lost := s.Running; lost != nil {
		s.end(*lost, Lost, "", now)
		mayRepeat := lost.Run != "" || !s.Paused && s.isInTime(lost.Tick, now)
		if mayRepeat && lost.Attempt < MaxFires && !s.SkipLost {
			made.Tick, made.Run, made.Attempt = lost.Tick, lost.Run, lost.Attempt+1
			s.Running = &made
			return true
		}
	}
	if len(s.Runs) > 0 {
		made.Tick, made.Run = s.Runs[0].At, s.Runs[0].ID
		s.Runs, s.Running = s.Runs[1:], &made
		return true
	}
	if s.Paused || !s.isDue(now) {
		return false
	}
	first := s.Next
	last, missed := s.latest(now)
	s.Next = s.next(last)
	if !s.isInTime(last, now) {
		s.miss(first, missed+1, now)
		return false
	}
	if missed > 0 {
		s.miss(first, missed, now)
	}
	s.Last, made.Tick = last, last
	s.Running = &made
	return true
}

// isInTime says whether a tick may begin now.
func (f *scheduleForm) isInTime(tick, now time.Time) bool {
	return f.CatchUp || now.Sub(tick) <= f.StartWithin
}

// Finish records the outcome of the attempt with this token, whether its hold stands or not. ErrSuperseded if another attempt has begun since or
// the schedule is gone; ErrDone if another outcome is recorded. It returns the attempt as it has recorded it; nil if that was done before.
func (s Schedule) Finish(ctx context.Context, store Store, token int64, outcome Outcome, note string) (*Fire, error) {
	of, err := s.change(ctx, store, nil, func(of *ScheduleState) error {
		is := func(fire Fire) bool { return fire.Token == token }
		at := slices.IndexFunc(of.Recent, is)
		if of.begunBy(token) == nil {
			switch {
			case at >= 0 && of.Recent[at].Outcome == outcome:
				return errAsItIs
			case at >= 0 && of.Recent[at].Outcome != Lost:
				return ErrDone
			case at < 0 || of.isRepeated(of.Recent[at]):
				return ErrSuperseded
			}
		}
		now, _, err := setClock(ctx, store, s.Clock)
		if err != nil {
			return err
		}
		if at < 0 {
			of.end(*of.Running, outcome, note, now.UTC())
			return nil
		}
		of.Recent = slices.Clone(of.Recent)
		of.Recent[at].Outcome, of.Recent[at].Note, of.Recent[at].Ended = outcome, note, now.UTC()
		of.noted = []Fire{of.Recent[at]}
		return nil
	})
	switch {
	case errors.Is(err, ErrNoSchedule):
		return nil, ErrSuperseded
	case err != nil || len(of.Noted) == 0:
		return nil, err
	}
	return &of.Noted[0], nil
}

// isRepeated says whether another attempt has followed one that was lost.
func (f *scheduleForm) isRepeated(lost Fire) bool {
	follows := func(of Fire) bool { return of.Tick.Equal(lost.Tick) && of.Run == lost.Run && of.Attempt > lost.Attempt }
	return f.Running != nil && follows(*f.Running) || slices.ContainsFunc(f.Recent, follows)
}
