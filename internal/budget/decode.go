package budget

import (
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	"github.com/sidekeeper/sidekeeper/internal/fields"
)

const mostDecoded = 2 // requests with more than fields.Most are decoded at once, one of a caller

// RequestFields is a limit that no policy sets.
const RequestFields = "request_fields"

// decode makes a request of what has come, if it has no more fields than that. A further one of a lease's stream that has more is taken for a
// Start of nothing that is known.
func (b *Budget) decode(a *arrival, wire []byte, into proto.Message, most int, further bool) error {
	number := fields.In(wire, into.ProtoReflect().Descriptor(), most)
	_, multiplexed := into.(*leasev1.MultiplexRequest)
	switch {
	case number > most && further && multiplexed:
		proto.Merge(into, onlyID(wire))
		return nil
	case number > most:
		return a.of.exceeded(RequestFields, most)
	case number > fields.Most:
		release, err := a.of.decoding.acquire(a.ctx, 1)
		if err != nil {
			return err
		}
		defer release()
	}
	if err := proto.Unmarshal(wire, into); err != nil {
		return status.Errorf(codes.Internal, "grpc: failed to unmarshal the received message: %v", err) //nolint:forbidigo // as gRPC does
	}
	return nil
}

// onlyID is a further message of a lease's stream without what it starts: that ends alone.
func onlyID(data []byte) *leasev1.MultiplexRequest {
	message, start := new(leasev1.MultiplexRequest), new(leasev1.Start)
	fieldsIn(data, func(number protowire.Number, value []byte) {
		if number != message.ProtoReflect().Descriptor().Fields().ByName("start").Number() {
			return
		}
		message.Request = &leasev1.MultiplexRequest_Start{Start: start}
		inner, _ := protowire.ConsumeBytes(value)
		fieldsIn(inner, func(number protowire.Number, value []byte) {
			if number == start.ProtoReflect().Descriptor().Fields().ByName("request_id").Number() {
				start.RequestId, _ = protowire.ConsumeVarint(value)
			}
		})
	})
	return message
}

// fieldsIn tells of each field of a message on the wire.
func fieldsIn(data []byte, tell func(number protowire.Number, value []byte)) {
	for len(data) > 0 {
		number, kind, tag := protowire.ConsumeTag(data)
		if tag < 0 {
			return
		}
		value := protowire.ConsumeFieldValue(number, kind, data[tag:])
		if value < 0 {
			return
		}
		tell(number, data[tag:tag+value])
		data = data[tag+value:]
	}
}
