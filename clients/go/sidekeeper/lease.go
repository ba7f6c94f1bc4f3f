package sidekeeper

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
)

// LeaseOptions describe the lease to open.
type LeaseOptions struct {
	TTL      time.Duration // how long the ensemble keeps it when it hears nothing of it; 0, what the sidecar is set to
	Owner    string        // who the caller is, for people
	Metadata map[string]string
}

// A Lease owns what is acquired in its name: when it ends, all of that is given up at once. Its holder must Close it,
// also after it was lost.
type Lease struct {
	*claim
	client *Client
	id     string
	ttl    time.Duration
}

// OpenLease opens a lease. The end of ctx ends the opening, and not a lease that OpenLease has returned.
func (c *Client) OpenLease(ctx context.Context, options LeaseOptions) (*Lease, error) {
	claim, streaming := c.newClaim(ctx, "lease")
	stopWaiting := context.AfterFunc(ctx, func() { claim.abandon(context.Cause(ctx)) })
	defer stopWaiting()
	stream, err := c.leases.Open(streaming, options.request())
	if err != nil {
		claim.cut()
		return nil, claim.refused(err)
	}
	l := &Lease{claim: claim, client: c}
	if err := l.awaitOpened(stream); err != nil {
		claim.cut()
		return nil, claim.refused(err)
	}
	c.following.Go(func() { l.follow(stream) })
	err = c.termKeeper.begin(l.id, claim)
	if err == nil && !stopWaiting() {
		err = context.Cause(ctx)
	}
	if err != nil {
		err = claim.refused(err)
		claim.abandon(err)
		<-l.followed
		return nil, err
	}
	return l, nil
}

func (o LeaseOptions) request() *leasev1.OpenRequest {
	request := &leasev1.OpenRequest{Owner: o.Owner, Metadata: o.Metadata}
	if o.TTL != 0 {
		request.Ttl = durationpb.New(o.TTL)
	}
	return request
}

type leaseStream = grpc.ServerStreamingClient[leasev1.OpenResponse]

func (l *Lease) awaitOpened(stream leaseStream) error {
	for l.id == "" {
		event, err := stream.Recv()
		if err != nil {
			return err
		}
		l.handle(event)
	}
	return nil
}

// follow reads the stream until its end, which is the end of the lease.
func (l *Lease) follow(stream leaseStream) {
	defer close(l.followed)
	defer l.client.termKeeper.forget(l.id)
	for {
		event, err := stream.Recv()
		if err != nil {
			l.streamEnded(err)
			return
		}
		l.handle(event)
	}
}

func (l *Lease) handle(event *leasev1.OpenResponse) {
	switch event := event.GetEvent().(type) {
	case *leasev1.OpenResponse_Opened:
		if l.id == "" { // others read them by now
			l.id, l.ttl = event.Opened.GetLeaseId(), event.Opened.GetTtl().AsDuration()
		}
	case *leasev1.OpenResponse_Suspended:
		l.claim.suspended.Store(true)
	case *leasev1.OpenResponse_Resumed:
		l.claim.suspended.Store(false)
	}
}

// ID names the lease in calls made without this package. It is a secret.
func (l *Lease) ID() string { return l.id }

// TTL is the timeout that the ensemble granted.
func (l *Lease) TTL() time.Duration { return l.ttl }

// Close ends the lease; for the caller, it and everything acquired in its name are over at once. With nil all of it is
// gone from the ensemble. Its error wraps ErrLost if the lease was lost before. Closing again is harmless.
func (l *Lease) Close(ctx context.Context) error {
	l.end(ErrReleased)
	err := l.Err()
	if err == nil {
		err = l.confirmClose(ctx)
	}
	l.cut()
	<-l.followed
	return err
}

// why says why the lease has ended.
func (l *Lease) why() error {
	if told, is := errors.AsType[*Error](l.Err()); is {
		return told
	}
	return ended(ErrLeaseClosed.Error(), "the lease is closed")
}

func (l *Lease) confirmClose(ctx context.Context) error {
	err := confirmed(ctx, func(ctx context.Context) error {
		_, err := l.client.leases.Close(ctx, &leasev1.CloseRequest{LeaseId: l.id}, grpc.WaitForReady(true))
		return err
	})
	return l.givenUp(err)
}
