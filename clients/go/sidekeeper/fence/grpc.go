package fence

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/sidekeeper/sidekeeper/clients/go/sidekeeper"
)

// UnaryClientInterceptor sends along the tickets of the call's context: see sidekeeper.Tickets.
func UnaryClientInterceptor(
	ctx context.Context, method string, request, reply any, on *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption,
) error {
	return invoke(carrying(ctx), method, request, reply, on, options...)
}

// StreamClientInterceptor sends along the tickets of the stream's context: see sidekeeper.Tickets.
func StreamClientInterceptor(
	ctx context.Context, of *grpc.StreamDesc, on *grpc.ClientConn, method string, begin grpc.Streamer, options ...grpc.CallOption,
) (grpc.ClientStream, error) {
	return begin(carrying(ctx), of, on, method, options...)
}

func carrying(ctx context.Context) context.Context {
	tickets := sidekeeper.Tickets(ctx)
	if len(tickets) == 0 {
		return ctx
	}
	return metadata.AppendToOutgoingContext(ctx, Header, Format(tickets))
}

// UnaryServerInterceptor refuses calls that do not pass the gate. With the handler's context the tickets guard what is written through a
// sidekeeper.Client, and go along with further calls: see Ticket.Guard and sidekeeper.Tickets.
func (g *Gate) UnaryServerInterceptor(ctx context.Context, request any, of *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	tickets, err := g.Admit(ctx, of.FullMethod, metadata.ValueFromIncomingContext(ctx, Header))
	if err != nil {
		return nil, err
	}
	return handle(guarded(ctx, tickets), request)
}

// StreamServerInterceptor does so with streams, when they begin: what they carry later is not looked at.
func (g *Gate) StreamServerInterceptor(service any, stream grpc.ServerStream, of *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
	ctx := stream.Context()
	tickets, err := g.Admit(ctx, of.FullMethod, metadata.ValueFromIncomingContext(ctx, Header))
	if err != nil {
		return err
	}
	return handle(service, guardedStream{stream, guarded(ctx, tickets)})
}

func guarded(ctx context.Context, tickets []sidekeeper.Ticket) context.Context {
	for _, ticket := range tickets {
		ctx = ticket.Guard(ctx) //nolint:fatcontext // at most 16 of them
	}
	return ctx
}

// A guardedStream has the context that its handler is to have.
type guardedStream struct {
	grpc.ServerStream
	context context.Context //nolint:containedctx // it is the stream's own
}

func (s guardedStream) Context() context.Context { return s.context }
