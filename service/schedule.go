package service

import (
	"cmp"
	"context"
	"errors"
	"strconv"
	"time"

	"go.uber.org/zap"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	oncev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/once/v1"
	schedulev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/schedule/v1"
	"github.com/sidekeeper/sidekeeper/internal/caller"
	"github.com/sidekeeper/sidekeeper/internal/cron"
	"github.com/sidekeeper/sidekeeper/recipes"
)

const (
	usualStartWithin = 5 * time.Minute
	// largestSchedulePage is less than of other lists: each schedule is read with all its outcomes.
	largestSchedulePage = 100
)

// scheduleService answers sidekeeper.schedule.v1.ScheduleService. The lock of a schedule is LockService's of its name.
type scheduleService struct {
	schedulev1.UnsafeScheduleServiceServer

	services *Services
}

func (s *scheduleService) directory() directory {
	return directory{root: s.services.options.ScheduleRoot}
}

func (s *scheduleService) schedule(of name) recipes.Schedule {
	root := s.services.options.ScheduleRoot
	return recipes.Schedule{
		Path: s.directory().flat(of), Clock: root + "/=clock", Removals: root + "/=removals", Tolerance: s.services.options.ClockTolerance,
		Showed: s.services.schedules.showed,
		Line: func(text, zone string) (func(time.Time) time.Time, error) {
			line, err := cron.Parse(text, zone)
			return line.Next, err
		},
	}
}

// named is the schedule that a request names.
func (s *scheduleService) named(request interface{ GetName() string }) (recipes.Schedule, error) {
	of, err := parseName("name", request.GetName())
	return s.schedule(of), err
}

var misfires = map[schedulev1.Misfire]bool{schedulev1.Misfire_MISFIRE_SKIP: false, schedulev1.Misfire_MISFIRE_ONCE: true}

// parseSchedule checks a PutRequest, and says what becomes of a rule by it.
func parseSchedule(request *schedulev1.PutRequest) (to func(*recipes.Rule) (recipes.Rule, error), _ error) {
	within, err := parseDuration("start_within", request.GetStartWithin(), cron.LeastStartWithin, cron.LongestStartWithin)
	if err != nil {
		return nil, err
	}
	if _, known := misfires[request.GetMisfire()]; !known && request.GetMisfire() != schedulev1.Misfire_MISFIRE_UNSPECIFIED {
		return nil, invalid("misfire", request.GetMisfire().String(), "SKIP or ONCE")
	}
	repeats, err := parseRepeats("on_loss", request.GetOnLoss())
	if err != nil {
		return nil, err
	}
	return func(found *recipes.Rule) (recipes.Rule, error) {
		rule := recipes.Rule{Zone: "UTC", StartWithin: usualStartWithin}
		if found != nil {
			rule = *found
		} else if request.GetCron() == "" {
			return rule, &detailedError{kind: recipes.ErrNoSchedule, text: request.GetName()}
		}
		rule.Line, rule.Zone = cmp.Or(request.GetCron(), rule.Line), cmp.Or(request.GetTimeZone(), rule.Zone)
		if of := request.GetMisfire(); of != schedulev1.Misfire_MISFIRE_UNSPECIFIED {
			rule.CatchUp = misfires[of]
		}
		if within != nil {
			rule.StartWithin = *within
		}
		if request.GetOnLoss() != oncev1.Policy_POLICY_UNSPECIFIED {
			rule.SkipLost = !repeats
		}
		if request.Paused != nil {
			rule.Paused = request.GetPaused()
		}
		if found != nil && rule.Paused && rule.Line == found.Line && rule.Zone == found.Zone { // which another sidecar may know
			return rule, nil
		}
		_, err := cron.Parse(rule.Line, rule.Zone)
		return rule, brokenLine(rule, err)
	}, nil
}

// brokenLine says which rule a line or its zone breaks.
func brokenLine(rule recipes.Rule, err error) error {
	switch {
	case errors.Is(err, cron.ErrZone):
		return invalid("time_zone", rule.Zone, "a zone that this sidecar knows, such as UTC or Europe/Berlin")
	case errors.Is(err, cron.ErrNever):
		return invalid("cron", rule.Line, "a line that fires: this one never does")
	case err != nil:
		known := "five fields as in crontab(5), or @hourly, @daily, @weekly, @monthly or @yearly: "
		return invalid("cron", rule.Line, known+strconv.QuoteToASCII(err.Error()))
	}
	return nil
}

func (s *scheduleService) Put(ctx context.Context, request *schedulev1.PutRequest) (*schedulev1.PutResponse, error) {
	of, err := s.named(request)
	if err != nil {
		return nil, err
	}
	to, err := parseSchedule(request)
	if err != nil {
		return nil, err
	}
	state, err := of.Put(ctx, s.services.ensemble, to)
	s.count(request.GetName(), state.Noted, nil)
	s.wrote(ctx, "put", request.GetName(), err)
	shown, err := s.shown(of, request.GetName(), state, err)
	return &schedulev1.PutResponse{Schedule: shown}, err
}

func (s *scheduleService) wrote(ctx context.Context, what, schedule string, err error, more ...zap.Field) {
	s.services.audit.wrote(caller.Of(ctx), kindSchedule, what, schedule, err, more...)
}

// meaning names the schedule in an error.
func (s *scheduleService) meaning(err error, schedule string) error {
	switch {
	case errors.Is(err, recipes.ErrTooManyRuns):
		return limited(recipes.ErrQueueFull, "runs that wait", recipes.MaxRuns)
	case errors.Is(err, recipes.ErrNoSchedule):
		return &detailedError{kind: recipes.ErrNoSchedule, text: schedule}
	case errors.Is(err, recipes.ErrClocksDisagree):
		facts := map[string]string{"tolerance": s.services.options.ClockTolerance.String()}
		return &detailedError{kind: recipes.ErrClocksDisagree, facts: facts, text: "more than " + facts["tolerance"]}
	}
	return err
}

func (s *scheduleService) Get(ctx context.Context, request *schedulev1.GetRequest) (*schedulev1.GetResponse, error) {
	of, err := s.named(request)
	if err != nil {
		return nil, err
	}
	state, err := of.Get(ctx, s.services.ensemble)
	shown, err := s.shown(of, request.GetName(), state, err)
	return &schedulev1.GetResponse{Schedule: shown}, err
}

func (s *scheduleService) List(ctx context.Context, request *schedulev1.ListRequest) (response *schedulev1.ListResponse, err error) {
	response = &schedulev1.ListResponse{}
	if request.GetPageSize() > largestSchedulePage && request.GetPageSize() <= largestPage {
		request.PageSize = largestSchedulePage
	}
	response.Schedules, response.NextPageToken, err = listPage(ctx, s.services.ensemble, s.directory(), request,
		func(ctx context.Context, found name) (*schedulev1.Schedule, error) {
			of := s.schedule(found)
			state, err := of.Read(ctx, s.services.ensemble)
			switch {
			case errors.Is(err, recipes.ErrNoSchedule):
				return nil, nil
			case errors.Is(err, recipes.ErrMalformedRecord), errors.Is(err, recipes.ErrDenied):
				return &schedulev1.Schedule{Name: found.text}, nil
			}
			return s.shown(of, found.text, state, err)
		})
	return response, err
}

func (s *scheduleService) Delete(ctx context.Context, request *schedulev1.DeleteRequest) (*schedulev1.DeleteResponse, error) {
	if !caller.MayOperate(ctx) {
		return nil, ErrOperatorOnly
	}
	of, err := s.named(request)
	if err != nil {
		return nil, err
	}
	err = of.Remove(ctx, s.services.ensemble)
	s.wrote(ctx, "delete", request.GetName(), err)
	if err == nil {
		s.services.schedules.forget(request.GetName())
	}
	return &schedulev1.DeleteResponse{}, s.meaning(err, request.GetName())
}

func (s *scheduleService) History(ctx context.Context, request *schedulev1.HistoryRequest) (*schedulev1.HistoryResponse, error) {
	of, err := s.named(request)
	if err != nil {
		return nil, err
	}
	state, err := of.Get(ctx, s.services.ensemble)
	if err != nil {
		return nil, s.meaning(err, request.GetName())
	}
	response := &schedulev1.HistoryResponse{}
	for i := range state.Recent {
		response.Outcomes = append(response.Outcomes, fireOnWire(state.Recent[len(state.Recent)-1-i], false))
	}
	return response, nil
}

func (s *scheduleService) Run(ctx context.Context, request *schedulev1.RunRequest) (*schedulev1.RunResponse, error) {
	of, err := s.named(request)
	if err != nil {
		return nil, err
	}
	id, err := parseSegment("id", request.GetId())
	if err != nil {
		return nil, err
	}
	err = of.Ask(ctx, s.services.ensemble, id)
	s.wrote(ctx, "run", request.GetName(), err, zap.String("run", id))
	return &schedulev1.RunResponse{}, s.meaning(err, request.GetName())
}

func (s *scheduleService) Reset(ctx context.Context, request *schedulev1.ResetRequest) (*schedulev1.ResetResponse, error) {
	if !caller.MayOperate(ctx) {
		return nil, ErrOperatorOnly
	}
	of, err := s.named(request)
	if err != nil {
		return nil, err
	}
	state, err := of.Reset(ctx, s.services.ensemble)
	s.count(request.GetName(), state.Noted, nil)
	s.wrote(ctx, "reset", request.GetName(), err)
	shown, err := s.shown(of, request.GetName(), state, err)
	return &schedulev1.ResetResponse{Schedule: shown}, err
}

// shown is what a caller is shown of a schedule, and metrics go by.
func (s *scheduleService) shown(at recipes.Schedule, called string, of recipes.ScheduleState, err error) (*schedulev1.Schedule, error) {
	if err != nil {
		return nil, s.meaning(err, called)
	}
	s.services.schedules.note(called, at, of)
	made := &schedulev1.Schedule{
		Name: called, Cron: of.Line, TimeZone: of.Zone, Misfire: schedulev1.Misfire_MISFIRE_SKIP, StartWithin: durationpb.New(of.StartWithin),
		OnLoss: oncev1.Policy_POLICY_RETRY, Paused: of.Paused, NextTooFar: of.IsTooFar(s.services.options.ClockTolerance),
		WaitingRuns: int32(len(of.Runs)), Next: optionalTime(of.Next),
	}
	if of.CatchUp {
		made.Misfire = schedulev1.Misfire_MISFIRE_ONCE
	}
	if of.SkipLost {
		made.OnLoss = oncev1.Policy_POLICY_SKIP
	}
	if of.Running != nil {
		made.Running = fireOnWire(*of.Running, of.Gone)
	}
	if len(of.Recent) > 0 {
		made.Last = fireOnWire(of.Recent[len(of.Recent)-1], false)
	}
	return made, nil
}

func optionalTime(at time.Time) *timestamppb.Timestamp {
	if at.IsZero() {
		return nil
	}
	return timestamppb.New(at)
}

var fireStates = map[recipes.Outcome]schedulev1.State{
	recipes.Begun: schedulev1.State_STATE_RUNNING, recipes.Succeeded: schedulev1.State_STATE_SUCCEEDED,
	recipes.Failed: schedulev1.State_STATE_FAILED, recipes.Lost: schedulev1.State_STATE_LOST, recipes.Missed: schedulev1.State_STATE_MISSED,
}

func fireOnWire(of recipes.Fire, lost bool) *schedulev1.Outcome {
	made := &schedulev1.Outcome{
		Tick: timestamppb.New(of.Tick), RunId: of.Run, State: fireStates[of.Outcome], Attempt: int32(of.Attempt), Missed: int32(of.Missed),
		Owner: of.Owner, Identity: of.Identity, FencingToken: of.Token, Begun: optionalTime(of.Begun), Ended: optionalTime(of.Ended), Note: of.Note,
	}
	if lost {
		made.State = schedulev1.State_STATE_LOST
	}
	return made
}

// Finish records the outcome first, and ends the hold then, as Release does. If the latter fails, the place goes with its session.
func (s *scheduleService) Finish(ctx context.Context, request *schedulev1.FinishRequest) (*schedulev1.FinishResponse, error) {
	of, wanted, err := s.services.parseFinish(ctx, request, true)
	if err != nil {
		return nil, err
	}
	recorded, err := of.schedule.Finish(ctx, s.services.ensemble, of.record.Token, wanted.outcome, wanted.note)
	if recorded != nil {
		s.count(of.name.text, []recipes.Fire{*recorded}, nil)
	}
	if err == nil || errors.Is(err, recipes.ErrDone) || errors.Is(err, recipes.ErrSuperseded) {
		_, _ = s.services.releaseHold(ctx, kindLock, request.GetHoldId()) // what is recorded counts, whatever the stream ends with
	}
	s.wrote(ctx, "finish", of.name.text, err, zap.String("state", string(wanted.outcome)), zap.Int64("fencing_token", of.record.Token))
	return &schedulev1.FinishResponse{}, s.meaning(err, of.name.text)
}
