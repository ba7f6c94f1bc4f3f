package gateway

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// A strictJSON codec refuses fields that a request does not have, which Connect's own codec drops: a write whose `precondition` or `guards`
// are misspelt would go on without them.
type strictJSON struct{ name string }

// strict are the codecs for each name that Connect has for JSON.
func strict() connect.HandlerOption {
	return connect.WithHandlerOptions(connect.WithCodec(strictJSON{"json"}), connect.WithCodec(strictJSON{"json; charset=utf-8"}))
}

// Name implements connect.Codec.
func (c strictJSON) Name() string { return c.name }

// Marshal implements connect.Codec.
func (strictJSON) Marshal(message any) ([]byte, error) {
	return protojson.Marshal(message.(proto.Message))
}

// Unmarshal implements connect.Codec. Its errors name the line, the column and the field.
func (strictJSON) Unmarshal(data []byte, message any) error {
	if len(data) == 0 {
		return errors.New("the request is empty: send a JSON object, at least {}")
	}
	request := message.(proto.Message)
	err := protojson.Unmarshal(data, request)
	if err == nil {
		return nil
	}
	why := strings.TrimLeft(strings.TrimPrefix(err.Error(), "proto:"), " \u00a0")
	return fmt.Errorf("%s: %s", request.ProtoReflect().Descriptor().FullName(), why)
}

// An explainer tells callers with a content type of none of the protocols what to send. Connect says nothing to them.
type explainer struct {
	http.ResponseWriter

	takes string // a content type
}

// WriteHeader implements http.ResponseWriter.
func (w explainer) WriteHeader(code int) {
	if code != http.StatusUnsupportedMediaType {
		w.ResponseWriter.WriteHeader(code)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.ResponseWriter.WriteHeader(code)
	text := "the header Content-Type has to say what the request is: " + w.takes + "\n"
	_, _ = io.WriteString(w.ResponseWriter, text) // who asked has gone if this fails
}

// Unwrap is for http.ResponseController.
func (w explainer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Flush implements http.Flusher, which Connect asks for.
func (w explainer) Flush() { _ = http.NewResponseController(w.ResponseWriter).Flush() } // what is not flushed goes with what comes next

// explained has a handler explain itself.
func explained(handler http.Handler, takes string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler.ServeHTTP(explainer{w, takes}, r)
	})
}
