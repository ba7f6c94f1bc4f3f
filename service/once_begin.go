package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/timestamppb"

	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	oncev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/once/v1"
	"github.com/sidekeeper/sidekeeper/recipes"
)

const (
	usualKeep     = 7 * 24 * time.Hour
	longestKeep   = 366 * 24 * time.Hour
	usualAttempts = 3
	mostAttempts  = 1000
)

// parseBegin checks a BeginRequest: the lock of the work, and what is to be recorded.
func parseBegin(request *oncev1.BeginRequest) (work name, params acquireParams, of recipes.Work, err error) {
	if work, of.Key, err = parseWork(request); err != nil {
		return work, params, of, err
	}
	params.name = work
	switch request.GetPer() {
	case oncev1.Per_PER_UNSPECIFIED, oncev1.Per_PER_NAME:
	case oncev1.Per_PER_KEY:
		of.PerKey = true
		params.name, err = parseName("key", work.text+"/"+of.Key)
	default:
		err = invalid("per", request.GetPer().String(), "NAME or KEY")
	}
	if err != nil {
		return work, params, of, err
	}
	keep, err := parseDuration("keep", request.GetKeep(), time.Second, longestKeep)
	if err != nil {
		return work, params, of, err
	}
	of.Keep, of.Most = usualKeep, usualAttempts
	if keep != nil {
		of.Keep = *keep
	}
	if of.RepeatLost, err = parseRepeats("on_loss", request.GetOnLoss()); err == nil {
		of.RepeatFailed, err = parseRepeats("on_failure", request.GetOnFailure())
	}
	if attempts := int(request.GetAttempts()); attempts < 0 || attempts > mostAttempts {
		err = cmp.Or(err, invalid("attempts", strconv.Itoa(attempts), fmt.Sprintf("from 0 to %d", mostAttempts)))
	} else if attempts > 0 {
		of.Most = attempts
	}
	if err == nil {
		params.heldParams, err = parseQueued(request)
	}
	return work, params, of, err
}

func parseRepeats(field string, value oncev1.Policy) (bool, error) {
	switch value {
	case oncev1.Policy_POLICY_UNSPECIFIED, oncev1.Policy_POLICY_RETRY:
		return true, nil
	case oncev1.Policy_POLICY_SKIP:
		return false, nil
	}
	return false, invalid(field, value.String(), "RETRY or SKIP")
}

// A workRequest is one request to Begin. It stands in the queue of the work's lock, and records its attempt before it holds that.
type workRequest struct {
	*lockRequest[*oncev1.BeginResponse]

	work    recipes.Work
	attempt *attempt
}

// Begin is Acquire of the work's lock, with a record.
func (o *onceService) Begin(request *oncev1.BeginRequest, stream grpc.ServerStreamingServer[oncev1.BeginResponse]) error {
	keepalive := &oncev1.BeginResponse{Event: &oncev1.BeginResponse_Keepalive{Keepalive: alive}}
	return serve(request, stream, keepalive, o.begin)
}

func (o *onceService) begin(request *oncev1.BeginRequest, on line[*oncev1.BeginResponse]) (holder, error) {
	asked, params, work, err := parseBegin(request)
	if err != nil {
		return nil, err
	}
	records := o.records(asked)
	locked, recipe, err := newLockRequest(o.services, on, params, records.LockOf(work.Key, work.PerKey), beginWords)
	if err != nil {
		return nil, err
	}
	b := &workRequest{lockRequest: locked, work: work, attempt: newAttempt(asked, records, params)}
	recipe.steps = b
	recipe.atEnd = func(ctx context.Context) { b.attempt.atEnd(ctx, o.services.ensemble, b.granted) }
	b.held = newHeld(o.services, on, recipe)
	return b.held, nil
}

// newAttempt is an attempt that a request asks for.
func newAttempt(of name, records recipes.Once, params acquireParams) *attempt {
	made := &attempt{name: of, records: records, wait: params.wait, turn: make(chan struct{}, 1)}
	made.turn <- struct{}{}
	if params.once {
		made.wait = new(time.Duration)
	}
	return made
}

// attemptOf is the attempt that a caller claims from before the sidecar was started, if it claims one. Should its hold have ended, Finish finds
// by it whether the outcome was recorded, and records it.
func (o *onceService) attemptOf(asked *leasev1.Claim) *attempt {
	if at := asked.GetStart().GetWork(); at != nil {
		params, err := parseWorkRequest(at)
		if err != nil || asked.GetToken() == 0 {
			return nil
		}
		return (&scheduleService{services: o.services}).attemptAt(params.name, asked.GetToken())
	}
	of, params, work, err := parseBegin(asked.GetStart().GetBegin())
	if err != nil || asked.GetToken() == 0 {
		return nil
	}
	made := newAttempt(of, o.records(of), params)
	made.record = recipes.BegunBefore(work.Key, work.PerKey, asked.GetToken())
	return made
}

// beginWords are those of a caller that begins work.
var beginWords = lockWordsOf[*oncev1.BeginResponse](kindOnce, nil) // its begin tells of the grant

// join takes a place, unless the work is done.
func (b *workRequest) join(ctx context.Context, about recipes.About) (*recipes.Place, error) {
	if err := b.attempt.records.Done(ctx, b.services.ensemble, b.work.Key); err != nil {
		return nil, meaningOnce(err)
	}
	return b.lockRequest.join(ctx, about)
}

// ask asks whose turn it is, and records the attempt if it is its own.
func (b *workRequest) ask(ctx context.Context) (turn, error) {
	shown, err := b.lockRequest.ask(ctx)
	if err != nil || !shown.granted {
		return shown, err
	}
	if err := b.mayBeGranted(); err != nil {
		return turn{}, err
	}
	b.work.About = b.about()
	b.attempt.record, err = b.attempt.records.Begin(ctx, b.services.ensemble, b.granted, b.work)
	switch {
	case errors.Is(err, recipes.ErrStands) && b.params.once:
		return turn{}, errLockHeld
	case errors.Is(err, recipes.ErrStands): // where locks lay elsewhere once
		return turn{pause: countdown}, nil
	case errors.Is(err, recipes.ErrUnreachable):
		return turn{}, err
	}
	b.services.audit.wrote(b.caller, kindOnce, "begin", b.attempt.name.text+"/"+b.work.Key, err,
		zap.Int("attempt", b.attempt.record.Attempt), zap.Int64("fencing_token", b.granted.Token))
	return shown, meaningOnce(err)
}

// begin makes a hold of the granted place.
func (b *workRequest) begin(ctx context.Context) (*oncev1.BeginResponse, nodeState) {
	id := b.beginHold(&hold{name: b.params.name, token: b.granted.Token, place: b.granted.Guard(), once: b.attempt})
	tellGrant(ctx, b.granted.Token)
	begun := &oncev1.Begun{HoldId: id, FencingToken: b.granted.Token, Attempt: int32(b.attempt.record.Attempt)}
	if before := b.attempt.record.Previous; before != nil {
		begun.Previous = &oncev1.Attempt{
			State: stateOf(before.Outcome, true), Attempt: int32(before.Attempt), Owner: before.Owner, Identity: before.Identity, Note: before.Note,
			At: timestamppb.New(before.At),
		}
	}
	return &oncev1.BeginResponse{Event: &oncev1.BeginResponse_Begun{Begun: begun}}, b.asks(b.granted.Revocation, b.granted.Changed)
}
