package budget

import (
	"errors"

	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // the codec that is bounded
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
)

// How many fields a request has at most, those of the messages in it included. Two bytes on the wire become a message of a hundred.
const (
	MostFields    = 4096    // Check with 1,000 holds and Commit with 100 operations have the most
	mostResumed   = 400_000 // of a resumption with 10,000 claims, of which each has 11 and its metadata three an entry
	mostResuming  = 800_000 // of one caller's resumptions with more than MostFields that nothing was made of yet
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

// FewFields says whether a request on the wire has no more fields than its type may have. It makes nothing of them.
func FewFields(data []byte, request protoreflect.MessageDescriptor) bool {
	most := FieldsOf(request)
	return fieldsOf(data, request, most) <= most
}

// fieldsOf is how many fields a request has, or one more than the most; 0 if they cannot be too many.
func fieldsOf(data []byte, request protoreflect.MessageDescriptor, most int) int {
	if len(data) < 2*min(most, MostFields) {
		return 0
	}
	left := most
	if errors.Is(count(data, request, &left, 0), errManyFields) {
		return most + 1
	}
	return most - left
}

func count(data []byte, of protoreflect.MessageDescriptor, left *int, depth int) error {
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
			if err := count(inner, field.Message(), left, depth+1); err != nil {
				return err
			}
		}
		data = data[n:]
	}
	return nil
}

// FewFieldsJSON is FewFields for a request in JSON: each field, element and message in it has a comma or a bracket of its own.
func FewFieldsJSON(data []byte, request protoreflect.MessageDescriptor) bool {
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

// A counted request is decoded only if it may have as many fields as it has.
type counted struct {
	proto.Message

	most    int
	admit   func(fields int) error
	refused error
}

// A Codec is protobuf's, which counts the fields of a request before it makes anything of them.
type Codec struct{ encoding.CodecV2 }

// NewCodec makes one.
func NewCodec() Codec { return Codec{encoding.GetCodecV2("proto")} }

// Unmarshal implements encoding.CodecV2.
func (c Codec) Unmarshal(data mem.BufferSlice, into any) error {
	request, is := into.(*counted)
	if !is {
		return c.CodecV2.Unmarshal(data, into)
	}
	if data.Len() < 2*MostFields {
		return c.CodecV2.Unmarshal(data, request.Message)
	}
	flat := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer flat.Free()
	if request.refused = request.admit(fieldsOf(flat.ReadOnlyData(), request.ProtoReflect().Descriptor(), request.most)); request.refused != nil {
		return nil // gRPC tells callers of an error itself, and with no reason
	}
	return c.CodecV2.Unmarshal(mem.BufferSlice{flat}, request.Message)
}
