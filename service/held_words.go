package service

import (
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	holdv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/hold/v1"
)

// heldWords are a stream's events for what all holds share. M is what it sends.
type heldWords[M any] struct {
	suspended func(*holdv1.Suspended) M
	resumed   func(*holdv1.Resumed) M
	requested func(request) M // tells what is asked of the holder; nil if nothing ever is, not even when the sidecar stops
}

func (w heldWords[M]) suspendedFor(remaining time.Duration) M {
	return w.suspended(&holdv1.Suspended{Remaining: durationpb.New(remaining)})
}

// onWire is the request as the holder is told of it.
func (r request) onWire() *holdv1.RevocationRequested {
	return &holdv1.RevocationRequested{RequestedBy: r.by, Reason: r.reason, Grace: r.grace()}
}
