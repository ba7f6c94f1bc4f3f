package service

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"

	holdv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/hold/v1"
)

// heldWords are a stream's events for what all holds share. M is what it sends.
type heldWords[M any] struct {
	suspended func(*holdv1.Suspended) M
	resumed   func(*holdv1.Resumed) M
	requested func(request) M // tells what is asked of the holder; nil if nothing ever is, not even when the sidecar stops
}

// wordsOf are the events of a stream that tells each of them in a field of the usual name.
func wordsOf[M proto.Message]() heldWords[M] {
	words := heldWords[M]{suspended: eventOf[M, *holdv1.Suspended]("suspended"), resumed: eventOf[M, *holdv1.Resumed]("resumed")}
	if hasField[M]("revocation_requested") {
		requested := eventOf[M, *holdv1.RevocationRequested]("revocation_requested")
		words.requested = func(asked request) M { return requested(asked.onWire()) }
	}
	return words
}

func hasField[M proto.Message](name protoreflect.Name) bool {
	var none M
	return none.ProtoReflect().Descriptor().Fields().ByName(name) != nil
}

// eventOf makes a stream's message of an event that it tells in the field of this name.
func eventOf[M, E proto.Message](name protoreflect.Name) func(E) M {
	var none M
	var event E
	of, kind := none.ProtoReflect().Type(), event.ProtoReflect().Descriptor().FullName()
	field := of.Descriptor().Fields().ByName(name)
	if field == nil || field.Message() == nil || field.Message().FullName() != kind {
		panic(fmt.Sprintf("%s has no %s %s", of.Descriptor().FullName(), kind, name))
	}
	return func(event E) M {
		message := of.New()
		message.Set(field, protoreflect.ValueOfMessage(event.ProtoReflect()))
		return message.Interface().(M)
	}
}

func (w heldWords[M]) suspendedFor(remaining time.Duration) M {
	return w.suspended(&holdv1.Suspended{Remaining: durationpb.New(remaining)})
}

// onWire is the request as the holder is told of it.
func (r request) onWire() *holdv1.RevocationRequested {
	return &holdv1.RevocationRequested{RequestedBy: r.by, Reason: r.reason, Grace: r.grace()}
}
