package budget

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"time"

	"golang.org/x/sync/semaphore"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	"github.com/sidekeeper/sidekeeper/internal/caller"
	"github.com/sidekeeper/sidekeeper/internal/fields"
	"github.com/sidekeeper/sidekeeper/internal/methods"
	"github.com/sidekeeper/sidekeeper/internal/policy"
)

// What there may be of requests that have not come as a whole.
const (
	window         = 64 << 10               // bytes that the transport takes in of each by itself
	piece          = 64                     // bytes that are read at a time: a frame with one of them takes up to 330
	prompt         = 1 << 10                // bytes of a further message that may have any time to come
	mostIncoming   = 1280                   // requests of all callers: one too many ends one of the caller that has the most
	mostUnread     = 1024                   // of one caller
	urgentUnread   = 256                    // beside them, of the calls that keep and let go what the caller has
	LongestRequest = 10 * time.Second       // from a call's headers to the end of its request
	yields         = 250 * time.Millisecond // which a request has to come while others wait
)

// UnreadRequests is a limit that no policy sets.
const UnreadRequests = "unread_requests"

// MostLong is how many requests longer than a window are read at once, where so much memory may be in use: those that fill a quarter of it.
func MostLong(memory int) int { return min(quarter(memory, 4*LongestMessage)/LongestMessage, 64) }

// A rawStream is what gRPC's own stream can do beyond what it shows.
type rawStream interface {
	RecvCompress() string
	ReadMessageHeader(header []byte) error
	Read(length int) (mem.BufferSlice, error)
	WriteStatus(answer *status.Status) error // from any goroutine
}

// What gRPC itself answers.
//
//nolint:forbidigo // gRPC's own answers, which have no reason of ours
var (
	errCompressed = status.Error(codes.Unimplemented, "compressed requests are not accepted: send them without grpc-encoding")
	errNotOne     = status.Error(codes.Internal, "cardinality violation: one request is expected")
	errHalf       = status.Error(codes.Internal, io.ErrUnexpectedEOF.Error())
	errNoStream   = status.Error(codes.Internal, "the transport cannot be read")
	errTooSlow    = status.Error(codes.ResourceExhausted, "the request did not come in time") // its caller has been told already
)

// RequestSeconds is a limit that no policy sets.
const RequestSeconds = "request_seconds"

func (a *account) unread() error { return a.exceeded(UnreadRequests, mostUnread) }

func (a *account) tooSlow() error {
	return a.exceeded(RequestSeconds, int(a.budget.Complete/time.Second))
}

// first reads the first request of a call, after which more may follow, or none.
func (b *Budget) first(ctx context.Context, method string, into proto.Message, more bool) error {
	raw, ok := grpc.ServerTransportStreamFromContext(ctx).(rawStream)
	if !ok {
		return errNoStream
	}
	if encoding := raw.RecvCompress(); encoding != "" && encoding != "identity" {
		return errCompressed
	}
	a := arriving.Get().(*arrival)
	*a = arrival{of: b.accountOfCall(ctx), ctx: ctx, raw: raw, since: time.Now()}
	most := mostUnread
	switch {
	case a.of == b.operators:
		most = mostIncoming
	case methods.Of(method).IsUrgent():
		most += urgentUnread
	}
	if !b.incoming.enter(a, most) {
		return a.of.unread()
	}
	b.incoming.surplus(mostIncoming).end((*account).unread)
	late := time.AfterFunc(b.Complete, func() { b.incoming.expire(a).end((*account).tooSlow) })
	err := b.readOnly(a, into, more)
	stopped, ended := late.Stop(), b.incoming.leave(a)
	if a.release != nil {
		a.release()
	}
	switch {
	case ended:
		return errTooSlow
	case !stopped:
		return err // the timer looks at it still
	}
	*a = arrival{}
	arriving.Put(a)
	return err
}

// accountOfCall is the account of who makes a call.
func (b *Budget) accountOfCall(ctx context.Context) *account {
	if of := SlotOf(caller.Of(ctx)).account; of != nil {
		return of
	}
	return b.operators
}

// readOnly reads a request that is the only one, unless more may follow.
func (b *Budget) readOnly(a *arrival, into proto.Message, more bool) error {
	err := b.read(a, into, fields.MostOf(into.ProtoReflect().Descriptor()), LongestMessage)
	switch {
	case more:
		return err
	case errors.Is(err, io.EOF):
		return errNotOne
	case err != nil:
		return err
	}
	switch err = a.raw.ReadMessageHeader(a.header[:]); {
	case err == nil:
		return errNotOne
	case errors.Is(err, io.EOF):
		return nil
	}
	return ofTransport(err)
}

// read reads one request that has no more fields, and is no longer.
func (b *Budget) read(a *arrival, into proto.Message, most, longest int) error {
	if err := a.raw.ReadMessageHeader(a.header[:]); err != nil {
		return ofTransport(err)
	}
	length := int64(binary.BigEndian.Uint32(a.header[1:]))
	switch {
	case a.header[0] != 0:
		return errCompressed
	case length > int64(longest):
		//nolint:forbidigo // gRPC's own answer
		return status.Errorf(codes.ResourceExhausted, "grpc: received message larger than max (%d vs. %d)", length, longest)
	}
	further := longest < LongestMessage
	wire, err := b.readBody(a, int(length), further)
	if err != nil {
		return err
	}
	return b.decode(a, wire, into, most, further)
}

// readBody reads so many bytes.
func (b *Budget) readBody(a *arrival, length int, further bool) (wire []byte, err error) {
	switch {
	case further && length > prompt:
		return b.readInTime(a, length)
	case length > window:
		return b.readLong(a, length)
	}
	return readPieces(a.raw, length)
}

// readPieces reads so many bytes, and takes little more memory than what has come.
func readPieces(raw rawStream, length int) ([]byte, error) {
	wire := make([]byte, 0, min(length, prompt))
	for len(wire) < length {
		data, err := raw.Read(min(length-len(wire), piece))
		if err != nil {
			return nil, halfway(err)
		}
		for _, each := range data {
			wire = append(wire, each.ReadOnlyData()...)
		}
		data.Free()
	}
	return wire, nil
}

// readLong reads a long request when it is the caller's turn. While others wait for theirs, the longest of those that are read are ended. Few
// wait, since what the transport takes in meanwhile may be in small frames.
func (b *Budget) readLong(a *arrival, length int) ([]byte, error) {
	release, err := b.turn(a)
	if err != nil {
		return nil, err
	}
	a.release = release
	b.incoming.asked(a)
	if err := b.memory.spare(); err != nil {
		return nil, err
	}
	return readPieces(a.raw, length)
}

// turn waits for a long request's turn.
func (b *Budget) turn(a *arrival) (release func(), err error) {
	most := a.of.most(policy.IncompleteRequests)
	if !a.of.waiting.enter(most) {
		return nil, a.of.exceeded(policy.IncompleteRequests.String(), most)
	}
	defer a.of.waiting.leave()
	if !b.waiting.enter(2 * MostLong(b.Memory)) {
		return nil, a.of.exceeded(policy.IncompleteRequests.String(), most)
	}
	defer b.waiting.leave()
	return a.of.longRequests().acquire(a.ctx, 1)
}

// longRequests are those that are read for the caller at once.
func (a *account) longRequests() share {
	a.mu.Lock()
	defer a.mu.Unlock()
	if most := a.most(policy.IncompleteRequests); a.mostLong != most { // those that are read leave the share that they have entered
		a.mostLong, a.long = most, share{semaphore.NewWeighted(int64(most)), a.budget.allLong}
	}
	return a.long
}

// makeRoom ends a long request for one that waits.
func (b *Budget) makeRoom() {
	b.incoming.surplusLong().end(func(of *account) error {
		return of.exceeded(policy.IncompleteRequests.String(), of.most(policy.IncompleteRequests))
	})
}

// readInTime reads a further message of a stream, which its handler ends if the message does not come. What has come is never refused.
func (b *Budget) readInTime(a *arrival, length int) ([]byte, error) {
	type body struct {
		wire []byte
		err  error
	}
	read, late := make(chan body, 1), time.NewTimer(b.Complete)
	defer late.Stop()
	go func() {
		wire, err := readPieces(a.raw, length)
		read <- body{wire, err}
	}()
	select {
	case came := <-read:
		return came.wire, came.err
	case <-late.C:
	}
	select {
	case came := <-read:
		return came.wire, came.err
	default:
		return nil, a.of.tooSlow()
	}
}

// halfway is an error in the middle of a message.
func halfway(err error) error {
	if errors.Is(err, io.EOF) {
		return errHalf
	}
	return ofTransport(err)
}

// ofTransport is an error of a stream as gRPC tells it.
func ofTransport(err error) error {
	_, told := status.FromError(err)
	switch {
	case told, errors.Is(err, io.EOF):
		return err
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errHalf
	}
	return status.Error(codes.Unavailable, err.Error()) //nolint:forbidigo // as gRPC does
}

// Registrar has the requests of the services that register with it read by the budget.
func (b *Budget) Registrar(registrar grpc.ServiceRegistrar) grpc.ServiceRegistrar {
	return reading{registrar, b}
}

type reading struct {
	grpc.ServiceRegistrar

	budget *Budget
}

// RegisterService implements grpc.ServiceRegistrar. Streams are read by the interceptor.
func (r reading) RegisterService(description *grpc.ServiceDesc, handlers any) {
	read := *description
	read.Methods = nil
	for _, method := range description.Methods {
		answer, name := method.Handler, "/"+description.ServiceName+"/"+method.MethodName
		method.Handler = func(server any, ctx context.Context, _ func(any) error, through grpc.UnaryServerInterceptor) (any, error) {
			growStack()
			if err := r.budget.May(caller.Of(ctx), name); err != nil { // nothing of the request is read
				refuse := func(context.Context, any) (any, error) { return nil, err }
				return through(ctx, nil, &grpc.UnaryServerInfo{Server: server, FullMethod: name}, refuse)
			}
			return answer(server, ctx, func(request any) error {
				err := r.budget.first(ctx, name, request.(proto.Message), false)
				answer, told := status.FromError(err)
				if !told {
					answer = r.budget.Told(ctx, err)
				}
				if answer.Code() == codes.ResourceExhausted {
					SlotOf(caller.Of(ctx)).TurnedAway()
				}
				return answer.Err()
			}, through)
		}
		read.Methods = append(read.Methods, method)
	}
	r.ServiceRegistrar.RegisterService(&read, handlers)
}

// growStack grows the stack of a call's goroutine at once, while little stands on it. Otherwise it would be copied again and again on the
// call's way inwards.
//
//go:noinline
func growStack() {
	var room [8 << 10]byte
	use(&room)
}

//go:noinline
func use(*[8 << 10]byte) {}

// Stream is an interceptor: it has the requests of streams read by the budget.
func (b *Budget) Stream(server any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
	return handler(server, &readStream{ServerStream: stream, budget: b, info: info})
}

// A readStream has its requests read by the budget. Further ones, of streams in both directions, begin at any time.
type readStream struct {
	grpc.ServerStream

	budget *Budget
	info   *grpc.StreamServerInfo
	begun  bool
	next   arrival // of further requests, one after the other
}

// RecvMsg implements grpc.ServerStream.
func (s *readStream) RecvMsg(request any) error {
	into := request.(proto.Message)
	if !s.begun {
		s.begun = true
		return s.budget.first(s.Context(), s.info.FullMethod, into, s.info.IsClientStream)
	}
	return s.further(into)
}

// further reads a further request of a stream, which begins at any time.
func (s *readStream) further(into proto.Message) error {
	if s.next.raw == nil {
		ctx := s.Context()
		raw, ok := grpc.ServerTransportStreamFromContext(ctx).(rawStream)
		if !ok {
			return errNoStream
		}
		s.next = arrival{of: s.budget.accountOfCall(ctx), ctx: ctx, raw: raw}
	}
	longest := prompt
	if _, leased := into.(*leasev1.MultiplexRequest); leased {
		longest = window
	}
	return s.budget.read(&s.next, into, fields.Most, longest)
}
