package service

import (
	"cmp"
	"context"
	"time"

	"google.golang.org/grpc"

	holdv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/hold/v1"
	queuev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/queue/v1"
	"github.com/sidekeeper/sidekeeper/recipes"
)

// A deliveryRequest is one request to Take. Its place is one among those who wait for items, and then that of a delivery.
type deliveryRequest struct {
	*held[*recipes.Delivery, *queuev1.TakeResponse]

	name  name
	queue recipes.Queue

	caughtUp bool // the reader has, for one that does not wait at all

	turn recipes.Taker // as it stood last
	news queueNews[*queuev1.TakeResponse]
}

// Take tells whoever is one too many among those who wait so before a session is opened for it.
func (q *queueService) Take(request *queuev1.TakeRequest, stream grpc.ServerStreamingServer[queuev1.TakeResponse]) error {
	keepalive := &queuev1.TakeResponse{Event: &queuev1.TakeResponse_Keepalive{Keepalive: alive}}
	return serve(request, stream, keepalive, q.take)
}

func (q *queueService) take(request *queuev1.TakeRequest, on line[*queuev1.TakeResponse]) (holder, error) {
	asked, err := parseQueue(request.GetName())
	if err != nil {
		return nil, err
	}
	params, err := parseQueued(request)
	if err != nil {
		return nil, err
	}
	of := resource{kindQueue, asked.text}
	waits, err := q.services.waiters.enter(on.claim.goesOn(), of)
	if err != nil {
		return nil, err
	}
	d := &deliveryRequest{name: asked, queue: q.queue(asked)}
	d.held = newHeld(q.services, on, heldRecipe[*recipes.Delivery, *queuev1.TakeResponse]{
		heldParams: params, heldWords: takeWords, resource: of, wait: waits, waitsFor: "wait for an item", again: d.again,
		steps: d, removed: errLockBroken, revoked: errLockRevoked, refused: errQueueEmpty,
	})
	return d.held, nil
}

var takeWords = wordsOf[*queuev1.TakeResponse]()

// again waits for a delivery of the same lease that is given back: the node of an item that is taken bears the item's name.
func (d *deliveryRequest) again(leaving bool) error {
	if leaving {
		return nil
	}
	return &detailedError{kind: errAlreadyContending, facts: map[string]string{"name": d.name.text}}
}

func (d *deliveryRequest) join(ctx context.Context, about recipes.About) (*recipes.Delivery, error) {
	return d.queue.Take(ctx, d.lease.session, d.services.ensemble, about)
}

// ask has an item delivered if there is one.
func (d *deliveryRequest) ask(ctx context.Context) (shown turn, err error) {
	d.turn, err = d.place.Look(ctx)
	shown = turn{granted: d.turn.Delivered, changed: []*recipes.Signal{d.turn.Changed, d.turn.Marked}}
	switch {
	case err != nil:
		return turn{}, err
	case d.turn.Asked.Break:
		return turn{}, errLockBroken
	case d.turn.Delivered, d.turn.Changed.IsGiven():
		return shown, nil
	case d.recipe.once && !d.caughtUp: // what the reader shows may be late
		err = d.services.ensemble.CatchUp(ctx)
		d.caughtUp = err == nil
		return turn{changed: []*recipes.Signal{recipes.Given()}}, err
	case d.recipe.once:
		if item, err := d.mayGetItem(ctx); err != nil || !item {
			return turn{}, cmp.Or(err, errQueueEmpty)
		}
	}
	if !d.turn.Due.IsZero() {
		shown.pause = max(0, min(time.Until(d.turn.Due), lookAgain)) + time.Millisecond
	}
	if rank := d.turn.Position + 1; d.news.isDue(rank) {
		queued := &holdv1.Queued{Position: int32(d.turn.Position)}
		shown.tell = d.news.tell(d.put, rank, queued, func() *queuev1.TakeResponse {
			return &queuev1.TakeResponse{Event: &queuev1.TakeResponse_Queued{Queued: queued}}
		})
	}
	shown.pause = sooner(shown.pause, d.news.left(d.turn.Position+1))
	return shown, nil
}

// lookAgain is after how long an item that is not due is looked at again, at the latest: the clock by which it is due may be set.
const lookAgain = time.Minute

// mayGetItem says whether there seem to be enough items for one who does not wait: then those before it are about to take theirs.
func (d *deliveryRequest) mayGetItem(ctx context.Context) (bool, error) {
	state, err := d.queue.State(ctx, d.services.ensemble)
	return d.turn.Position > 0 && d.turn.Position <= state.Items-state.Taken-state.Delayed, err
}

// begin makes a hold of the delivery, and lets the next of those who wait have its turn.
func (d *deliveryRequest) begin(ctx context.Context) (*queuev1.TakeResponse, nodeState) {
	id := d.beginHold(&hold{
		name: d.name, token: d.place.Token, place: d.place.Guard(), done: newLatch(),
		finish: func(ctx context.Context) error { return d.place.Done(ctx, d.services.ensemble) },
	})
	go d.place.LeaveQueue(context.WithoutCancel(ctx)) // ends with the session at the latest
	delivered := &queuev1.Delivered{HoldId: id, FencingToken: d.place.Token, Values: d.place.Values, Deliveries: int32(d.place.Times)}
	return &queuev1.TakeResponse{Event: &queuev1.TakeResponse_Delivered{Delivered: delivered}}, d.asks(d.turn.Asked, d.turn.Changed)
}

// look asks what is asked of the delivery.
func (d *deliveryRequest) look(ctx context.Context) (nodeState, error) {
	revocation, changed, err := d.place.LookAgain(ctx)
	return d.asks(revocation, changed), err
}
