package sidekeeper

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	holdv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/hold/v1"
)

// A heldCall is a call that stays open for as long as the caller has something: a lease, a hold, a membership. It is started; an event
// says that it has begun; the sidecar is asked for how long it is valid; it may be suspended and resumed; it ends once, with a reason; and
// the claim is over for the caller before the sidecar learns of its end.
type heldCall struct {
	claim  *claim
	open   func() (receive func() error, err error) // receive takes in one event; that it has begun gives the claim its id
	keeper *keeper                                  // asks for its validity; nil if it is valid for as long as another claim
	after  func()                                   // what to do when the claim is over and the stream is not read any more; nil, nothing
	kept   bool                                     // a loss does not end the stream

	wait *time.Duration // how long the caller waits, if he said so
}

// answerTime is how much longer than the caller waits a sidecar may take to answer. One that is frozen answers never.
const answerTime = 2 * time.Second

var errSilent = &Error{Code: codes.Unavailable, Message: "the sidecar does not answer: it may be frozen, or its ensemble away"}

// begin starts the stream, and returns when it has begun and is certainly valid for some time to come. The end of ctx ends the beginning,
// and not what has begun: that goes on until the stream's end, which is the claim's.
func (h *heldCall) begin(ctx context.Context, c *Client) error {
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
	if err == nil && h.keeper == nil {
		if !h.claim.Valid() && h.claim.parent.context.Err() == nil { // or it ends with what it counts on
			h.claim.lose(outlived())
		}
		err = context.Cause(h.claim.context)
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
func (h *heldCall) start(c *Client) error {
	receive, err := h.open()
	for err == nil && h.claim.id == "" {
		err = h.hear(receive)
	}
	if err != nil {
		close(h.claim.followed)
		return err
	}
	c.following.Go(func() { h.follow(receive) })
	return nil
}

// follow reads the stream until its end, which is the end of the claim, regardless of which side has ended it.
func (h *heldCall) follow(receive func() error) {
	if h.after != nil {
		defer h.after()
	}
	defer close(h.claim.followed)
	for {
		if err := h.hear(receive); err != nil {
			h.claim.streamEnded(err)
			return
		}
	}
}

func (h *heldCall) hear(receive func() error) error {
	err := receive()
	if err == nil {
		h.claim.heard.Store(true)
	}
	return err
}

// A keptAlive event may say no more than that the stream is served.
type keptAlive interface{ GetKeepalive() *holdv1.Keepalive }

// single opens the stream of a call that carries one thing.
func single[Event any](call func() (grpc.ServerStreamingClient[Event], error), handle func(*Event)) func() (func() error, error) {
	return func() (func() error, error) {
		stream, err := call()
		return func() error {
			for {
				event, err := stream.Recv()
				if err != nil {
					return err
				}
				if kept, is := any(event).(keptAlive); !is || kept.GetKeepalive() == nil {
					handle(event)
					return nil
				}
			}
		}, err
	}
}

// standOn has the claim end by callback when the other one does, before the sidecar learns of it.
func (c *claim) standOn(other *claim, callback func()) {
	other.mu.Lock()
	if other.standing == nil {
		other.standing = map[*claim]bool{}
	}
	other.standing[c] = true
	other.mu.Unlock()
	remove := other.onEnd(callback)
	context.AfterFunc(c.context, func() {
		remove()
		other.mu.Lock()
		defer other.mu.Unlock()
		delete(other.standing, c)
	})
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
