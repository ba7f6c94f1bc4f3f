package service

import (
	"strings"

	"github.com/sidekeeper/sidekeeper/recipes"
)

// How attempts end, for Events: as their records say. A lost attempt that no other one follows leaves its tick undone.
const attemptSkipped = "skipped"

// AttemptOutcomes are what Events tells of attempts.
var AttemptOutcomes = []string{"failed", "lost", attemptSkipped, "succeeded"}

// countBegun counts what a worker has begun, and what it has noted on the way.
func (s *scheduleService) countBegun(of string, due recipes.Due) {
	s.count(of, due.Noted, due.Begun)
	if begun := due.Begun; begun != nil && begun.Run == "" && begun.Attempt == 1 {
		s.services.options.Events.TickBegun(of, max(0, begun.Begun.Sub(begun.Tick)))
	}
}

// count counts what was noted with a change. begun is the attempt that has begun with it, if one has.
func (s *scheduleService) count(of string, noted []recipes.Fire, begun *recipes.Fire) {
	events := s.services.options.Events
	for i := range noted {
		fire, how := &noted[i], strings.ToLower(string(noted[i].Outcome))
		switch {
		case fire.Outcome == recipes.Missed:
			events.TicksMissed(of, fire.Missed)
			continue
		case fire.Outcome == recipes.Lost && (begun == nil || begun.Attempt == 1):
			how = attemptSkipped
		}
		events.AttemptEnded(of, how, max(0, fire.Ended.Sub(fire.Begun)))
	}
}

// RunningTicks are the schedules for which callers of this sidecar work now, one for each attempt.
func (s *Services) RunningTicks() (names []string) {
	s.holds.each(func(of *hold) {
		if of.once != nil && of.once.schedule != nil {
			names = append(names, of.name.text)
		}
	})
	return names
}
