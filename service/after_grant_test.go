package service_test

import (
	"context"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	"github.com/sidekeeper/sidekeeper/test/support/expect"
)

// grants are the events after which a stream holds something.
var grants = map[protoreflect.Name]bool{
	"granted": true, "elected": true, "joined": true, "entered": true, "delivered": true, "opened": true,
}

// A grantedStream sees that no stream which holds something ends with UNAVAILABLE and a reason: a caller may repeat what ended so.
type grantedStream struct {
	grpc.ClientStream

	t       *testing.T
	granted map[uint64]bool // requests of a lease's stream; 0 stands for the stream itself
}

// watchGrants watches all streams of a connection.
func watchGrants(t *testing.T) grpc.DialOption {
	return grpc.WithChainStreamInterceptor(func(
		ctx context.Context, of *grpc.StreamDesc, on *grpc.ClientConn, method string, open grpc.Streamer, options ...grpc.CallOption,
	) (grpc.ClientStream, error) {
		stream, err := open(ctx, of, on, method, options...)
		return &grantedStream{stream, t, map[uint64]bool{}}, err
	})
}

// RecvMsg implements grpc.ClientStream.
func (s *grantedStream) RecvMsg(message any) error {
	err := s.ClientStream.RecvMsg(message)
	if err != nil {
		told := status.Convert(err)
		_, reasoned := expect.Detail[*errdetails.ErrorInfo](told)
		s.ended(0, told.Code(), reasoned)
		return err
	}
	s.see(0, message.(proto.Message).ProtoReflect()) //nolint:forcetypeassert // as each message of gRPC is one
	return nil
}

// see notes what a message grants, of a lease's stream what the message in it does.
func (s *grantedStream) see(request uint64, message protoreflect.Message) {
	if ended, is := message.Interface().(*leasev1.Ended); is {
		s.ended(ended.GetRequestId(), codes.Code(ended.GetCode()), ended.GetReason() != "")
		return
	}
	if event, is := message.Interface().(*leasev1.Event); is {
		request = event.GetRequestId()
	}
	message.Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		if field.ContainingOneof() == nil || field.Message() == nil {
			return true
		}
		if grants[field.Name()] {
			s.granted[request] = true
		}
		s.see(request, value.Message())
		return true
	})
}

func (s *grantedStream) ended(request uint64, code codes.Code, reasoned bool) {
	if s.granted[request] && reasoned && code == codes.Unavailable {
		s.t.Errorf("request %d holds something, and ends with UNAVAILABLE and a reason", request)
	}
}
