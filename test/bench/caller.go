package main

import (
	"context"
	"errors"
	"io"

	"google.golang.org/grpc"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
)

// A sidecarCaller locks through generated stubs, over a connection of its own.
type sidecarCaller struct {
	connection *grpc.ClientConn
	locks      lockv1.LockServiceClient
	lease      string // empty if each Acquire gets a lease of its own
	endLease   func()

	stream grpc.ServerStreamingClient[lockv1.AcquireResponse]
	hold   string
	end    context.CancelFunc // of the stream
}

// openPlain opens a caller without a lease: each of its Acquires makes one, and with it a session.
func openPlain(s *sidecar) (*sidecarCaller, error) {
	connection, err := s.dial()
	if err != nil {
		return nil, err
	}
	return &sidecarCaller{connection: connection, locks: lockv1.NewLockServiceClient(connection)}, nil
}

// openLease opens a caller with a lease, for all its Acquires.
func openLease(ctx context.Context, s *sidecar) (caller, error) {
	c, err := openPlain(s)
	if err != nil {
		return nil, err
	}
	c.lease, c.endLease, err = beginLease(ctx, c.connection)
	if err != nil {
		connection := c.connection
		connection.Close()
		return nil, err
	}
	return c, nil
}

// beginLease opens a lease, and returns its id and what closes it.
func beginLease(ctx context.Context, connection *grpc.ClientConn) (id string, end func(), err error) {
	leases := leasev1.NewLeaseServiceClient(connection)
	streaming, cancel := context.WithCancel(ctx)
	stream, err := leases.Open(streaming, &leasev1.OpenRequest{})
	if err == nil {
		var first *leasev1.OpenResponse
		first, err = stream.Recv()
		id = first.GetOpened().GetLeaseId()
	}
	if err != nil {
		cancel()
		return "", nil, err
	}
	return id, func() {
		_, _ = leases.Close(ctx, &leasev1.CloseRequest{LeaseId: id}) // if it fails the stream's end closes it
		cancel()
	}, nil
}

// A clientCaller locks through the Go client, with a lease of its own, over a connection of its own.
type clientCaller struct {
	client *sidekeeper.Client
	lease  *sidekeeper.Lease
	held   *sidekeeper.Lock
}

func openClient(ctx context.Context, s *sidecar) (caller, error) {
	client, err := sidekeeper.Dial("unix://" + s.socket)
	if err != nil {
		return nil, err
	}
	lease, err := client.OpenLease(ctx, sidekeeper.LeaseOptions{})
	if err != nil {
		return nil, errors.Join(err, client.Close())
	}
	return &clientCaller{client: client, lease: lease}, nil
}

func (c *clientCaller) close() {
	_ = c.lease.Close(context.Background()) // if it fails the client's end closes it
	c.client.Close()
}

func (c *clientCaller) lock(ctx context.Context, name string) (err error) {
	c.held, err = c.client.Acquire(ctx, name, sidekeeper.LockOptions{Lease: c.lease})
	return err
}

func (c *clientCaller) unlock(ctx context.Context) error { return c.held.Release(ctx) }

func (c *sidecarCaller) close() {
	if c.endLease != nil {
		c.endLease()
	}
	c.connection.Close()
}

func (c *sidecarCaller) lock(ctx context.Context, name string) error {
	ctx, c.end = context.WithCancel(ctx)
	stream, err := c.locks.Acquire(ctx, &lockv1.AcquireRequest{Name: name, LeaseId: c.lease})
	if err != nil {
		return err
	}
	for {
		event, err := stream.Recv()
		if err != nil {
			return err
		}
		if granted := event.GetGranted(); granted != nil {
			c.stream, c.hold = stream, granted.GetHoldId()
			return nil
		}
	}
}

// unlock releases the lock and takes the end of its stream.
func (c *sidecarCaller) unlock(ctx context.Context) error {
	defer c.end()
	if _, err := c.locks.Release(ctx, &lockv1.ReleaseRequest{HoldId: c.hold}); err != nil {
		return err
	}
	for {
		switch _, err := c.stream.Recv(); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		}
	}
}
