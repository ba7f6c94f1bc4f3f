package sidekeeper

import (
	"context"
	"errors"
	"iter"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/durationpb"

	holdv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/hold/v1"
)

// SilenceTimeout is after how long without a message a watch takes the sidecar for silent. The watch then ends as if the sidecar were
// away. It asks for five messages in this time. A sidecar that sends no keepalives, as an older one, is never taken for silent.
const SilenceTimeout = 15 * time.Second

var (
	keepaliveEvery = durationpb.New(SilenceTimeout / 5)
	errFellSilent  = &Error{Code: codes.Unavailable, Message: "the sidecar is silent"}
)

// An opener opens a watch.
type opener[Wire any] func(context.Context) (grpc.ServerStreamingClient[Wire], error)

// A watched is a message of a watch.
type watched[Wire any] interface {
	*Wire
	GetKeepalive() *holdv1.Keepalive
}

// messages reads a watch until its end, which is an error. A message of a kind that from does not know is left out. With each message of a
// sidecar that sends keepalives, heard is called.
func messages[Wire, Item any, Message watched[Wire]](
	ctx context.Context, clock clock, open opener[Wire], from func(Message) (item Item, known bool), heard func(),
) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		stream, err := open(ctx)
		for timed := false; err == nil; {
			var next Message
			if next, err = receive(stream, clock, timed, cancel); err != nil {
				break
			}
			if timed = timed || next.GetKeepalive() != nil; timed {
				heard()
			}
			if item, known := from(next); known && next.GetKeepalive() == nil && !yield(item, nil) {
				return
			}
		}
		if errors.Is(context.Cause(ctx), errFellSilent) {
			err = errFellSilent
		}
		var none Item
		yield(none, fromStatus(err))
	}
}

// receive waits for a message. If it is timed, silence ends the stream.
func receive[Wire any](
	stream grpc.ServerStreamingClient[Wire], clock clock, timed bool, cancel context.CancelCauseFunc,
) (*Wire, error) {
	if timed {
		defer clock.after(SilenceTimeout, func() { cancel(errFellSilent) })()
	}
	return stream.Recv()
}

func unheard() {}
