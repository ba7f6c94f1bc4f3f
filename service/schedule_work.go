package service

import (
	"context"
	"errors"

	"go.uber.org/zap"
	"google.golang.org/grpc"

	schedulev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/schedule/v1"
	"github.com/sidekeeper/sidekeeper/recipes"
)

// parseWorkRequest checks a WorkRequest: the lock of the schedule, and how it is waited for.
func parseWorkRequest(request *schedulev1.WorkRequest) (params acquireParams, err error) {
	if params.name, err = parseName("name", request.GetName()); err != nil {
		return params, err
	}
	params.heldParams, err = parseQueued(request)
	return params, err
}

// A tickRequest is one request to Work. It stands in the queue of the schedule's lock. The first there waits for what is due, and records its
// attempt before it holds the lock.
type tickRequest struct {
	*lockRequest[*schedulev1.WorkResponse]

	service  *scheduleService
	schedule recipes.Schedule
	fire     *recipes.Fire
}

// Work is Acquire of the schedule's lock, which is granted with a tick.
func (s *scheduleService) Work(request *schedulev1.WorkRequest, stream grpc.ServerStreamingServer[schedulev1.WorkResponse]) error {
	keepalive := &schedulev1.WorkResponse{Event: &schedulev1.WorkResponse_Keepalive{Keepalive: alive}}
	return serve(request, stream, keepalive, s.work)
}

func (s *scheduleService) work(request *schedulev1.WorkRequest, on line[*schedulev1.WorkResponse]) (holder, error) {
	params, err := parseWorkRequest(request)
	if err != nil {
		return nil, err
	}
	locked, recipe, err := newLockRequest(s.services, on, params, s.services.lockDirectory().lock(params.name), workWords)
	if err != nil {
		return nil, err
	}
	t := &tickRequest{lockRequest: locked, service: s, schedule: s.schedule(params.name)}
	recipe.steps, recipe.waitsFor = t, "wait for a tick"
	t.held = newHeld(s.services, on, recipe)
	return t.held, nil
}

// attemptAt is an attempt at a tick, by its token. Finish needs no more of it.
func (s *scheduleService) attemptAt(of name, token int64) *attempt {
	schedule := s.schedule(of)
	return &attempt{name: of, schedule: &schedule, record: recipes.BegunBefore("", false, token)}
}

// workWords are those of a caller that works for a schedule.
var workWords = lockWordsOf[*schedulev1.WorkResponse](kindSchedule, nil) // its begin tells of the grant

// join takes a place, if there is a schedule.
func (t *tickRequest) join(ctx context.Context, about recipes.About) (*recipes.Place, error) {
	state, err := t.schedule.Get(ctx, t.services.ensemble)
	if err != nil {
		return nil, t.service.meaning(err, t.params.name.text)
	}
	t.services.schedules.note(t.params.name.text, t.schedule, state)
	return t.lockRequest.join(ctx, about)
}

// ask asks whose turn it is. If it is its own, it begins what is due, or waits for that.
func (t *tickRequest) ask(ctx context.Context) (turn, error) {
	shown, err := t.lockRequest.ask(ctx)
	if err != nil || !shown.granted {
		return shown, err
	}
	if t.claim.held() { // it goes on with what it had, which may be finished
		return t.goesOn(ctx, shown)
	}
	if err := t.mayBeGranted(); err != nil {
		return turn{}, err
	}
	return t.due(ctx, shown)
}

// goesOn finds the attempt of a hold that stands. A record that is gone or that this sidecar cannot read ends no hold: the work goes on, and
// Finish says what became of it. Its tick is not known then.
func (t *tickRequest) goesOn(ctx context.Context, shown turn) (turn, error) {
	fire, err := t.schedule.Begun(ctx, t.services.ensemble, t.granted)
	switch {
	case err == nil && fire == nil:
		return shown, errLockBroken
	case err == nil:
		t.fire = fire
	case !errors.Is(err, recipes.ErrNoSchedule) && !errors.Is(err, recipes.ErrMalformedRecord):
		return shown, err
	case t.fire == nil:
		t.fire = &recipes.Fire{Token: t.granted.Token}
	}
	return shown, nil
}

// due begins what is due. The signal of a change comes before the look, so that none is missed.
func (t *tickRequest) due(ctx context.Context, shown turn) (turn, error) {
	of, wait := t.params.name.text, turn{changed: []*recipes.Signal{t.granted.Changed}}
	_, changed, err := t.services.ensemble.Watch(ctx, t.schedule.Path)
	if err == nil {
		wait.changed = append(wait.changed, changed)
		var due recipes.Due
		due, err = t.schedule.Begin(ctx, t.services.ensemble, recipes.Worker{Hold: t.granted, About: t.about()})
		t.fire, wait.pause = due.Begun, due.Pause
		t.service.countBegun(of, due)
	}
	switch {
	case errors.Is(err, recipes.ErrNoNode):
		return turn{}, t.service.meaning(recipes.ErrNoSchedule, of)
	case errors.Is(err, recipes.ErrStands):
		wait.pause, err = countdown, nil
	case errors.Is(err, recipes.ErrUnreachable):
		return turn{}, err
	}
	switch {
	case err == nil && t.fire == nil && t.params.once:
		return turn{}, errWaitTimeout
	case err == nil && t.fire == nil:
		return wait, nil
	}
	attempt := 0
	if t.fire != nil {
		attempt = t.fire.Attempt
	}
	t.service.wrote(t.call, "begin", of, err, zap.Int("attempt", attempt), zap.Int64("fencing_token", t.granted.Token))
	return shown, t.service.meaning(err, of)
}

// begin makes a hold of the granted place.
func (t *tickRequest) begin(ctx context.Context) (*schedulev1.WorkResponse, nodeState) {
	made := &hold{name: t.params.name, token: t.granted.Token, place: t.granted.Guard()}
	made.once = t.service.attemptAt(t.params.name, t.granted.Token)
	id := t.beginHold(made)
	tellGrant(ctx, t.granted.Token)
	fire := &schedulev1.Fire{
		HoldId: id, FencingToken: t.granted.Token, Tick: optionalTime(t.fire.Tick), Attempt: int32(t.fire.Attempt), RunId: t.fire.Run,
	}
	return &schedulev1.WorkResponse{Event: &schedulev1.WorkResponse_Fire{Fire: fire}}, t.asks(t.granted.Revocation, t.granted.Changed)
}
