package budget

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	"github.com/sidekeeper/sidekeeper/internal/caller"
	"github.com/sidekeeper/sidekeeper/internal/methods"
	"github.com/sidekeeper/sidekeeper/internal/policy"
)

// What there may be of requests that have not come as a whole. The transport takes in a window of each by itself; what is longer is asked for
// when it is its turn.
const (
	window         = 64 << 10               // bytes
	mostIncoming   = 2048                   // requests of all callers: one too many ends the oldest of the caller that has the most
	mostUnread     = 1024                   // of one caller
	urgentUnread   = 256                    // beside them, of the calls that keep and let go what the caller has
	LongestRequest = 10 * time.Second       // from a call's headers to the end of its request
	yields         = 250 * time.Millisecond // which a long one has to come while others wait
)

// MostLarge is how many requests longer than a window are read at once, where so much memory may be in use: those that fill a quarter of it.
func MostLarge(memory int) int { return min(quarter(memory, 4*LongestMessage)/LongestMessage, 64) }

// The incoming requests are those that have not come as a whole.
type incoming struct {
	mu     sync.Mutex
	number uint64 // of the newest
	open   map[*arrival]struct{}
}

// An arrival is one of them, of the call that it begins.
type arrival struct {
	of     *account
	number uint64          // in the order in which they have begun
	ctx    context.Context //nolint:containedctx // of the call
	raw    rawStream
	header [5]byte
}

var arriving = sync.Pool{New: func() any { return new(arrival) }} // there is one for each call

// end ends the call, and with it what reads the request. It fails for a call that has ended.
func (a *arrival) end(why error) { _ = a.raw.WriteStatus(a.of.budget.Told(a.ctx, why)) }

// full refuses one more of a caller.
func (i *incoming) full(of *account) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.refuses(of, mostUnread)
}

// refuses says whether a caller has so many. It is locked.
func (i *incoming) refuses(of *account, most int) error {
	if of.arriving >= most {
		return of.exceeded(policy.IncompleteRequests.String(), most)
	}
	return nil
}

// enter notes a request that begins. It leaves when it has come.
func (i *incoming) enter(a *arrival, most int) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if err := i.refuses(a.of, most); err != nil {
		return err
	}
	if len(i.open) >= mostIncoming {
		i.evict()
	}
	if i.open == nil {
		i.open = map[*arrival]struct{}{}
	}
	i.number++
	a.number = i.number
	a.of.arriving++
	i.open[a] = struct{}{}
	return nil
}

// evict ends the oldest request of the caller that has the most. It is locked.
func (i *incoming) evict() {
	var worst *arrival
	for a := range i.open {
		if worst == nil || a.of.arriving > worst.of.arriving || a.of == worst.of && a.number < worst.number {
			worst = a
		}
	}
	i.remove(worst)
	worst.end(worst.of.exceeded(policy.IncompleteRequests.String(), worst.of.arriving))
}

func (i *incoming) remove(a *arrival) {
	a.of.arriving--
	delete(i.open, a)
}

// leave says whether the request was not ended before.
func (i *incoming) leave(a *arrival) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	_, is := i.open[a]
	if is {
		i.remove(a)
	}
	return is
}

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
	errTooSlow    = status.Error(codes.ResourceExhausted, "the request did not come in time") // nobody is told of it
)

// RequestSeconds is a limit that no policy sets.
const RequestSeconds = "request_seconds"

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
	*a = arrival{of: SlotOf(caller.Of(ctx)).account, ctx: ctx, raw: raw}
	if a.of == nil { // an operator's
		return b.readOnly(a, into, more)
	}
	most := mostUnread
	if methods.Of(method).IsUrgent() {
		most += urgentUnread
	}
	if err := b.incoming.enter(a, most); err != nil {
		return err
	}
	late := time.AfterFunc(b.Complete, func() { a.end(a.of.tooSlow()) })
	err := b.readOnly(a, into, more)
	if came := late.Stop(); !b.incoming.leave(a) || !came {
		return errTooSlow
	}
	*a = arrival{}
	arriving.Put(a)
	return err
}

// readOnly reads a request that is the only one, unless more may follow.
func (b *Budget) readOnly(a *arrival, into proto.Message, more bool) error {
	err := b.read(a, into, FieldsOf(into.ProtoReflect().Descriptor()), false)
	if err == nil && !more {
		if err = a.raw.ReadMessageHeader(a.header[:]); err == nil {
			return errNotOne
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		return ofTransport(err)
	}
	if errors.Is(err, io.EOF) && !more {
		return errNotOne
	}
	return err
}

// read reads one request that has no more fields than that.
func (b *Budget) read(a *arrival, into proto.Message, most int, inner bool) error {
	if err := a.raw.ReadMessageHeader(a.header[:]); err != nil {
		return ofTransport(err)
	}
	length := binary.BigEndian.Uint32(a.header[1:])
	switch {
	case a.header[0] != 0:
		return errCompressed
	case length > LongestMessage:
		//nolint:forbidigo // gRPC's own answer
		return status.Errorf(codes.ResourceExhausted, "grpc: received message larger than max (%d vs. %d)", length, LongestMessage)
	}
	data, err := b.readBody(a, int(length))
	if err != nil {
		return err
	}
	defer data.Free()
	return b.decode(a, data, into, most, inner)
}

// readBody reads so many bytes. Those of a long request come when it is the caller's turn, and within a time: it is asked for them only then.
func (b *Budget) readBody(a *arrival, length int) (data mem.BufferSlice, err error) {
	if length <= window || a.of == nil {
		data, err = a.raw.Read(length)
		return data, ofTransport(err)
	}
	if err := b.memory.spare(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(a.ctx, b.Complete, a.of.tooSlow())
	defer cancel()
	release, err := a.of.largeRequests().acquire(ctx, 1)
	if err != nil {
		return nil, err
	}
	defer release()
	type body struct {
		data mem.BufferSlice
		err  error
	}
	read, raw := make(chan body, 1), a.raw
	go func() {
		data, err := raw.Read(length)
		read <- body{data, ofTransport(err)}
	}()
	looks := time.NewTicker(yields)
	defer looks.Stop()
	for {
		select {
		case came := <-read:
			return came.data, came.err
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-looks.C:
			if b.allLarge.waiting.Load() > 0 {
				return nil, a.of.exceeded(policy.IncompleteRequests.String(), MostLarge(b.Memory))
			}
		}
	}
}

// largeRequests are the long ones that are read for the caller at once.
func (a *account) largeRequests() share {
	a.mu.Lock()
	defer a.mu.Unlock()
	if most := a.most(policy.IncompleteRequests); a.mostLarge != most { // those that are read leave the share that they have entered
		a.mostLarge, a.large = most, share{semaphore.NewWeighted(int64(most)), a.budget.allLarge}
	}
	return a.large
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
			if err := r.budget.May(caller.Of(ctx), name); err != nil { // nothing of the request is read
				refuse := func(context.Context, any) (any, error) { return nil, err }
				return through(ctx, nil, &grpc.UnaryServerInfo{Server: server, FullMethod: name}, refuse)
			}
			return answer(server, ctx, func(request any) error {
				err := r.budget.first(ctx, name, request.(proto.Message), false)
				if _, told := status.FromError(err); !told {
					return r.budget.Told(ctx, err).Err()
				}
				return err
			}, through)
		}
		read.Methods = append(read.Methods, method)
	}
	r.ServiceRegistrar.RegisterService(&read, handlers)
}

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
}

// RecvMsg implements grpc.ServerStream.
func (s *readStream) RecvMsg(request any) error {
	into := request.(proto.Message)
	if !s.begun {
		s.begun = true
		return s.budget.first(s.Context(), s.info.FullMethod, into, s.info.IsClientStream)
	}
	return s.budget.further(s.Context(), into)
}

// further reads a further request of a stream.
func (b *Budget) further(ctx context.Context, into proto.Message) error {
	raw, ok := grpc.ServerTransportStreamFromContext(ctx).(rawStream)
	if !ok {
		return errNoStream
	}
	a := &arrival{of: SlotOf(caller.Of(ctx)).account, ctx: ctx, raw: raw}
	_, inner := into.(*leasev1.MultiplexRequest)
	return b.read(a, into, MostFields, inner)
}
