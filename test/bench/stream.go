package main

import (
	"context"
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
)

// A streamCaller locks through generated stubs over one stream, which is its lease: two messages each way for a pair.
type streamCaller struct {
	connection *grpc.ClientConn
	stream     grpc.BidiStreamingClient[leasev1.MultiplexRequest, leasev1.MultiplexResponse]
	cancel     context.CancelFunc
	request    uint64
}

func openStream(ctx context.Context, s *sidecar) (caller, error) {
	connection, err := s.dial()
	if err != nil {
		return nil, err
	}
	c, err := beginStream(ctx, connection)
	if err != nil {
		connection.Close()
		return nil, err
	}
	return c, nil
}

// beginStream opens the stream of a lease. The caller must end it.
func beginStream(ctx context.Context, connection *grpc.ClientConn) (c *streamCaller, err error) {
	c = &streamCaller{connection: connection}
	ctx, c.cancel = context.WithCancel(ctx)
	c.stream, err = leasev1.NewLeaseServiceClient(connection).Multiplex(ctx)
	if err == nil {
		err = c.stream.Send(&leasev1.MultiplexRequest{Request: &leasev1.MultiplexRequest_Open{Open: &leasev1.OpenRequest{}}})
	}
	if err == nil {
		_, err = c.stream.Recv() // nothing comes before opened
	}
	if err != nil {
		c.cancel()
		return nil, err
	}
	return c, nil
}

func (c *streamCaller) close() {
	c.end()
	c.connection.Close()
}

// end ends the lease, and returns when the sidecar has.
func (c *streamCaller) end() {
	err := c.stream.CloseSend()
	for err == nil {
		_, err = c.stream.Recv()
	}
	c.cancel()
}

func (c *streamCaller) lock(_ context.Context, name string) error {
	c.request++
	err := c.stream.Send(&leasev1.MultiplexRequest{Request: &leasev1.MultiplexRequest_Start{Start: &leasev1.Start{
		RequestId: c.request, Request: &leasev1.Start_Acquire{Acquire: &lockv1.AcquireRequest{Name: name}},
	}}})
	for err == nil {
		var response *leasev1.MultiplexResponse
		response, err = c.stream.Recv()
		if response.GetEvent().GetAcquire().GetGranted() != nil {
			return nil
		}
		if ended := response.GetEnded(); ended != nil {
			return fmt.Errorf("ended: %v %s: %s", codes.Code(ended.GetCode()), ended.GetReason(), ended.GetMessage())
		}
	}
	return err
}

func (c *streamCaller) unlock(context.Context) error {
	err := c.stream.Send(&leasev1.MultiplexRequest{Request: &leasev1.MultiplexRequest_Stop{Stop: &leasev1.Stop{RequestId: c.request}}})
	for err == nil {
		var response *leasev1.MultiplexResponse
		response, err = c.stream.Recv()
		ended := response.GetEnded()
		switch {
		case ended == nil:
		case codes.Code(ended.GetCode()) != codes.OK:
			return fmt.Errorf("ended: %v %s: %s", codes.Code(ended.GetCode()), ended.GetReason(), ended.GetMessage())
		default:
			return nil
		}
	}
	return err
}
