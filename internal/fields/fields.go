// Package fields counts the fields of a request before anything is made of them: two bytes on the wire become a message of a hundred.
package fields

import (
	"errors"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
)

// How many fields a request has at most, those of the messages in it included.
const (
	Most          = 4096    // Check with 1,000 holds and Commit with 100 operations have the most
	mostResumed   = 200_000 // of a resumption with 10,000 claims: the bytes that it may have are no more
	deepestNested = 100     // messages in one another, of which no request has more than a few
)

var errMany = errors.New("the request has too many fields")

// MostOf is how many fields the first request of a call has at most, by its type. A further one has Most.
func MostOf(request protoreflect.MessageDescriptor) int {
	if request.FullName() == (*leasev1.MultiplexRequest)(nil).ProtoReflect().Descriptor().FullName() {
		return mostResumed
	}
	return Most
}

// few says whether a request on the wire has no more fields than its type may have. It makes nothing of them.
func few(data []byte, request protoreflect.MessageDescriptor) bool {
	most := MostOf(request)
	return In(data, request, most) <= most
}

// In is how many fields a request has, or one more than the most; 0 if they cannot be too many.
func In(data []byte, request protoreflect.MessageDescriptor, most int) int {
	if len(data) < 2*min(most, Most) {
		return 0
	}
	left := most
	if errors.Is(count(data, request, &left, 0), errMany) {
		return most + 1
	}
	return most - left
}

func count(data []byte, of protoreflect.MessageDescriptor, left *int, depth int) error {
	for len(data) > 0 {
		if *left--; *left < 0 || depth > deepestNested {
			return errMany
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

// fewInJSON is few for a request in JSON: each field, element and message in it has a comma or a bracket of its own.
func fewInJSON(data []byte, request protoreflect.MessageDescriptor) bool {
	return countJSON(data, MostOf(request)) >= 0
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
