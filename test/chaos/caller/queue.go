package caller

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"

	queuev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/queue/v1"
	"github.com/sidekeeper/sidekeeper/test/chaos/history"
)

// queueSlots is how many processes put items and take them: each item takes some nine writes.
const queueSlots = 6

// A consumer takes the items of one queue, with bare stubs, since the libraries have no calls for queues.
type consumer struct {
	*caller

	queues queuev1.QueueServiceClient
	queue  string
}

// handleItems puts items, or takes them, as the second caller of a process.
func handleItems(ctx context.Context, c *caller) {
	connection, err := dial(c.order.Address)
	if err != nil {
		return
	}
	defer connection.Close()
	each := &consumer{c, queuev1.NewQueueServiceClient(connection), c.name("mail")}
	for pause(ctx, c.between(0, 50*time.Millisecond)) {
		if c.index > 0 {
			c.calm(ctx, each.takeOnce(ctx))
			continue
		}
		c.calm(ctx, each.put())
		pause(ctx, c.between(100*time.Millisecond, 400*time.Millisecond))
	}
}

// put is not cut short when callers are to stop: then nobody would know what became of it. Each item is put once.
func (c *consumer) put() bool {
	ctx, cancel := context.WithTimeout(context.Background(), callTime)
	defer cancel()
	op := c.newest.Add(1)
	item := history.Owner(c.order.Client, op)
	c.note(op, history.Event{Kind: history.Putting, Queue: c.queue, Item: item, Sidecar: c.order.Sidecar})
	_, err := c.queues.Put(ctx, &queuev1.PutRequest{Name: c.queue, Value: []byte(item)})
	c.noteAnswer(op, history.Placed, err)
	return err == nil
}

// noteAnswer notes what became of a call that adds or removes an item. UNAVAILABLE with a reason of ours says that nothing was sent.
func (c *consumer) noteAnswer(op int64, kind history.Kind, err error) {
	event := ending(err)
	event.Kind, event.Outcome = kind, history.Unknown
	switch {
	case err == nil:
		event.Outcome, event.Code = history.OK, ""
	case event.Reason != "" && (event.Code == codes.Unavailable.String() || event.Code == codes.ResourceExhausted.String()):
		event.Outcome = history.Denied
	}
	c.note(op, event)
}

// takeOnce takes an item, works on it and has it removed, or gives it back. It says whether it was delivered.
func (c *consumer) takeOnce(ctx context.Context) bool {
	op := c.begin(history.Event{Kind: history.Taking, Queue: c.queue})
	streaming, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stopWaiting := context.AfterFunc(ctx, cancel)
	defer stopWaiting()
	stream, err := c.queues.Take(streaming, &queuev1.TakeRequest{
		Name: c.queue, Owner: history.Owner(c.order.Client, op), WaitTimeout: durationpb.New(2 * c.order.Timeout),
	})
	var delivered *queuev1.Delivered
	if err == nil {
		delivered, err = c.awaitItem(op, stream)
	}
	if err != nil {
		c.noteEnd(ctx, op, err)
		return false
	}
	b := &borrowed{borrower: &borrower{caller: c.caller}, op: op, hold: delivered.GetHoldId(), over: make(chan struct{})}
	b.ask = c.question(b.hold)
	if !stopWaiting() { // the stream has been ended
		b.note(op, history.Event{Kind: history.Releasing})
		b.learn(history.Now())
	}
	go b.follow(func() error {
		_, err := stream.Recv()
		return err
	})
	c.work(ctx, b)
	c.finish(b, cancel)
	return true
}

func (c *consumer) awaitItem(op int64, stream grpc.ServerStreamingClient[queuev1.TakeResponse]) (*queuev1.Delivered, error) {
	for {
		event, err := stream.Recv()
		if err != nil {
			return nil, err
		}
		if queued := event.GetQueued(); queued != nil {
			c.note(op, history.Event{Kind: history.Queued, Position: int(queued.GetPosition())})
		}
		if delivered := event.GetDelivered(); delivered != nil {
			item := history.Event{Kind: history.Delivered, Token: delivered.GetFencingToken()}
			for _, value := range delivered.GetValues() {
				item.Item += string(value)
			}
			c.note(op, item)
			return delivered, nil
		}
	}
}

// question is Check of a delivery.
func (c *consumer) question(hold string) func(context.Context) (time.Duration, error) {
	return func(ctx context.Context) (time.Duration, error) {
		answer, err := c.queues.Check(ctx, &queuev1.CheckRequest{HoldIds: []string{hold}})
		if err != nil {
			return 0, err
		}
		return answer.GetDeliveries()[0].GetValidFor().AsDuration(), nil
	}
}

// work takes a moment and, one time out of eight, long enough for anything to happen meanwhile.
func (c *consumer) work(ctx context.Context, b *borrowed) {
	lasts := c.between(0, 40*time.Millisecond)
	if c.dice.IntN(8) == 0 {
		lasts = c.between(c.order.Timeout/2, 2*c.order.Timeout)
	}
	enough := time.NewTimer(lasts)
	defer enough.Stop()
	for b.check(ctx); b.counts(); b.check(ctx) {
		select {
		case <-time.After(c.order.Timeout / askedEvery):
		case <-b.over:
		case <-enough.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// finish has the item removed, or one time out of eight gives it back. A caller that has lost it says that it is done all the same: by then it
// may not know.
func (c *consumer) finish(b *borrowed, cut context.CancelFunc) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if c.dice.IntN(8) == 0 {
		b.note(b.op, history.Event{Kind: history.Releasing})
		b.learn(history.Now())
		cut()
		<-b.over
		return
	}
	b.learn(history.Now())
	b.note(b.op, history.Event{Kind: history.Finishing})
	_, err := c.queues.Done(ctx, &queuev1.DoneRequest{HoldId: b.hold})
	c.noteAnswer(b.op, history.Finished, err)
	if err != nil {
		cut()
	}
	select {
	case <-b.over:
	case <-ctx.Done():
		cut()
		<-b.over
	}
}
