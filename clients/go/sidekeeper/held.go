package sidekeeper

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
)

// A heldStream is a call that stays open for as long as the caller has something: a lease, a hold, a membership. It is started; an event
// says that it has begun; the sidecar is asked for how long it is valid; it may be suspended and resumed; it ends once, with a reason; and
// the claim is over for the caller before the sidecar learns of its end.
type heldStream[Event any] struct {
	claim  *claim
	open   func() (grpc.ServerStreamingClient[Event], error)
	handle func(*Event) // takes in one event at a time; that it has begun gives the claim its id
	keeper *keeper      // asks for its validity; nil if it is valid for as long as another claim
	after  func()       // what to do when the claim is over and the stream is not read any more; nil, nothing
	kept   bool         // a loss does not end the stream

	wait *time.Duration // how long the sidecar was told to wait, if it was told
}

// answerTime is how much longer than it was told to wait a sidecar may take to answer. One that is frozen answers never.
const answerTime = 2 * time.Second

var errSilent = &Error{Code: codes.Unavailable, Message: "the sidecar does not answer"}

// begin starts the stream, and returns when it has begun and is certainly valid for some time to come. The end of ctx ends the beginning,
// and not what has begun: that goes on until the stream's end, which is the claim's.
func (h *heldStream[Event]) begin(ctx context.Context, c *Client) error {
	if h.wait != nil && *h.wait > 0 { // 0 takes as long as the ensemble takes
		bounded, cancel := context.WithDeadlineCause(ctx, time.Now().Add(*h.wait).Add(answerTime), errSilent)
		defer cancel()
		ctx = bounded
	}
	stopWaiting := context.AfterFunc(ctx, func() { h.claim.abandon(context.Cause(ctx)) })
	defer stopWaiting()
	err := h.start(c)
	if err == nil && h.keeper != nil {
		err = h.keeper.begin(h.claim.id, h.claim)
	}
	if err == nil && !stopWaiting() {
		err = context.Cause(ctx)
	}
	if err == nil && h.kept {
		h.claim.kept.Store(true)
		err = context.Cause(h.claim.context) // what ended before that may have ended the stream
	}
	if err == nil {
		return nil
	}
	err = h.claim.refused(err)
	h.claim.end(err)
	h.claim.cut()
	<-h.claim.followed
	return err
}

// start returns when the stream has begun, and has it read from then on.
func (h *heldStream[Event]) start(c *Client) error {
	stream, err := h.open()
	for err == nil && h.claim.id == "" {
		var event *Event
		if event, err = stream.Recv(); err == nil {
			h.hear(event)
		}
	}
	if err != nil {
		close(h.claim.followed)
		return err
	}
	c.following.Go(func() { h.follow(stream) })
	return nil
}

// follow reads the stream until its end, which is the end of the claim, whoever has ended it.
func (h *heldStream[Event]) follow(stream grpc.ServerStreamingClient[Event]) {
	if h.after != nil {
		defer h.after()
	}
	defer close(h.claim.followed)
	for {
		event, err := stream.Recv()
		if err != nil {
			h.claim.streamEnded(err)
			return
		}
		h.hear(event)
	}
}

func (h *heldStream[Event]) hear(event *Event) {
	h.claim.heard.Store(true)
	h.handle(event)
}

// standOn has the claim end by callback when the other one does, before the sidecar learns of it.
func (c *claim) standOn(other *claim, callback func()) {
	context.AfterFunc(c.context, other.onEnd(callback))
}

// giveUp ends the claim by the caller's own wish: for the caller at once, then for the sidecar, which ask asks for it; nil, the end of the
// stream is enough. Its error wraps ErrLost if the claim was lost before.
func (c *claim) giveUp(ctx context.Context, ask func(context.Context) error) error {
	c.end(ErrReleased)
	err := c.Err()
	if err == nil && ask != nil {
		err = c.givenUp(confirmed(ctx, ask))
	}
	c.cut()
	<-c.followed
	return err
}
