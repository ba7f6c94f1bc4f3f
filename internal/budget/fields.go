package budget

import (
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
)

// How many fields a request has at most, those of the messages in it included. Two bytes on the wire become a message of a hundred.
const (
	MostFields    = 4096    // Check with 1,000 holds and Commit with 100 operations have the most
	mostResumed   = 200_000 // of a resumption with 10,000 claims: the bytes that it may have are no more
	mostDecoded   = 2       // requests with more than MostFields are decoded at once, one of a caller
	deepestNested = 100     // messages in one another, of which no request has more than a few
)

// RequestFields is a limit that no policy sets.
const RequestFields = "request_fields"

var errManyFields = errors.New("the request has too many fields")

// FieldsOf is how many fields the first request of a call has at most, by its type. A further one has MostFields.
func FieldsOf(request protoreflect.MessageDescriptor) int {
	if request.FullName() == (*leasev1.MultiplexRequest)(nil).ProtoReflect().Descriptor().FullName() {
		return mostResumed
	}
	return MostFields
}

// fewFields says whether a request on the wire has no more fields than its type may have. It makes nothing of them.
func fewFields(data []byte, request protoreflect.MessageDescriptor) bool {
	most := FieldsOf(request)
	return fieldsOf(data, request, most) <= most
}

// fieldsOf is how many fields a request has, or one more than the most; 0 if they cannot be too many.
func fieldsOf(data []byte, request protoreflect.MessageDescriptor, most int) int {
	if len(data) < 2*min(most, MostFields) {
		return 0
	}
	left := most
	if errors.Is(countFields(data, request, &left, 0), errManyFields) {
		return most + 1
	}
	return most - left
}

func countFields(data []byte, of protoreflect.MessageDescriptor, left *int, depth int) error {
	for len(data) > 0 {
		if *left--; *left < 0 || depth > deepestNested {
			return errManyFields
		}
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			return protowire.ParseError(n)
		}
		data = data[n:]
		if n = protowire.ConsumeFieldValue(number, kind, data); n < 0 {
			return protowire.ParseError(n)
		}
		if field := of.Fields().ByNumber(number); kind == protowire.BytesType && field != nil && field.Message() != nil {
			inner, _ := protowire.ConsumeBytes(data)
			if err := countFields(inner, field.Message(), left, depth+1); err != nil {
				return err
			}
		}
		data = data[n:]
	}
	return nil
}

// fewFieldsJSON is fewFields for a request in JSON: each field, element and message in it has a comma or a bracket of its own.
func fewFieldsJSON(data []byte, request protoreflect.MessageDescriptor) bool {
	return countJSON(data, FieldsOf(request)) >= 0
}

// countJSON is how many of so many are left; fewer than none if there are too many.
func countJSON(data []byte, left int) int {
	quoted := false
	for i := 0; i < len(data) && left >= 0; i++ {
		switch data[i] {
		case '"':
			quoted = !quoted
		case '\\':
			i++ // outside of a string there is none, and the request is refused for it
		case ',', '{', '[':
			if !quoted {
				left--
			}
		}
	}
	return left
}

// decode makes a request of what has come, if it has no more fields than that. A further one of a lease's stream that has more is taken for a
// Start of nothing that is known.
func (b *Budget) decode(a *arrival, wire []byte, into proto.Message, most int, further bool) error {
	fields := fieldsOf(wire, into.ProtoReflect().Descriptor(), most)
	_, multiplexed := into.(*leasev1.MultiplexRequest)
	switch {
	case fields > most && further && multiplexed:
		proto.Merge(into, onlyID(wire))
		return nil
	case fields > most:
		return a.of.exceeded(RequestFields, most)
	case fields > MostFields:
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
