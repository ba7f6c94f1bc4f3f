package server

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding/gzip"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"

	lockv1 "github.com/sidekeeper/sidekeeper/gen/sidekeeper/lock/v1"
	"github.com/sidekeeper/sidekeeper/test/support/bubble"
)

// newTwo starts a sidecar with two callers, and returns a connection of each.
func newTwo(t *testing.T, change ...func(*Options)) (p *probe, one, other *grpc.ClientConn) {
	t.Helper()
	p = newProbe(t, append(change, func(o *Options) {
		folder := strings.TrimSuffix(o.Listen[0], "/callers")
		o.Listen = []string{folder + "/one?identity=one", folder + "/other?identity=other"}
	})...)
	addresses := p.server.Addresses()
	one, other = p.dial(addresses[0]), p.dial(addresses[1])
	return p, one, other
}

func get(t *testing.T, connection *grpc.ClientConn, options ...grpc.CallOption) string {
	t.Helper()
	_, err := lockv1.NewLockServiceClient(connection).Get(within(t), &lockv1.GetRequest{}, options...)
	return outcome(err)
}

// incomplete begins a call whose request never comes, and returns what will come of it.
func incomplete(t *testing.T, connection *grpc.ClientConn, method string) <-chan string {
	t.Helper()
	stream, err := connection.NewStream(within(t), &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, method)
	must(t, err)
	ended := make(chan string, 1)
	go func() { ended <- outcome(stream.RecvMsg(&lockv1.GetResponse{})) }()
	return ended
}

func TestACompressedRequestIsRefused(t *testing.T) {
	t.Parallel()
	_, one, _ := newTwo(t)
	same(t, "a call", get(t, one, grpc.UseCompressor(gzip.Name)), "Unimplemented")
	stream, err := lockv1.NewLockServiceClient(one).Acquire(within(t), &lockv1.AcquireRequest{}, grpc.UseCompressor(gzip.Name))
	must(t, err)
	_, err = stream.Recv()
	same(t, "a stream", outcome(err), "Unimplemented")
	same(t, "another one", get(t, one), "OK")
}

func TestARequestThatDoesNotComeInTimeEndsAndTakesNothingFromOthers(t *testing.T) {
	t.Parallel()
	_, one, other := newTwo(t, func(o *Options) { o.completeWithin = time.Second })
	var ends []<-chan string
	for i := range 2 * mostIncomplete {
		method := []string{lockv1.LockService_Get_FullMethodName, lockv1.LockService_Acquire_FullMethodName}[i%2]
		ends = append(ends, incomplete(t, one, method))
	}
	same(t, "another caller", get(t, other), "OK")
	for i, end := range ends {
		same(t, fmt.Sprint(i), receive(t, end), "ResourceExhausted QUOTA_EXCEEDED")
	}
	same(t, "the caller, later", get(t, one), "OK")
}

func TestACallerHasOnlySoManyIncompleteRequests(t *testing.T) {
	t.Parallel()
	p, one, other := newTwo(t, func(o *Options) { o.completeWithin = time.Hour })
	ended := make(chan string, mostIncomplete+mostUnread+1)
	for range mostIncomplete + mostUnread + 1 {
		end := incomplete(t, one, lockv1.LockService_Get_FullMethodName)
		go func() { ended <- <-end }()
	}
	same(t, "one too many", receive(t, ended), "ResourceExhausted QUOTA_EXCEEDED")
	same(t, "a whole one of the same caller", get(t, p.dial(p.server.Addresses()[0])), "ResourceExhausted QUOTA_EXCEEDED")
	same(t, "one of another caller", get(t, other), "OK")
}

func TestARequestThatWaitsForItsTurnIsRefusedInTheEnd(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		requests, none := newIntake(mostIncomplete), newMemory(0)
		for range mostIncomplete {
			must(t, requests.enter(t.Context(), "uid:1", none))
		}
		began := time.Now()
		same(t, "one more", outcome(answerWith(requests.enter(t.Context(), "uid:1", none), discardTrailer)), "ResourceExhausted QUOTA_EXCEEDED")
		same(t, "after", time.Since(began), longestRequest)
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		same(t, "of a caller that has gone", requests.enter(gone, "uid:1", none), context.Canceled)
		requests.leave()
		same(t, "when there is room", requests.enter(t.Context(), "uid:1", none), nil)
		same(t, "calls", requests.calls.Load(), mostIncomplete)
	})
}

func TestACallerHasOnlySoManyStreamsOverAllItsConnections(t *testing.T) {
	t.Parallel()
	p, _, other := newTwo(t, func(o *Options) { o.MaxStreams = 1 })
	p.acquire = func(stream grpc.ServerStreamingServer[lockv1.AcquireResponse]) error {
		if err := stream.Send(&lockv1.AcquireResponse{}); err != nil {
			return err
		}
		<-stream.Context().Done()
		return stream.Context().Err()
	}
	for range streamConnections {
		p.begin(within(t), p.dial(p.server.Addresses()[0]))
	}
	stream, err := lockv1.NewLockServiceClient(p.dial(p.server.Addresses()[0])).Acquire(within(t), &lockv1.AcquireRequest{})
	must(t, err)
	_, err = stream.Recv()
	same(t, "one too many", outcome(err), "ResourceExhausted QUOTA_EXCEEDED")
	p.begin(within(t), other)
}

func TestWhereThereIsOneCallerItHasAllStreamsOfItsConnections(t *testing.T) {
	t.Parallel()
	p := newProbe(t, func(o *Options) { o.Listen, o.MaxStreams = []string{o.Listen[0] + "?identity=one"}, 1 })
	p.acquire = func(stream grpc.ServerStreamingServer[lockv1.AcquireResponse]) error {
		if err := stream.Send(&lockv1.AcquireResponse{}); err != nil {
			return err
		}
		<-stream.Context().Done()
		return stream.Context().Err()
	}
	for range streamConnections + 1 {
		p.begin(within(t), p.dial(p.address()))
	}
}

func TestCheckAndReleaseDoNotWaitForIncompleteRequests(t *testing.T) {
	t.Parallel()
	p, one, _ := newTwo(t, func(o *Options) { o.completeWithin = time.Hour })
	for range mostIncomplete {
		incomplete(t, one, lockv1.LockService_Get_FullMethodName)
	}
	until(t, mostIncomplete, &quotaOf(p, "socket:one").intakeFor("", mostIncomplete).calls)
	waits, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := lockv1.NewLockServiceClient(one).Get(waits, &lockv1.GetRequest{})
	same(t, "a Get of the same caller", outcome(err), "DeadlineExceeded")
	locks := lockv1.NewLockServiceClient(p.dial(p.address()))
	_, err = locks.Check(within(t), &lockv1.CheckRequest{})
	same(t, "a Check", outcome(err), "Unimplemented") // by the probe, which has read it
	_, err = locks.Release(within(t), &lockv1.ReleaseRequest{})
	same(t, "a Release", outcome(err), "Unimplemented")
}

func TestAStreamInBothDirectionsMayBeSilentAndTakesNoPlaceOfRequests(t *testing.T) {
	t.Parallel()
	p, one, other := newTwo(t, func(o *Options) { o.Reflection, o.completeWithin = true, time.Second })
	begin := func(connection *grpc.ClientConn) reflectionpb.ServerReflection_ServerReflectionInfoClient {
		stream, err := reflectionpb.NewServerReflectionClient(connection).ServerReflectionInfo(within(t))
		must(t, err)
		must(t, stream.Send(askServices))
		_, err = stream.Recv()
		must(t, err)
		return stream
	}
	first := begin(one)
	for range mostIncomplete - 1 {
		begin(one)
	}
	same(t, "a request of the same caller", get(t, one), "OK")
	late := incomplete(t, one, lockv1.LockService_Get_FullMethodName)
	same(t, "a request that does not come, which takes longer than the streams were silent", receive(t, late), "ResourceExhausted QUOTA_EXCEEDED")
	must(t, first.Send(askServices))
	_, err := first.Recv()
	must(t, err)
	until(t, mostIncomplete, &quotaOf(p, "socket:one").talks)
	more, err := reflectionpb.NewServerReflectionClient(one).ServerReflectionInfo(within(t))
	must(t, err)
	must(t, more.Send(askServices))
	for err == nil {
		_, err = more.Recv()
	}
	same(t, "one too many", outcome(err), "ResourceExhausted QUOTA_EXCEEDED")
	begin(other)
}

func quotaOf(p *probe, identity string) *callerQuota {
	p.server.limiter.mu.Lock()
	defer p.server.limiter.mu.Unlock()
	return p.server.limiter.quotas[identity]
}

func until(t *testing.T, want int64, count *atomic.Int64) {
	t.Helper()
	for ctx := within(t); count.Load() != want; runtime.Gosched() {
		must(t, ctx.Err())
	}
}

var askServices = &reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{}}

func TestAConnectionWithManyStreamsGetsNoMoreWhileThereIsNoMemory(t *testing.T) {
	t.Parallel()
	used, live := 0, 0
	m := newMemory(1 << 20)
	m.inUse, m.live = func() int { return used }, func() int { return live }
	many, few := &connSlot{quota: newCallerQuota()}, &connSlot{quota: newCallerQuota()}
	begin := func(slot *connSlot) string {
		return outcome(answerWith(slot.beginStream(1024, 4096, "uid:1", m), discardTrailer))
	}
	for range fewStreams {
		same(t, "few", begin(many), "OK")
	}
	same(t, "with memory", begin(many), "OK")
	used = 2 << 20
	same(t, "with garbage", begin(many), "OK")
	live = 2 << 20
	same(t, "without memory", begin(many), "ResourceExhausted MEMORY_LIMIT")
	same(t, "of somebody else", begin(few), "OK")
	same(t, "streams", many.streams.open.Load(), fewStreams+2)
	m.most = 0
	same(t, "without a limit", begin(many), "OK")
}

func TestAWatchOfAnUnknownServicesHealthEnds(t *testing.T) {
	t.Parallel()
	p := newProbe(t)
	watch, err := healthpb.NewHealthClient(p.dial(p.address())).Watch(within(t), &healthpb.HealthCheckRequest{Service: "unknown"})
	must(t, err)
	_, err = watch.Recv()
	same(t, "unknown", outcome(err), "NotFound")
}

// A stream that lives long keeps the first names that it asked for, and not the request.
func TestAStreamKeepsNamesNotRequests(t *testing.T) {
	t.Parallel()
	freed := make(chan struct{})
	attempted := func() attempt {
		request := &lockv1.AcquireRequest{Name: strings.Repeat("x", 1<<20)}
		runtime.AddCleanup(request, func(freed chan struct{}) { close(freed) }, freed)
		return attemptOf(lockv1.LockService_Acquire_FullMethodName, request)
	}
	made := attempted()
	runtime.GC()
	<-freed
	same(t, "action", made.action, "sidekeeper.lock.v1.LockService/Acquire")
	same(t, "bytes", len(made.names[0]), longestDeniedName)
}
