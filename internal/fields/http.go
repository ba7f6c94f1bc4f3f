package fields

import (
	"encoding/binary"
	"fmt"
	"iter"
	"mime"
	"net/http"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
)

// Few refuses a request over HTTP with more fields than one of its method may have, before anything is made of them.
func Few(r *http.Request, body []byte) error {
	found, _ := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(strings.ReplaceAll(strings.Trim(r.URL.Path, "/"), "/", ".")))
	method, known := found.(protoreflect.MethodDescriptor)
	if !known {
		return nil // which is not found, whatever it has
	}
	fits, of := fewInJSON, method.Input()
	kind := strings.ToLower(r.Header.Get("Content-Type"))
	if media, _, err := mime.ParseMediaType(kind); err == nil {
		kind = media
	}
	if strings.HasSuffix(kind, "proto") || kind == "application/grpc" || kind == "application/grpc-web" {
		fits = few
	}
	for message := range messagesIn(kind, body) {
		if !fits(message, of) {
			return fmt.Errorf("the request has more than %d fields", MostOf(of))
		}
	}
	return nil
}

// messagesIn are the messages of a body: itself or, of a stream's content types and of gRPC-Web, those that each follow five bytes with their
// length.
func messagesIn(kind string, body []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		if !strings.HasPrefix(kind, "application/connect+") && !strings.HasPrefix(kind, "application/grpc") {
			yield(body)
			return
		}
		for more := true; more && len(body) > prefixBytes; {
			end := uint64(prefixBytes) + uint64(binary.BigEndian.Uint32(body[1:prefixBytes]))
			end = min(end, uint64(len(body)))
			more = yield(body[prefixBytes:end])
			body = body[end:]
		}
	}
}

const prefixBytes = 5 // of a message: a flag, and its length
