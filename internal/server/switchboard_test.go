// It looks inside: each request of millions is one call of a handler, without a connection.

package server

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/stats"
	"google.golang.org/protobuf/proto"

	"github.com/sidekeeper/sidekeeper/internal/caller"
	"github.com/sidekeeper/sidekeeper/service"
	"github.com/sidekeeper/sidekeeper/test/support/standin"
)

// A switchboard is a sidecar without a network: every rpc of every service, called as the transport calls it, over an
// ensemble in memory. It is used inside a bubble of virtual time.
type switchboard struct {
	t        *testing.T
	ensemble *memoryEnsemble
	services *service.Services
	rpcs     []rpc
}

// A memoryEnsemble opens sessions in memory and keeps them for the test.
type memoryEnsemble struct {
	*standin.Reader

	memory *standin.Ensemble
	opened chan *standin.Session
}

func (e *memoryEnsemble) Open(_ context.Context, timeout time.Duration) (service.Session, error) {
	session := e.memory.OpenSession(timeout)
	e.opened <- session
	return session, nil
}

// An rpc is one of them, with how its handler is called.
type rpc struct {
	method string
	serve  func(stream grpc.ServerStream) error
}

// idleFaults are those of an ensemble that cannot be made to fail.
type idleFaults struct{}

func (idleFaults) Suspend(time.Duration)          {}
func (idleFaults) Expire(session service.Session) { session.Close(context.Background()) }
func (idleFaults) DelayGrants(time.Duration)      {}

func newSwitchboard(t *testing.T) *switchboard {
	memory := standin.New(standin.Options{})
	b := &switchboard{t: t, ensemble: &memoryEnsemble{
		Reader: memory.NewReader(), memory: memory, opened: make(chan *standin.Session, 100),
	}}
	b.services = service.New(service.Options{}, b.ensemble)
	service.Dev{Services: b.services, Faults: idleFaults{}}.Register(b)
	return b
}

// RegisterService implements grpc.ServiceRegistrar.
func (b *switchboard) RegisterService(of *grpc.ServiceDesc, handler any) {
	admission := &admissions{mostStreams: 10, denials: denials{zap.NewNop()}, metrics: NewMetrics(), log: callLog{zap.NewNop()}}
	for _, unary := range of.Methods {
		method := "/" + of.ServiceName + "/" + unary.MethodName
		b.rpcs = append(b.rpcs, rpc{method, func(stream grpc.ServerStream) error {
			reply, err := unary.Handler(handler, stream.Context(), stream.RecvMsg, admission.unary)
			if err != nil {
				return err
			}
			return stream.SendMsg(reply)
		}})
	}
	for _, streaming := range of.Streams {
		info := &grpc.StreamServerInfo{FullMethod: "/" + of.ServiceName + "/" + streaming.StreamName}
		b.rpcs = append(b.rpcs, rpc{info.FullMethod, func(stream grpc.ServerStream) error {
			return admission.stream(handler, stream, info, streaming.Handler)
		}})
	}
}

// prototype is an empty request of an rpc.
func (r rpc) prototype() proto.Message {
	wanted := &requestKind{}
	_ = r.serve(wanted) // cannot be served: there is no request
	return wanted.request
}

// requestKind is a call whose request never comes.
type requestKind struct {
	grpc.ServerStream

	request proto.Message
}

func (k *requestKind) Context() context.Context { return context.Background() }

func (k *requestKind) SetTrailer(metadata.MD) {}

func (k *requestKind) RecvMsg(message any) error {
	k.request = message.(proto.Message)
	return context.Canceled
}

// A dialogue is one call: a caller that sends the same request again and again, and the replies to it.
type dialogue struct {
	grpc.ServerStream

	t       *testing.T
	ctx     context.Context
	request []byte
	sent    atomic.Int32
	replies int
}

func (d *dialogue) Context() context.Context     { return d.ctx }
func (d *dialogue) SendHeader(metadata.MD) error { return nil }
func (d *dialogue) SetTrailer(metadata.MD)       {}

func (d *dialogue) RecvMsg(message any) error {
	d.sent.Add(1)
	return proto.Unmarshal(d.request, message.(proto.Message))
}

// longestReply is what clients take unless they are told otherwise, with some room for headers.
const longestReply = 4<<20 - 4<<10

func (d *dialogue) SendMsg(message any) error {
	d.replies++
	if size := proto.Size(message.(proto.Message)); size > longestReply {
		d.t.Errorf("a reply of %d bytes", size)
	}
	return d.ctx.Err()
}

// call makes a call and, if it has not ended after a minute, cancels it. It returns what the caller is told, once what comes
// after the status has been done too.
func (b *switchboard) call(to rpc, operator bool, request []byte) error {
	from := caller.Caller{Identity: "uid:1", Operator: operator}
	ctx, cancel := context.WithTimeout(b.t.Context(), time.Minute)
	defer cancel()
	ctx = caller.StatsHandler{}.TagRPC(peer.NewContext(ctx, &peer.Peer{AuthInfo: from}), nil)
	before := b.ensemble.memory.Zxid()
	talk := &dialogue{t: b.t, ctx: ctx, request: request}
	told := to.serve(talk)
	_, answer := told.(*answered)
	refusedAtOnce := answer && outcomeCode(told) == codes.InvalidArgument && talk.sent.Load() == 1
	if refusedAtOnce && b.ensemble.memory.Zxid() != before {
		b.t.Errorf("%s was refused, and has written something: %v", to.method, told)
	}
	caller.StatsHandler{}.HandleRPC(ctx, &stats.End{})
	return told
}

// close stops the sidecar, and fails the test if anything is left.
func (b *switchboard) close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := b.services.Stop(ctx); err != nil {
		b.t.Errorf("the sidecar does not stop: %v", err)
	}
	for range len(b.ensemble.opened) {
		if session := <-b.ensemble.opened; session.Err() == nil {
			b.t.Error("a session is left open")
		}
	}
	b.ensemble.memory.Close()
	synctest.Wait()
}
