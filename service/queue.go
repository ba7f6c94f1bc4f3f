package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"go.uber.org/zap"
	"google.golang.org/protobuf/types/known/durationpb"

	queuev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/queue/v1"
	"github.com/sidekeeper/sidekeeper/internal/caller"
	"github.com/sidekeeper/sidekeeper/recipes"
)

// longestItem bounds, in bytes, the value of an item.
const longestItem = 64 << 10

// queueService answers sidekeeper.queue.v1.QueueService.
type queueService struct {
	queuev1.UnsafeQueueServiceServer

	services *Services
}

func (q *queueService) queue(n name) recipes.Queue {
	return recipes.Queue{Path: q.services.queueDirectory().flat(n), Rests: &q.services.rests}
}

// parseQueue checks a queue's name: it is none of another's other directories.
func parseQueue(value string) (name, error) {
	if !recipes.IsQueue(value) {
		return name{}, invalid("name", value, "no name of a queue ends in "+recipes.TakenSuffix+" or "+recipes.TakersSuffix)
	}
	return parseName("name", value)
}

// itemParams is a PutRequest whose fields are in order.
type itemParams struct {
	name  name
	order recipes.Order
	most  int
}

func parseItem(request *queuev1.PutRequest) (params itemParams, err error) {
	if params.name, err = parseQueue(request.GetName()); err != nil {
		return params, err
	}
	if length := len(request.GetValue()); length > longestItem {
		return params, invalid("value", fmt.Sprint(length, " bytes"), fmt.Sprintf("at most %d bytes", longestItem))
	}
	params.most = int(request.GetMaxItems())
	if params.most < 0 || params.most > recipes.MaxItems {
		return params, invalid("max_items", fmt.Sprint(params.most), fmt.Sprintf("from 0 to %d", recipes.MaxItems))
	}
	if params.most == 0 {
		params.most = recipes.MaxItems
	}
	params.order.Priority = request.GetPriority()
	_, params.order.Ranked = request.GetOrder().(*queuev1.PutRequest_Priority)
	delay, err := parseDuration("delay", request.GetDelay(), 0, longestWait)
	if delay != nil && *delay > 0 {
		params.order.Due = time.Now().Add(*delay)
	}
	return params, err
}

func (q *queueService) Put(ctx context.Context, request *queuev1.PutRequest) (*queuev1.PutResponse, error) {
	params, err := parseItem(request)
	if err != nil {
		return nil, err
	}
	err = q.queue(params.name).Put(ctx, q.services.ensemble, request.GetValue(), params.order, params.most)
	if errors.Is(err, recipes.ErrQueueFull) {
		err = limited(recipes.ErrQueueFull, "max_items", params.most)
	}
	q.services.audit.wrote(caller.Of(ctx), kindQueue, "put", params.name.text, err, zap.Int("bytes", len(request.GetValue())))
	return &queuev1.PutResponse{}, err
}

func (q *queueService) Check(ctx context.Context, request *queuev1.CheckRequest) (*queuev1.CheckResponse, error) {
	deliveries, err := checkEach(ctx, request.GetHoldIds(), q.checked)
	return &queuev1.CheckResponse{Deliveries: deliveries}, err
}

func (q *queueService) checked(ctx context.Context, id string) (*queuev1.CheckedDelivery, error) {
	token, validFor, reason, err := q.services.checkHold(ctx, kindQueue, id)
	if err != nil {
		return nil, err
	}
	return &queuev1.CheckedDelivery{HoldId: id, ValidFor: durationpb.New(validFor), FencingToken: token, Reason: reason}, nil
}

// Done removes the item of a delivery that lasts, and has the stream ended. It acknowledges the end of one that does not.
func (q *queueService) Done(ctx context.Context, request *queuev1.DoneRequest) (*queuev1.DoneResponse, error) {
	found, ended, err := q.services.findHold(ctx, kindQueue, "hold_id", request.GetHoldId())
	if err != nil {
		return nil, err
	}
	var done *latch
	if ended != nil {
		done = ended.done
	} else if done, err = found.done, q.remove(ctx, found); err != nil {
		return nil, err
	}
	why, err := q.services.releaseHold(ctx, kindQueue, request.GetHoldId())
	switch {
	case err != nil || isClosed(done.closed):
	case why == nil:
		err = errDeliveryReturned
	default:
		err = why
	}
	return &queuev1.DoneResponse{}, err
}

// remove removes the item of a delivery, and notes that.
func (q *queueService) remove(ctx context.Context, of *hold) error {
	err := of.finish(ctx)
	q.services.audit.wrote(caller.Of(ctx), kindQueue, "done", of.name.text, err, zap.Int64("fencing_token", of.token))
	switch {
	case err == nil:
		of.done.close()
	case errors.Is(err, recipes.ErrGuardLost) && isClosed(of.done.closed): // by another call
		return nil
	case errors.Is(err, recipes.ErrGuardLost) && !errors.Is(err, recipes.ErrOutcomeUnknown):
		return cmp.Or(of.lease.lost(), errLockBroken)
	}
	return err
}

func (q *queueService) List(ctx context.Context, request *queuev1.ListRequest) (response *queuev1.ListResponse, err error) {
	response = &queuev1.ListResponse{}
	response.Queues, response.NextPageToken, err = listPage(ctx, q.services.ensemble, q.services.queueDirectory(), request, q.listed)
	return response, err
}

func (q *queueService) listed(ctx context.Context, found name) (*queuev1.Queue, error) {
	if !recipes.IsQueue(found.text) {
		return nil, nil
	}
	state, err := q.queue(found).State(ctx, q.services.ensemble)
	if err != nil || state.Items == 0 {
		return nil, err
	}
	return &queuev1.Queue{
		Name: found.text, Items: int32(min(state.Items, math.MaxInt32)), Taken: int32(state.Taken), Delayed: int32(state.Delayed),
	}, nil
}
