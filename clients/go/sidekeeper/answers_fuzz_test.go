package sidekeeper

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	holdv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/hold/v1"
	leasev1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lease/v1"
	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
)

// A babbler is a sidecar that answers with whatever bytes it is given: the messages of a stream, and the reply to each
// question. When there are no more, streams stay open and questions fail.
type babbler struct {
	mu              sync.Mutex
	events, replies pieces
	told            time.Duration // the longest validity that was told
}

// Pieces are messages with their length in front, in one byte.
type pieces []byte

func (p *pieces) next() (piece []byte, ok bool) {
	if len(*p) == 0 {
		return nil, false
	}
	end := min(1+int((*p)[0]), len(*p))
	piece = (*p)[1:end]
	*p = (*p)[end:]
	return piece, true
}

func piecesOf(messages ...proto.Message) (all pieces) {
	for _, message := range messages {
		encoded, err := proto.Marshal(message)
		if err != nil || len(encoded) > 255 {
			panic(err)
		}
		all = append(append(all, byte(len(encoded))), encoded...)
	}
	return all
}

// Invoke implements grpc.ClientConnInterface.
func (b *babbler) Invoke(_ context.Context, _ string, _, reply any, _ ...grpc.CallOption) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	piece, ok := b.replies.next()
	if !ok {
		return status.Error(codes.Unavailable, "no more answers")
	}
	if err := proto.Unmarshal(piece, reply.(proto.Message)); err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	switch reply := reply.(type) {
	case *lockv1.CheckResponse:
		for _, hold := range reply.GetHolds() {
			b.told = max(b.told, hold.GetValidFor().AsDuration())
		}
	case *leasev1.CheckResponse:
		b.told = max(b.told, reply.GetValidFor().AsDuration())
	}
	return nil
}

// NewStream implements grpc.ClientConnInterface.
func (b *babbler) NewStream(ctx context.Context, _ *grpc.StreamDesc, _ string, _ ...grpc.CallOption) (grpc.ClientStream, error) {
	return &babble{ctx: ctx, from: b}, nil
}

// A babble is one of its streams.
type babble struct {
	grpc.ClientStream

	ctx  context.Context
	from *babbler
}

func (s *babble) SendMsg(any) error            { return nil }
func (s *babble) CloseSend() error             { return nil }
func (s *babble) Header() (metadata.MD, error) { return nil, nil }
func (s *babble) Context() context.Context     { return s.ctx }

func (b *babbler) longestTold() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.told
}

func (s *babble) RecvMsg(message any) error {
	s.from.mu.Lock()
	piece, ok := s.from.events.next()
	s.from.mu.Unlock()
	if !ok {
		<-s.ctx.Done()
		return status.FromContextError(s.ctx.Err()).Err()
	}
	if err := proto.Unmarshal(piece, message.(proto.Message)); err != nil {
		return status.Error(codes.Internal, err.Error())
	}
	return nil
}

// bubbleClock is a clock of virtual time.
type bubbleClock struct{ began time.Time }

func (c bubbleClock) now() time.Duration { return time.Since(c.began) }

func (bubbleClock) coarseness() time.Duration { return 0 }

func (c bubbleClock) alarm(at time.Duration) (<-chan time.Time, func() bool) {
	timer := time.NewTimer(at - c.now())
	return timer.C, timer.Stop
}

func (bubbleClock) after(pause time.Duration, ring func()) func() bool {
	return time.AfterFunc(pause, ring).Stop
}

// clientOf is a client of a babbler, with what ends its goroutines.
func clientOf(b *babbler) (*Client, func()) {
	ctx, stop := context.WithCancel(context.Background())
	c := &Client{
		clock: bubbleClock{time.Now()}, locks: lockv1.NewLockServiceClient(b), leases: leasev1.NewLeaseServiceClient(b), stop: stop,
	}
	c.endings.locks = c.locks
	chosen := settings{clock: c.clock, log: slog.New(slog.DiscardHandler)}
	c.holdKeeper, c.leaseKeeper = newKeeper(chosen, c.checkHolds), newKeeper(chosen, c.checkLeases)
	for _, k := range []*keeper{c.holdKeeper, c.leaseKeeper} {
		c.keeping.Go(func() { k.askRegularly(ctx) })
		c.keeping.Go(func() { k.endExpired(ctx) })
	}
	return c, func() {
		c.following.Wait()
		stop()
		c.keeping.Wait()
	}
}

// Whatever a sidecar sends, nobody has a lock without a grant and a validity that it has told, nor for longer than that, and
// every call ends.
func FuzzAnswersOfASidecar(f *testing.F) {
	granted := &lockv1.AcquireResponse{Event: &lockv1.AcquireResponse_Granted{Granted: &lockv1.Granted{HoldId: "h", FencingToken: 7}}}
	asked := &lockv1.AcquireResponse{Event: &lockv1.AcquireResponse_RevocationRequested{RevocationRequested: &holdv1.RevocationRequested{
		Grace: &durationpb.Duration{Seconds: -1 << 60, Nanos: 1 << 30},
	}}}
	opened := &leasev1.OpenResponse{Event: &leasev1.OpenResponse_Opened{Opened: &leasev1.Opened{LeaseId: "h"}}}
	for _, validity := range []*durationpb.Duration{
		nil, {Seconds: 10}, {Seconds: -1}, {Nanos: 1}, {Seconds: 1 << 62}, {Seconds: 1, Nanos: -1 << 31},
	} {
		hold := piecesOf(&lockv1.CheckResponse{Holds: []*lockv1.CheckedHold{{HoldId: "h", ValidFor: validity}}})
		f.Add([]byte(piecesOf(granted, asked, granted)), []byte(append(hold, hold...)), false)
		f.Add([]byte(piecesOf(opened)), []byte(piecesOf(&leasev1.CheckResponse{ValidFor: validity})), true)
	}
	f.Add([]byte(piecesOf(&lockv1.AcquireResponse{}, granted)), []byte("\x03\xff\xff\xff"), false)
	released := piecesOf(&lockv1.CheckResponse{Holds: []*lockv1.CheckedHold{{HoldId: "h", Reason: "RELEASED"}}})
	f.Add([]byte("\x00\x01\x0a\x02\x12\x00"), []byte(released), false)
	f.Fuzz(func(t *testing.T, events, replies []byte, lease bool) {
		inBubble(t, func(t *testing.T) {
			b := &babbler{events: events, replies: replies}
			c, closed := clientOf(b)
			defer closed()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			if lease {
				opened, err := c.OpenLease(ctx, LeaseOptions{})
				if err == nil {
					heldNoLonger(t, b, opened.claim)
					_ = opened.Close(ctx)
				}
				return
			}
			lock, err := c.Acquire(ctx, "orders", LockOptions{OnQueued: func(Queued) {}})
			if err == nil {
				heldNoLonger(t, b, lock.claim)
				_ = lock.Release(ctx)
			}
		})
	})
}

func heldNoLonger(t *testing.T, b *babbler, held *claim) {
	t.Helper()
	if left, told := held.ValidFor(), b.longestTold(); left > told {
		t.Errorf("valid for %v, though %v was told", left, told)
	}
	if held.Valid() && b.longestTold() <= 0 {
		t.Error("valid without a validity")
	}
}

// Whatever status a call ends with, the caller gets an error that can be shown, and whose sentinel is that of its reason.
func FuzzStatuses(f *testing.F) {
	for _, message := range []string{"", "LEASE_LOST: gone", "UNSPECIFIED: x", "LEASE_LOST", ": x", "lease_lost: x", "\xff: \xff"} {
		f.Add(int32(codes.Aborted), message, []byte{})
		f.Add(int32(-1), message, []byte("\x0a\x01a\x12\x01b"))
	}
	rich, err := proto.Marshal(status.Convert(scriptedError()).Proto())
	if err != nil {
		f.Fatal(err)
	}
	f.Add(int32(codes.NotFound), "x", rich)
	f.Fuzz(func(t *testing.T, code int32, message string, encoded []byte) {
		wire := &spb.Status{}
		if proto.Unmarshal(encoded, wire) != nil {
			wire = &spb.Status{}
		}
		wire.Code, wire.Message = code, message
		sent := status.FromProto(wire).Err()
		got := fromStatus(sent)
		if (got == nil) != (codes.Code(code) == codes.OK) {
			t.Fatalf("%v became %v", sent, got)
		}
		e := (*Error)(nil)
		if !errors.As(got, &e) {
			return
		}
		if e.Error() == "" || errors.Is(got, ErrLeaseLost) != (e.Reason == "LEASE_LOST") || errors.Is(got, ErrLost) {
			t.Errorf("%v became %v", sent, got)
		}
		if e.Reason == "" && e.Message != message {
			t.Errorf("%q became %q", message, e.Message)
		}
	})
}

// scriptedError is a status with details.
func scriptedError() error {
	return status.FromProto(&spb.Status{Code: int32(codes.NotFound), Message: "HOLD_NOT_FOUND: no"}).Err()
}

// Plaintext never leaves the machine: what is taken for local is a Unix socket, or a host that is this machine.
func FuzzAddresses(f *testing.F) {
	for _, target := range []string{
		"unix:///a", "unix:a", "/a", "localhost:1", "127.0.0.1:1", "[::1]:1", "[::1%lo]:1", "host:1", "localhost", ":1", "0.0.0.0:1",
		"dns:///host:1", "unix-abstract:a", "passthrough:1", "localhost.evil:1", "127.0.0.1@evil:1", "localhost:1/../evil:2", "[::ffff:127.0.0.1]:1",
	} {
		f.Add(target)
	}
	f.Fuzz(func(t *testing.T, target string) {
		if target == "" {
			return // what the environment says
		}
		resolved, local, err := resolve(target)
		if err != nil {
			return
		}
		again, still, err := resolve(resolved)
		if again != resolved || still != local || err != nil {
			t.Errorf("%q is %q, and that is %q, %v", target, resolved, again, err)
		}
		if host, _, err := net.SplitHostPort(resolved); local && !strings.HasPrefix(resolved, "unix:") {
			ip := net.ParseIP(strings.SplitN(host, "%", 2)[0])
			if err != nil || host != "localhost" && (ip == nil || !ip.IsLoopback()) {
				t.Errorf("%q is taken for this machine", target)
			}
		}
	})
}
