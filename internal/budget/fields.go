package budget

import (
	"context"
	"errors"
	"sync"

	"golang.org/x/sync/semaphore"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // the codec that is bounded
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	"github.com/sidekeeper/sidekeeper/internal/caller"
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

// NewLarge bounds how many large requests are decoded at once.
func NewLarge() *semaphore.Weighted { return semaphore.NewWeighted(mostDecoded) }

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

	ctx     context.Context //nolint:containedctx // of the call, while it is decoded
	all     *semaphore.Weighted
	most    int
	further bool // of a lease's stream: what has more fields is taken for a Start of nothing that is known
	refused error
}

var countedRequests = sync.Pool{New: func() any { return new(counted) }} // there is one for each request

var errFields = errors.New("too many fields")

// decode decodes a request that is flat in memory.
func (c *counted) decode(codec encoding.CodecV2, flat mem.Buffer) error {
	fields := fieldsOf(flat.ReadOnlyData(), c.ProtoReflect().Descriptor(), c.most)
	switch {
	case fields > c.most && c.further:
		proto.Merge(c.Message, onlyID(flat.ReadOnlyData()))
		return nil
	case fields > c.most:
		c.refused = errFields
		return nil // gRPC tells callers of an error itself, and with no reason
	case fields > MostFields:
		leave, err := c.turn()
		if err != nil {
			c.refused = err
			return nil
		}
		defer leave()
	}
	return codec.Unmarshal(mem.BufferSlice{flat}, c.Message)
}

// turn waits for the turn of a large request: among its caller's own, and then among all.
func (c *counted) turn() (leave func(), err error) {
	of := SlotOf(caller.Of(c.ctx)).quota
	if of == nil { // an operator's
		return func() {}, nil
	}
	if of.large.Acquire(c.ctx, 1) != nil {
		return nil, context.Cause(c.ctx)
	}
	if c.all.Acquire(c.ctx, 1) != nil {
		of.large.Release(1)
		return nil, context.Cause(c.ctx)
	}
	return func() {
		c.all.Release(1)
		of.large.Release(1)
	}, nil
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
	return request.decode(c.CodecV2, flat)
}
