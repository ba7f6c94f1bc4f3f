package service

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	oncev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/once/v1"
	"github.com/sidekeeper/sidekeeper/internal/caller"
	"github.com/sidekeeper/sidekeeper/recipes"
)

// onceService answers sidekeeper.once.v1.OnceService. The lock of the work is LockService's: here are the records and their words alone.
type onceService struct {
	oncev1.UnsafeOnceServiceServer

	services *Services
}

// records are those of a name. A name's segments are joined by what no name has.
func (o *onceService) records(of name) recipes.Once {
	root := o.services.options.OnceRoot
	return recipes.Once{
		Path: root + "/" + strings.ReplaceAll(of.text, "/", "="), Clock: root + "/=clock",
		LockOf: func(key string, perKey bool) recipes.Lock {
			if perKey {
				return o.services.lockDirectory().lock(name{of.text + "/" + key})
			}
			return o.services.lockDirectory().lock(of)
		},
	}
}

// parseWork checks the name of the work and its key.
func parseWork(request interface {
	GetName() string
	GetKey() string
},
) (work name, key string, err error) {
	if work, err = parseName("name", request.GetName()); err == nil {
		key, err = parseSegment("key", request.GetKey())
	}
	return work, key, err
}

func (o *onceService) Get(ctx context.Context, request *oncev1.GetRequest) (*oncev1.GetResponse, error) {
	work, key, err := parseWork(request)
	if err != nil {
		return nil, err
	}
	found, err := o.records(work).Get(ctx, o.services.ensemble, key)
	if err != nil {
		return nil, meaningOnce(err)
	}
	return &oncev1.GetResponse{Record: recordOnWire(found)}, nil
}

func (o *onceService) List(ctx context.Context, request *oncev1.ListRequest) (*oncev1.ListResponse, error) {
	work, err := parseName("name", request.GetName())
	if err != nil {
		return nil, err
	}
	page, err := parsePage(request)
	if err != nil {
		return nil, err
	}
	records, response := o.records(work), &oncev1.ListResponse{}
	keys, err := records.Keys(ctx, o.services.ensemble)
	keys = slices.DeleteFunc(keys, func(key string) bool { return key <= page.after || BrokenNameRule(key) != "" })
	if len(keys) > page.size {
		keys = keys[:page.size]
		response.NextPageToken = nextToken(keys[page.size-1])
	}
	if err == nil {
		response.Records, err = lookInto(ctx, keys, func(ctx context.Context, key name) (*oncev1.Record, error) {
			return o.listed(records.Read(ctx, o.services.ensemble, key.text))
		})
	}
	return response, err
}

// listed is a record in a list, which no single record fails. A place that the sidecar may not read is none of ours.
func (o *onceService) listed(found recipes.Record, err error) (*oncev1.Record, error) {
	switch {
	case errors.Is(err, recipes.ErrNoRecord):
		return nil, nil
	case errors.Is(err, recipes.ErrMalformedRecord), found.Token > 0 && errors.Is(err, recipes.ErrDenied):
		return &oncev1.Record{Key: found.Key, State: oncev1.State_STATE_MALFORMED, At: timestamppb.New(found.At)}, nil
	}
	return recordOnWire(found), err
}

func (o *onceService) Forget(ctx context.Context, request *oncev1.ForgetRequest) (*oncev1.ForgetResponse, error) {
	if !caller.MayOperate(ctx) {
		return nil, ErrOperatorOnly
	}
	work, key, err := parseWork(request)
	if err != nil {
		return nil, err
	}
	wait, err := parseDuration("wait_timeout", request.GetWaitTimeout(), 0, longestWait)
	if err != nil {
		return nil, err
	}
	if wait == nil {
		wait = new(time.Duration)
	}
	records := o.records(work)
	found, err := records.Get(ctx, o.services.ensemble, key)
	if err == nil || errors.Is(err, recipes.ErrMalformedRecord) {
		err = o.underLock(ctx, o.services.leases.begin, records.LockOf(key, found.PerKey), wait, func(under *recipes.Hold) error {
			return records.Forget(ctx, o.services.ensemble, found, under)
		})
	}
	if errors.Is(err, recipes.ErrHeld) {
		err = errKeyRunning
	}
	o.services.audit.wrote(caller.Of(ctx), kindOnce, "forget", work.text+"/"+key, err)
	return &oncev1.ForgetResponse{}, meaningOnce(err)
}

// A leaseMaker makes a lease.
type leaseMaker func(ctx context.Context, from caller.Caller, about recipes.About, timeout time.Duration) (*lease, error)

// underLock does something while it holds a lock with a session of its own.
func (o *onceService) underLock(
	ctx context.Context, begin leaseMaker, lock recipes.Lock, wait *time.Duration, do func(*recipes.Hold) error,
) error {
	leases, from := o.services.leases, caller.Of(ctx)
	made, err := begin(ctx, from, recipes.About{Identity: from.Distinct(), Owner: "sidekeeper"}, o.services.options.SessionTimeout)
	if err != nil {
		return err
	}
	made.heedDrain()
	defer func() {
		made.end(errLeaseClosed)
		leases.finish(context.WithoutCancel(ctx), made)
	}()
	about := made.about
	about.Timeout = made.session.Timeout()
	late := make(<-chan struct{}) // for ever
	if wait != nil {
		waiting, stop := context.WithTimeout(context.WithoutCancel(ctx), *wait)
		defer stop()
		late = waiting.Done()
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	forget := context.AfterFunc(made.over.ctx, func() { stop(made.over.why()) })
	defer forget()
	return lock.Do(ctx, made.session, o.services.ensemble, about, late, do)
}

// An attempt is one at work that is done once, from when it has begun.
type attempt struct {
	name     name // of the work
	records  recipes.Once
	record   recipes.Record
	schedule *recipes.Schedule // of an attempt at a tick; nil of work that is done once
	wait     *time.Duration    // that its caller allows; nil for ever

	turn   chan struct{} // has a token while no call finishes the attempt
	wanted atomic.Pointer[finishing]
}

// A finishing is what an attempt is to be finished with.
type finishing struct {
	outcome recipes.Outcome
	note    string
	done    atomic.Bool // it is recorded
}

// atEnd records what the attempt is to be finished with, in one transaction with the end of its place. It does so however the hold has ended:
// the place may stand, and the transaction checks that.
func (a *attempt) atEnd(ctx context.Context, store recipes.Store, hold *recipes.Hold) {
	if wanted := a.wanted.Load(); wanted != nil {
		wanted.done.Store(a.records.Finish(ctx, store, a.record, hold, wanted.outcome, wanted.note) == nil)
	}
}

var outcomes = map[oncev1.Outcome]recipes.Outcome{
	oncev1.Outcome_OUTCOME_SUCCEEDED: recipes.Succeeded, oncev1.Outcome_OUTCOME_FAILED: recipes.Failed,
}

type finishRequest interface {
	GetHoldId() string
	GetOutcome() oncev1.Outcome
	GetNote() string
}

// parseFinish checks a request to finish an attempt, and finds that: one at a tick, or one at work that is done once.
func (s *Services) parseFinish(ctx context.Context, request finishRequest, atTick bool) (of *attempt, wanted *finishing, _ error) {
	wanted = &finishing{outcome: outcomes[request.GetOutcome()], note: request.GetNote()}
	if wanted.outcome == "" {
		return nil, nil, invalid("outcome", request.GetOutcome().String(), "SUCCEEDED or FAILED")
	}
	if err := parseText("note", wanted.note, recipes.MaxNote); err != nil {
		return nil, nil, err
	}
	found, ended, err := s.findHold(ctx, kindLock, "hold_id", request.GetHoldId())
	switch {
	case err != nil:
		return nil, nil, err
	case ended != nil:
		of = ended.once
	default:
		of = found.once
	}
	if of == nil || (of.schedule != nil) != atTick { // a lock's, or one of the other service
		return nil, nil, errHoldNotFound
	}
	return of, wanted, nil
}

// Finish ends the hold, as Release does, and has its end record the outcome. An outcome that was not recorded so is recorded under another hold
// of the lock.
func (o *onceService) Finish(ctx context.Context, request *oncev1.FinishRequest) (*oncev1.FinishResponse, error) {
	of, wanted, err := o.services.parseFinish(ctx, request, false)
	if err != nil {
		return nil, err
	}
	select {
	case <-of.turn:
		defer func() { of.turn <- struct{}{} }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	err = o.finish(ctx, of, wanted, request.GetHoldId())
	o.services.audit.wrote(caller.Of(ctx), kindOnce, "finish", of.name.text+"/"+of.record.Key, err, zap.String("state", string(wanted.outcome)),
		zap.Int("attempt", of.record.Attempt), zap.Int64("fencing_token", of.record.Token))
	return &oncev1.FinishResponse{}, meaningOnce(err)
}

func (o *onceService) finish(ctx context.Context, of *attempt, wanted *finishing, hold string) error {
	of.wanted.CompareAndSwap(nil, wanted)
	if _, err := o.services.releaseHold(ctx, kindLock, hold); err != nil {
		return err
	}
	if first := of.wanted.Load(); first.done.Load() && first.outcome == wanted.outcome {
		return nil
	}
	store := o.services.ensemble
	if is, err := of.records.IsFinished(ctx, store, of.record, wanted.outcome); is || err != nil {
		return err
	}
	lock := of.records.LockOf(of.record.Key, of.record.PerKey)
	err := o.underLock(ctx, o.services.leases.beginToEnd, lock, of.wait, func(under *recipes.Hold) error {
		return of.records.FinishLost(ctx, store, of.record, under, wanted.outcome, wanted.note)
	})
	switch {
	case !errors.Is(err, recipes.ErrHeld):
		return err
	case of.wait != nil && *of.wait == 0:
		return errLockHeld
	}
	return errWaitTimeout
}

// isRefusedOnce says whether a caller whose turn has come is refused on account of the records.
func isRefusedOnce(err error) bool {
	return errors.Is(err, recipes.ErrDone) || errors.Is(err, recipes.ErrNotRepeated) || errors.Is(err, recipes.ErrMalformedRecord) ||
		errors.Is(err, recipes.ErrTooManyKeys) || errors.Is(err, recipes.ErrNoSchedule) || errors.Is(err, recipes.ErrClocksDisagree)
}

// stateOf is how the work of a record stands.
func stateOf(outcome recipes.Outcome, lost bool) oncev1.State {
	switch {
	case outcome == recipes.Succeeded:
		return oncev1.State_STATE_SUCCEEDED
	case outcome == recipes.Failed:
		return oncev1.State_STATE_FAILED
	case lost:
		return oncev1.State_STATE_LOST
	}
	return oncev1.State_STATE_RUNNING
}

func recordOnWire(of recipes.Record) *oncev1.Record {
	per := oncev1.Per_PER_NAME
	if of.PerKey {
		per = oncev1.Per_PER_KEY
	}
	return &oncev1.Record{
		Key: of.Key, State: stateOf(of.Outcome, of.Lost), Attempt: int32(of.Attempt), Per: per, Owner: of.Owner, Identity: of.Identity,
		Note: of.Note, FencingToken: of.Token, At: timestamppb.New(of.At), Keep: durationpb.New(of.Keep),
	}
}

// meaningOnce says of an error which record it is about.
func meaningOnce(err error) error {
	if errors.Is(err, recipes.ErrTooManyKeys) {
		return limited(recipes.ErrTooManyKeys, "records of one name", recipes.MaxKeys)
	}
	about, is := errors.AsType[*recipes.RecordError](err)
	if !is {
		return err
	}
	of := about.Record
	if errors.Is(err, recipes.ErrNoRecord) {
		return &detailedError{kind: about.Err, text: of.Key}
	}
	facts := map[string]string{"attempt": strconv.Itoa(of.Attempt)}
	if errors.Is(err, recipes.ErrDone) || errors.Is(err, recipes.ErrNotRepeated) {
		facts["state"] = strings.TrimPrefix(stateOf(of.Outcome, of.Lost).String(), "STATE_")
		facts["at"], facts["owner"], facts["identity"], facts["note"] = of.At.UTC().Format(time.RFC3339), of.Owner, of.Identity, of.Note
	}
	text := "attempt " + facts["attempt"]
	if facts["state"] != "" {
		text += " " + facts["state"] + " at " + facts["at"]
	}
	if of.Owner != "" {
		text += ", by " + quoted(of.Owner)
	}
	return &detailedError{kind: about.Err, facts: facts, text: text}
}
