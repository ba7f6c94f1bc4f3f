// Package gateway answers the API over HTTP with JSON, as the Connect protocol has it, and as gRPC-Web has it: each call becomes one over
// gRPC, so that whoever answers those decides what it may do. It knows no method by name but from the protos' descriptions.
package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"

	"connectrpc.com/connect"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"
)

// longestMessage is how many bytes of a request are read at most, as over gRPC.
const longestMessage = 1 << 20

// carried are the headers of a call that go on with it: what says which trace it belongs to.
var carried = []string{"traceparent", "tracestate"}

// Connection says over which connection a call goes on.
type Connection func(ctx context.Context) (grpc.ClientConnInterface, error)

// New answers at /service/method for each method of the services of these names. A service that has no description here has no methods.
func New(services []string, connection Connection) http.Handler {
	mux := http.NewServeMux()
	for _, name := range slices.Sorted(slices.Values(services)) {
		found, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(name))
		if service, ok := found.(protoreflect.ServiceDescriptor); ok && err == nil {
			for i := range service.Methods().Len() {
				answered := call{service.Methods().Get(i), connection}
				mux.Handle(answered.path(), answered.handler())
			}
		}
	}
	return mux
}

// Refuses says whether a method is not for HTTP: a held stream, which is every stream but those that only watch or wait, or one in both
// directions.
func Refuses(method protoreflect.MethodDescriptor) bool {
	holdsNothing := slices.Contains([]protoreflect.Name{"Watch", "Wait", "Await"}, method.Name())
	return method.IsStreamingClient() || method.IsStreamingServer() && !holdsNothing
}

// errHeld is why.
var errHeld = connect.NewError(connect.CodeUnimplemented, errors.New("locks and the like are held over gRPC only: "+
	"over HTTP, the sidecar could not end the stream before another caller gets the lock"))

// A call is one method.
type call struct {
	method     protoreflect.MethodDescriptor
	connection Connection
}

func (c call) path() string {
	return fmt.Sprintf("/%s/%s", c.method.Parent().FullName(), c.method.Name())
}

func (c call) handler() http.Handler {
	options := []connect.HandlerOption{
		connect.WithSchema(c.method), connect.WithRequestInitializer(c.initialize), connect.WithReadMaxBytes(longestMessage), strict(),
		connect.WithCompression("gzip", nil, nil), // a short request could be a long one
	}
	switch {
	case Refuses(c.method):
		return http.HandlerFunc(refuse)
	case c.method.IsStreamingServer():
		return explained(connect.NewServerStreamHandler(c.path(), c.stream, options...), "application/connect+json")
	}
	return explained(connect.NewUnaryHandler(c.path(), c.unary, options...), "application/json")
}

func refuse(w http.ResponseWriter, r *http.Request) {
	_ = connect.NewErrorWriter().Write(w, r, errHeld) // who asked has gone if this fails
}

func (c call) initialize(_ connect.Spec, message any) error {
	*message.(*dynamicpb.Message) = *dynamicpb.NewMessage(c.method.Input())
	return nil
}

func (c call) unary(
	ctx context.Context, request *connect.Request[dynamicpb.Message],
) (*connect.Response[dynamicpb.Message], error) {
	connection, err := c.connection(ctx)
	if err != nil {
		return nil, answered(err)
	}
	reply := dynamicpb.NewMessage(c.method.Output())
	if err := connection.Invoke(onward(ctx, request.Header()), c.path(), request.Msg, reply); err != nil {
		return nil, answered(err)
	}
	return connect.NewResponse(reply), nil
}

func (c call) stream(
	ctx context.Context, request *connect.Request[dynamicpb.Message], to *connect.ServerStream[dynamicpb.Message],
) error {
	connection, err := c.connection(ctx)
	if err != nil {
		return answered(err)
	}
	ctx, cancel := context.WithCancel(onward(ctx, request.Header()))
	defer cancel()
	from, err := connection.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, c.path())
	if err != nil {
		return answered(err)
	}
	if err := errors.Join(from.SendMsg(request.Msg), from.CloseSend()); err != nil && !errors.Is(err, io.EOF) {
		return answered(err)
	}
	return c.relay(from, to)
}

// relay passes on what a stream sends, as fast as it is read.
func (c call) relay(from grpc.ClientStream, to *connect.ServerStream[dynamicpb.Message]) error {
	for {
		reply := dynamicpb.NewMessage(c.method.Output())
		err := from.RecvMsg(reply)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return answered(err)
		}
		if err := to.Send(reply); err != nil {
			return err
		}
	}
}

// onward is the context of a call that goes on.
func onward(ctx context.Context, headers http.Header) context.Context {
	var pairs []string
	for _, name := range carried {
		if value := headers.Get(name); value != "" {
			pairs = append(pairs, name, value)
		}
	}
	return metadata.AppendToOutgoingContext(ctx, pairs...)
}

// answered is a status as the protocols over HTTP tell it, with its details.
func answered(err error) error {
	told := status.Convert(err)
	answer := connect.NewError(connect.Code(told.Code()), errors.New(told.Message()))
	for _, detail := range told.Proto().GetDetails() {
		if detail, err := connect.NewErrorDetail(detail); err == nil {
			answer.AddDetail(detail)
		}
	}
	return answer
}
