package doors

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
	"sync"

	_ "google.golang.org/grpc/health/grpc_health_v1"              // describes itself
	_ "google.golang.org/grpc/reflection/grpc_reflection_v1alpha" // describes itself
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	_ "github.com/sidekeeper/sidekeeper/internal/methods" // imports what describes all services
)

// longest is how many bytes a request may have.
const longest = 1 << 20

// methods are those of the table.
func methods() (found []protoreflect.MethodDescriptor) {
	for _, row := range rpcs {
		for name := range strings.FieldsSeq(row.methods) {
			described, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(row.service + "." + name))
			if method, is := described.(protoreflect.MethodDescriptor); is && err == nil {
				found = append(found, method)
			}
		}
	}
	return found
}

func pathOf(method protoreflect.MethodDescriptor) string {
	return fmt.Sprintf("/%s/%s", method.Parent().FullName(), method.Name())
}

// A request is one of many tiny fields.
type request struct {
	path, contentType string
	body              func() []byte
}

// requestsAt are those that a door takes: of each method, in each content type.
func requestsAt(to target) (requests []request) {
	if strings.HasPrefix(to.below, "=") { // of an injector
		containers := strings.Repeat(",{}", longest/3-100)
		review := fmt.Appendf(nil, `{"kind":"AdmissionReview","request":{"uid":"1","object":{"spec":{"containers":[{}%s]}}}}`, containers)
		return []request{{contentType: "application/json", body: func() []byte { return review }}}
	}
	for _, method := range methods() {
		for name, form := range contentTypes {
			if isFor(method, name) && (!to.calls || name == "application/grpc") {
				requests = append(requests, request{pathOf(method), name, sync.OnceValue(func() []byte { return bodyOf(method, form) })})
			}
		}
	}
	return requests
}

// isFor says whether a method takes a content type: some are for streams, and some for all others.
func isFor(method protoreflect.MethodDescriptor, contentType string) bool {
	ofStreams := strings.HasPrefix(contentType, "application/connect")
	ofUnary := contentType == "application/proto" || strings.HasPrefix(contentType, "application/json")
	return !ofStreams && !ofUnary || ofStreams == method.IsStreamingServer()
}

// wrapped is a message with its length before it.
func wrapped(message []byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...)
}

// bodyOf is a request of as many tiny fields as it may have.
func bodyOf(method protoreflect.MethodDescriptor, as form) (body []byte) {
	path, element := heaviest(method.Input(), 0)
	if as.json {
		body = inJSON(path, element)
	} else {
		body = inProto(path, element)
	}
	if as.wrapped {
		return wrapped(body)
	}
	return body
}

// heaviest is the list that a request can have, of messages if there is one, with the way to it; without any, a field that no message has.
func heaviest(of protoreflect.MessageDescriptor, depth int) (path []protoreflect.FieldDescriptor, element protoreflect.FieldDescriptor) {
	for i := range of.Fields().Len() {
		field := of.Fields().Get(i)
		if field.IsList() && field.Message() != nil {
			return nil, field
		}
		if (field.IsList() || field.IsMap()) && element == nil {
			element = field
		}
	}
	if element != nil || depth == 2 {
		return nil, element
	}
	for i := range of.Fields().Len() {
		field := of.Fields().Get(i)
		if field.Message() == nil {
			continue
		}
		if below, element := heaviest(field.Message(), depth+1); element != nil {
			return append([]protoreflect.FieldDescriptor{field}, below...), element
		}
	}
	return nil, nil
}

// inProto repeats a field of two bytes, or of one each if the list is packed.
func inProto(path []protoreflect.FieldDescriptor, element protoreflect.FieldDescriptor) []byte {
	const room = longest - 64
	tiny := protowire.AppendTag(nil, 15, protowire.VarintType)
	if element != nil {
		tiny = protowire.AppendTag(nil, element.Number(), protowire.BytesType)
	}
	body := bytes.Repeat(append(tiny, 0), room/(len(tiny)+1))
	if element != nil && element.IsPacked() {
		body = append(protowire.AppendVarint(tiny, room), make([]byte, room)...)
	}
	for i := len(path) - 1; i >= 0; i-- {
		body = append(protowire.AppendVarint(protowire.AppendTag(nil, path[i].Number(), protowire.BytesType), uint64(len(body))), body...)
	}
	return body
}

// inJSON repeats the shortest value.
func inJSON(path []protoreflect.FieldDescriptor, element protoreflect.FieldDescriptor) []byte {
	name, value := "none", "0,"
	if element != nil {
		name = element.JSONName()
		switch {
		case element.Message() != nil:
			value = "{},"
		case element.Kind() == protoreflect.StringKind, element.Kind() == protoreflect.BytesKind:
			value = `"",`
		}
	}
	before, after := "{", "}"
	for _, field := range path {
		before, after = before+fmt.Sprintf("%q:{", field.JSONName()), "}"+after
	}
	values := strings.Repeat(value, (longest-256)/len(value))
	return fmt.Appendf(nil, "%s%q:[%s]%s", before, name, strings.TrimSuffix(values, ","), after)
}
