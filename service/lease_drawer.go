package service

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	"github.com/sidekeeper/sidekeeper/internal/outbox"
)

// A drawer is the mailbox of one request: its part of the outbox of the stream.
type drawer[M any] struct{ *started }

func (d drawer[M]) Put(about outbox.Topic, compose func() (M, bool)) {
	d.box.Put(outbox.Topic(d.number)*topics+about, func() (*leasev1.MultiplexResponse, bool) {
		event, ok := compose()
		return d.event(event), ok
	})
}

func (drawer[M]) Wait() {}

// An innerStream is the stream of a request, which has come already, and whose messages go through its drawer.
type innerStream struct {
	grpc.ServerStream

	ctx context.Context //nolint:containedctx // what it is there for
}

// Context implements grpc.ServerStream.
func (s *innerStream) Context() context.Context { return s.ctx }

// SendHeader implements grpc.ServerStream.
func (*innerStream) SendHeader(metadata.MD) error { return nil }

// SetTrailer implements grpc.ServerStream.
func (*innerStream) SetTrailer(metadata.MD) {}
