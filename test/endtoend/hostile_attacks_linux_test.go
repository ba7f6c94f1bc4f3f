package endtoend

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	configv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/config/v1"
	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	membershipv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/membership/v1"
)

// An attack goes on until its context ends. What it is told is of no interest unless it says so.
type attack struct {
	name string
	run  func(ctx context.Context, t *testing.T, s *sidecar)
}

var attacks = []attack{
	{"thousands of streams on one connection", manyStreams},
	{"calls without a pause", manyCalls},
	{"leases opened and left", manyLeases},
	{"replies that are never read", unreadReplies},
	{"streams that are never read", unreadStreams},
	{"calls that are reset at once", resetCalls},
	{"headers without an end", endlessHeaders},
	{"messages and headers that are too large", largeCalls},
	{"bytes one by one", slowBytes},
	{"requests cut in the middle", cutRequests},
	{"thousands of connections", manyConnections},
}

// inParallel does something again and again, so many times at once, until ctx ends.
func inParallel(ctx context.Context, at int, do func(worker int)) {
	var workers sync.WaitGroup
	for worker := range at {
		workers.Go(func() {
			for ctx.Err() == nil {
				do(worker)
			}
		})
	}
	workers.Wait()
}

// manyStreams opens more watches than a connection may carry, and sees that the others are refused for that reason. It
// lasts until each is open or refused.
func manyStreams(_ context.Context, t *testing.T, s *sidecar) {
	const asked, allowed = 1500, 1024
	ctx, cancel := context.WithTimeout(t.Context(), patient)
	defer cancel()
	locks := lockv1.NewLockServiceClient(dial(t, s.address()))
	var shown, refused atomic.Int32
	var watching, settled sync.WaitGroup
	settled.Add(asked)
	for range asked {
		watching.Go(func() {
			stream, err := locks.Watch(ctx, &lockv1.WatchRequest{Name: "hostile/streams"})
			if err == nil {
				_, err = stream.Recv()
			}
			switch {
			case err == nil:
				shown.Add(1)
			case told(err) == "ResourceExhausted STREAM_LIMIT":
				refused.Add(1)
			}
			settled.Done()
			<-ctx.Done()
		})
	}
	settled.Wait()
	cancel()
	watching.Wait()
	if shown.Load() != allowed || refused.Load() != asked-allowed {
		t.Errorf("of %d streams %d were open and %d refused", asked, shown.Load(), refused.Load())
	}
}

func manyCalls(ctx context.Context, t *testing.T, s *sidecar) {
	connection := dial(t, s.address())
	locks, groups := lockv1.NewLockServiceClient(connection), membershipv1.NewMembershipServiceClient(connection)
	config := configv1.NewConfigServiceClient(connection)
	inParallel(ctx, 32, func(worker int) {
		switch worker % 4 {
		case 0:
			_, _ = locks.List(ctx, &lockv1.ListRequest{})
		case 1:
			_, _ = locks.Check(ctx, &lockv1.CheckRequest{HoldIds: []string{strings.Repeat("0", 32)}})
		case 2:
			_, _ = groups.Get(ctx, &membershipv1.GetRequest{Group: "hostile"})
		case 3:
			_, _ = config.Get(ctx, &configv1.GetRequest{Key: "hostile", Consistency: configv1.Consistency_CONSISTENCY_LINEARIZABLE})
		}
	})
}

// manyLeases has leases opened that nobody waits for, and sees that there are no more of them than may be.
func manyLeases(ctx context.Context, t *testing.T, s *sidecar) {
	leases := leasev1.NewLeaseServiceClient(dial(t, s.address()))
	var refused atomic.Int32
	inParallel(ctx, 64, func(int) {
		open, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
		defer cancel()
		stream, err := leases.Open(open, &leasev1.OpenRequest{})
		for err == nil {
			_, err = stream.Recv()
		}
		if told(err) == "ResourceExhausted QUOTA_EXCEEDED" {
			refused.Add(1)
		}
	})
	if refused.Load() == 0 {
		t.Error("never refused")
	}
}

// largest is a key with as large a value as there may be.
func largest(t *testing.T, s *sidecar) (key string) {
	t.Helper()
	key = "hostile/largest"
	_, err := configv1.NewConfigServiceClient(s.connection).Put(t.Context(), &configv1.PutRequest{
		Key: key, Content: &configv1.PutRequest_Value{Value: make([]byte, 1000000)},
	})
	must(t, err)
	return key
}

func unreadReplies(ctx context.Context, t *testing.T, s *sidecar) {
	request, err := proto.Marshal(&configv1.GetRequest{Key: largest(t, s)})
	must(t, err)
	neverRead(ctx, t, s, configv1.ConfigService_Get_FullMethodName, request)
}

func unreadStreams(ctx context.Context, t *testing.T, s *sidecar) {
	request, err := proto.Marshal(&configv1.WatchRequest{Keys: []string{largest(t, s)}})
	must(t, err)
	neverRead(ctx, t, s, configv1.ConfigService_Watch_FullMethodName, request)
}

// neverRead makes as many calls as it may on a few connections, and allows no answer to any of them.
func neverRead(ctx context.Context, t *testing.T, s *sidecar, method string, request []byte) {
	t.Helper()
	for range 3 {
		conn := greeted(ctx, t, s, frame{kind: frameSettings, payload: []byte{0, initialWindow, 0, 0, 0, 0}})
		go func() { _, _ = io.Copy(io.Discard, conn) }()
		for number := range uint32(1000) {
			if _, err := conn.Write(callOf(2*number+1, method, request)); err != nil {
				break
			}
		}
	}
	<-ctx.Done()
}

// greeted is a connection on which the preface and a frame have been sent, closed when ctx ends.
func greeted(ctx context.Context, t *testing.T, s *sidecar, settings frame) net.Conn {
	t.Helper()
	conn, err := net.Dial("unix", strings.TrimPrefix(s.address(), "unix://"))
	must(t, err)
	context.AfterFunc(ctx, func() { conn.Close() })
	if _, err := conn.Write(append([]byte(clientPreface), settings.encode()...)); ctx.Err() == nil {
		must(t, err)
	}
	return conn
}

// callOf is a whole call.
func callOf(stream uint32, method string, request []byte) []byte {
	head := frame{kind: frameHeaders, flags: flagEndHeaders, stream: stream, payload: headers(
		":method", "POST", ":scheme", "http", ":path", method, ":authority", "localhost",
		"content-type", "application/grpc", "te", "trailers",
	)}
	body := frame{flags: flagEndStream, stream: stream, payload: append([]byte{0, 0, 0, 0, byte(len(request))}, request...)}
	return append(head.encode(), body.encode()...)
}

// More of HTTP/2.
const (
	frameReset        = 0x3
	frameContinuation = 0x9
	lastStream        = 1<<31 - 1
)

// resetCalls asks for locks and takes each request back with the next frame.
func resetCalls(ctx context.Context, t *testing.T, s *sidecar) {
	request, err := proto.Marshal(&lockv1.AcquireRequest{Name: "hostile/reset"})
	must(t, err)
	cancel := binary.BigEndian.AppendUint32(nil, 8)
	for ctx.Err() == nil {
		conn := greeted(ctx, t, s, frame{kind: frameSettings})
		go func() { _, _ = io.Copy(io.Discard, conn) }()
		for stream := uint32(1); stream < lastStream && err == nil && ctx.Err() == nil; stream += 2 {
			reset := frame{kind: frameReset, stream: stream, payload: cancel}
			_, err = conn.Write(append(callOf(stream, lockv1.LockService_Acquire_FullMethodName, request), reset.encode()...))
		}
		conn.Close()
		err = nil
	}
}

// endlessHeaders begins a call's headers and never ends them.
func endlessHeaders(ctx context.Context, t *testing.T, s *sidecar) {
	for ctx.Err() == nil {
		conn := greeted(ctx, t, s, frame{kind: frameSettings})
		go func() { _, _ = io.Copy(io.Discard, conn) }()
		next := frame{kind: frameHeaders, stream: 1, payload: headers(":method", "POST")}
		for {
			if _, err := conn.Write(next.encode()); err != nil {
				break
			}
			next = frame{kind: frameContinuation, stream: 1, payload: headers("x-filler", strings.Repeat("x", 100))}
		}
		conn.Close()
	}
}

// largeCalls sends more in one message, and in one call's headers, than may be sent.
func largeCalls(ctx context.Context, t *testing.T, s *sidecar) {
	config := configv1.NewConfigServiceClient(dial(t, s.address()))
	large := &configv1.PutRequest{Key: "hostile/large", Content: &configv1.PutRequest_Value{Value: make([]byte, 3<<20)}}
	many := metadata.AppendToOutgoingContext(ctx, "x-filler", strings.Repeat("x", 64<<10))
	inParallel(ctx, 8, func(worker int) {
		if worker%2 == 0 {
			if _, err := config.Put(ctx, large); status.Code(err) != codes.ResourceExhausted && !isOver(err) {
				t.Errorf("too large a message is answered with %v", err)
			}
			return
		}
		if _, err := config.Get(many, &configv1.GetRequest{Key: "hostile/large"}); err == nil {
			t.Error("headers that are too large are taken")
		}
	})
}

// isOver says whether a call has ended because the attack has.
func isOver(err error) bool {
	return status.Code(err) == codes.DeadlineExceeded || status.Code(err) == codes.Canceled
}

// slowBytes greets on many connections, a byte at a time.
func slowBytes(ctx context.Context, t *testing.T, s *sidecar) {
	var conns []net.Conn
	defer func() { closeAll(conns) }()
	for range 300 {
		conn, err := net.Dial("unix", strings.TrimPrefix(s.address(), "unix://"))
		must(t, err)
		conns = append(conns, conn)
	}
	greeting := append([]byte(clientPreface), callOf(1, lockv1.LockService_List_FullMethodName, nil)...)
	for i := 0; ctx.Err() == nil; i++ {
		for _, conn := range conns {
			_, _ = conn.Write(greeting[i%len(greeting) : i%len(greeting)+1])
		}
		<-after(50 * time.Millisecond)
	}
}

func closeAll(conns []net.Conn) {
	for _, conn := range conns {
		conn.Close()
	}
}

// cutRequests has conversations break off anywhere.
func cutRequests(ctx context.Context, t *testing.T, s *sidecar) {
	request, err := proto.Marshal(&lockv1.AcquireRequest{Name: "hostile/cut"})
	must(t, err)
	whole := bytes.Join([][]byte{
		[]byte(clientPreface), frame{kind: frameSettings}.encode(),
		callOf(1, lockv1.LockService_Acquire_FullMethodName, request), callOf(3, lockv1.LockService_Watch_FullMethodName, request),
	}, nil)
	inParallel(ctx, 2, func(int) {
		conn, err := net.Dial("unix", strings.TrimPrefix(s.address(), "unix://"))
		if err != nil {
			return // the backlog is full
		}
		_, _ = conn.Write(whole[:rand.IntN(len(whole)+1)])
		conn.Close()
	})
}

// manyConnections opens connections and leaves them idle.
func manyConnections(ctx context.Context, t *testing.T, s *sidecar) {
	var conns []net.Conn
	defer func() { closeAll(conns) }()
	for range 3000 {
		conn, err := net.Dial("unix", strings.TrimPrefix(s.address(), "unix://"))
		if err != nil {
			break
		}
		conns = append(conns, conn)
		if ctx.Err() != nil {
			break
		}
		_, err = conn.Write(append([]byte(clientPreface), frame{kind: frameSettings}.encode()...))
		if err != nil && !errors.Is(err, net.ErrClosed) {
			continue // one too many
		}
	}
	<-ctx.Done()
}
